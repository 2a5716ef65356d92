package sqlite

import "golang.org/x/sys/unix"

// isMountPoint reports whether the file itself is mounted, as docker -v FILE:FILE
// does. A kernel or a sandbox that cannot tell counts as no.
func isMountPoint(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &s)
	return err == nil && s.Attributes_mask&s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
