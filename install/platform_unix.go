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

// freeFile is for systems where a read-only file cannot be removed.
func freeFile(*os.Root, string) {}

// dropLock removes the file of a lock that is held, then lets go: whoever opened it
// in between sees that its name is gone and starts afresh.
func dropLock(path string, unlock func()) {
	os.Remove(path)
	unlock()
}
