//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// openNoFollow opens a regular file for reading; O_NONBLOCK keeps a planted pipe
// from holding us.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func ownedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func writableByOthers(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o022 != 0 }

// narrow takes the rights of others off a folder of ours.
func narrow(path string, seen fs.FileInfo) error {
	if seen.Mode().Perm() == 0o700 {
		return nil
	}
	if seen.Mode().Perm()&0o500 != 0o500 {
		return os.Chmod(path, 0o700) // cannot be opened; it is ours, in a folder we were given
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o700)
}

// keepOwner gives the file the owner and group of old. A group that we may not
// give is reported, so that its rights are not given to ours instead.
func keepOwner(f *os.File, old fs.FileInfo) (sameGroup bool, err error) {
	want, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return false, errors.New("its owner is not known")
	}
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	have, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return false, errors.New("its owner is not known")
	}
	if have.Uid != want.Uid {
		if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return false, errors.New("it belongs to another user")
		}
		return true, nil
	}
	return have.Gid == want.Gid || f.Chown(-1, int(want.Gid)) == nil, nil
}

// claimTemp locks a new temporary file, so that a sweeper sees that its writer
// lives. It is false when a sweeper was faster.
func claimTemp(f *os.File) bool {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(fi, named)
}

func removeDeadTemp(path string) {
	f, err := openNoFollow(path)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		os.Remove(path)
	}
}

// finish renames the temporary file over target and lets go of it. The name goes
// first: until then a sweeper must find the file locked.
func finish(f *os.File, target string) error {
	if err := os.Rename(f.Name(), target); err != nil {
		return err
	}
	f.Close() // the bytes are synced; nothing is left that could fail
	return nil
}

// syncDir makes a rename durable. File systems that cannot sync a folder say
// EINVAL or ENOTSUP; there is nothing more to do there.
func syncDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	f, err := os.Open(filepath.Clean(dir))
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
