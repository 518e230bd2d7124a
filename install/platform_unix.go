//go:build unix

package install

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncDir makes the names in a folder durable. File systems that cannot do that say
// EINVAL or ENOTSUP.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// freeFile makes a file readable to us. Removing it needs nothing.
func freeFile(root *os.Root, path string) {
	if fi, err := root.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o400 == 0 {
		root.Chmod(path, filePrivate)
	}
}

// dropLock removes the file of a lock that is held, then lets go: whoever opened it
// in between sees that its name is gone and starts afresh.
func dropLock(path string, unlock func()) {
	os.Remove(path)
	unlock()
}
