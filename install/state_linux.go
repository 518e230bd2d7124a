package install

import (
	"io/fs"
	"syscall"
)

// stateOf takes from a FileInfo what tells a later change; known is false where it
// cannot.
func stateOf(fi fs.FileInfo) (st fileState, known bool) {
	sys, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return st, false
	}
	return fileState{size: fi.Size(), mtime: sys.Mtim.Nano(), ctime: sys.Ctim.Nano(), dev: uint64(sys.Dev), ino: sys.Ino}, true
}
