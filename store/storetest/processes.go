package storetest

import "testing"

func playRole(t *testing.T, b Backend, role string) {}
func processes(t *testing.T, b Backend)             {}
func restore(t *testing.T, b Backend)               {}
