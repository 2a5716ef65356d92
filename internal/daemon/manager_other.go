//go:build !linux

package daemon

func serviceUnit() (unit string, ofUser bool) { return "", false }
