//go:build unix

package keystore

import (
	"io/fs"
	"os"
	"syscall"
)

func othersCanReach(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o077 != 0 }

func ownedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
