//go:build !linux

package sqlite

// isMountPoint: no other system is known to mount single files.
func isMountPoint(string) bool { return false }
