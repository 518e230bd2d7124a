//go:build linux || darwin

package atomicfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// finishIf puts the temporary file in the place of target if that holds old. After
// an exchange the temporary name stands for what target was at that very moment:
// what another program wrote last is either old, or goes back.
func finishIf(f *os.File, target string, old []byte) error {
	tmp := f.Name()
	if old == nil {
		err := os.Link(tmp, target) // fails when the name is taken
		switch {
		case err == nil:
			os.Remove(tmp)
			f.Close()
			return nil
		case errors.Is(err, fs.ErrExist):
			return ErrChanged
		}
		return compareAndRename(f, target, nil)
	}
	if same, err := holds(target, old); err != nil || !same {
		return ErrChanged // the usual case; the exchange is for the last microseconds
	}
	if out, err := openNoFollow(target); err == nil {
		defer out.Close()
		unix.Flock(int(out.Fd()), unix.LOCK_EX|unix.LOCK_NB) // a sweeper must leave it alone while it has the temporary name
	}
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	switch err := exchange(tmp, target); {
	case errors.Is(err, fs.ErrNotExist):
		return ErrChanged // it was removed
	case err != nil:
		return compareAndRename(f, target, old)
	}
	if same, err := holds(tmp, old); err != nil || !same {
		return giveBack(tmp, target, ours)
	}
	os.Remove(tmp)
	f.Close()
	return nil
}

// giveBack exchanges until what comes out is what went in last: anything else was
// written by somebody in between, is newer, and belongs into target.
func giveBack(tmp, target string, last fs.FileInfo) error {
	for {
		in, err := os.Lstat(tmp)
		if err != nil {
			return err
		}
		if err := exchange(tmp, target); err != nil {
			return err
		}
		out, err := os.Lstat(tmp)
		if err != nil {
			return err
		}
		if os.SameFile(out, last) {
			return ErrChanged
		}
		last = in
	}
}
