package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// UnsafeError says that a state file or folder is not ours alone: another user
// could have written what we are about to believe. Nothing was read or changed.
type UnsafeError struct {
	Path string
	Why  string // "it is a symbolic link", "it can be written by others", …
}

func (e *UnsafeError) Error() string { return fmt.Sprintf("%q is not safe to use: %s", e.Path, e.Why) }

// Unwritable tells that the place cannot be written to by us: another's, or on a file system that is read-only. A disk
// that is full is none.
func Unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Read returns the content of one of our own state files, at most limit bytes. A
// larger file is an error, never a cut one.
//
// It returns an *UnsafeError for a symbolic link, anything that is not a regular
// file, a file of another user, and one that its group or everybody can write. A
// file that is not there gives an error that wraps fs.ErrNotExist.
func Read(path string, limit int64) ([]byte, error) {
	data, err := read(path, limit, readTries)
	if err != nil {
		var unsafe *UnsafeError
		if errors.As(err, &unsafe) {
			return nil, err
		}
		return nil, fmt.Errorf("reading %q: %w", path, Cause(err))
	}
	return data, nil
}

// readTries is how often a file may be replaced while it is being opened.
const readTries = 10

func read(path string, limit int64, tries int) ([]byte, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if why := unsafe(before, false); why != "" {
		return nil, &UnsafeError{Path: path, Why: why}
	}
	f, err := openNoFollow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(before, fi) {
		if tries > 1 { // a writer of ours replaced it whole in between
			return read(path, limit, tries-1)
		}
		return nil, &UnsafeError{Path: path, Why: "it was exchanged while it was opened"}
	}
	var data bytes.Buffer
	data.Grow(int(min(fi.Size(), limit)) + bytes.MinRead) // one read instead of many small ones
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data.Bytes(), nil
}

// unsafe says why the thing is not ours alone, or "".
func unsafe(fi fs.FileInfo, wantDir bool) string {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case wantDir && !fi.IsDir():
		return "it is not a folder"
	case !wantDir && !fi.Mode().IsRegular():
		return "it is not a regular file"
	case !ownedByUs(fi):
		return "it belongs to another user"
	case writableByOthers(fi):
		return "it can be written by others"
	}
	return ""
}

// PrivateDir makes sure that path is a folder of ours with mode 0700. Missing
// parents are made with 0700 too; existing parents are left alone.
//
// An existing folder that others can only read is narrowed to 0700. An
// *UnsafeError is returned for a symbolic link, a folder of another user, and one
// that others could write: what is inside may not be ours.
func PrivateDir(path string) error {
	if err := privateDir(path); err != nil {
		var unsafe *UnsafeError
		if errors.As(err, &unsafe) {
			return err
		}
		return fmt.Errorf("making the folder %q: %w", path, Cause(err))
	}
	return nil
}

func privateDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(path)), 0o700); err != nil {
		return err
	}
	made := os.Mkdir(path, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if why := unsafe(fi, true); why != "" {
		return &UnsafeError{Path: path, Why: why}
	}
	if made == nil {
		if err := syncDir(filepath.Dir(filepath.Clean(path))); err != nil {
			return err
		}
	}
	return narrow(path, fi)
}

// RenameDir moves a folder in one step and makes the move durable. The new name
// must be free, or an empty folder where the system replaces those. Both names
// must be on one file system.
func RenameDir(old, new string) error {
	err := os.Rename(old, new)
	if err == nil {
		err = syncDir(filepath.Dir(filepath.Clean(new)))
	}
	if from := filepath.Dir(filepath.Clean(old)); err == nil && from != filepath.Dir(filepath.Clean(new)) {
		err = syncDir(from)
	}
	if err != nil {
		return fmt.Errorf("moving %q to %q: %w", old, new, Cause(err))
	}
	return nil
}
