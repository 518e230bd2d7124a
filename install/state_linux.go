package install

import (
	"io/fs"
	"os"
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

// stateOfOpen is the state of an open file, or the zero state.
func stateOfOpen(f *os.File) fileState {
	fi, err := f.Stat()
	if err != nil {
		return fileState{}
	}
	st, _ := stateOf(fi)
	return st
}
