package pgtest

import "golang.org/x/sys/unix"

const (
	inMemory = "/dev/shm"
	roomFree = 4 << 30 // bytes
)

// memory is a folder whose files lie in memory; empty if there is none with room enough.
// Half of what a server that need not keep anything does with a disk is to make and to
// remove files.
func memory() string {
	var fs unix.Statfs_t
	if unix.Statfs(inMemory, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Bavail)*fs.Bsize < roomFree || unix.Access(inMemory, unix.W_OK|unix.X_OK) != nil {
		return ""
	}
	return inMemory
}
