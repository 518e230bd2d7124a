// Package atomicfile replaces a file whole, under a lock that other processes
// respect, and reads our own state files back without trusting them (DESIGN.md,
// "On disk"; STYLE.md 10 and 12).
//
// Its law:
//   - A reader sees the old bytes or the new ones, never a mixture and never
//     an empty file: temporary file beside the target, fsync, rename, fsync of
//     the folder.
//   - A symbolic link that stands for the target stays; what it points at is
//     replaced.
//   - A file is never readable by more people than the caller asked for, not
//     even for the moment in which it is written.
//   - A lock ends with the process that holds it, however that process ends.
//
// It never parses what it reads or writes, never chooses a place, and never
// follows a link on the way to one of our own state files.
package atomicfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds a chain of symbolic links; it is the bound that Linux itself
// uses for one path.
const maxLinks = 40

// tempTries bounds how often a new temporary name is tried when a sweeper took
// the previous one in the instant between its creation and its lock.
const tempTries = 8

// Write replaces the file at path with data, whole or not at all.
//
// When the file exists, its owner is kept and so is its mode, narrowed by perm:
// 0644 written with perm 0600 becomes 0600, 0600 written with 0644 stays 0600. A
// new file gets perm less the umask. A symbolic link at path stays and its target
// is replaced (or made, when the link dangles). Hard links are not kept: the other
// names go on showing the old bytes.
//
// It refuses a target that is not a regular file, one whose owner made it
// read-only, and one whose owner cannot be kept. The temporary file is removed on
// every failure; one left by a killed process is removed by the next Write to the
// same target, and by SweepTemps. The error wraps the operating system's (syscall.ENOSPC, …).
func Write(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, perm, func(string) {})
}

// ErrChanged says that the file does not hold what its writer had read: somebody
// else wrote it in between. Nothing of theirs was lost.
var ErrChanged = errors.New("it was changed by another program")

// WriteIf is Write for a file that others write too: it replaces path only while
// it still holds old, and gives an error that wraps ErrChanged otherwise. A nil old
// stands for "there is no file"; a dangling link counts as none.
//
// Where the system can exchange two files in one step (Linux, macOS), the bytes are
// compared after the exchange and given back when they are not old, so that no write
// of another program is lost however close it comes. Elsewhere they are compared
// just before the rename. Programs that both use WriteIf on one file share a Lock.
func WriteIf(path string, old, data []byte, perm fs.FileMode) error {
	return writeWith(path, data, perm, func(string) {}, func(f *os.File, target string) error {
		return finishIf(f, target, old)
	})
}

// write is Write with a hook that is called before each step, so that a test can
// die there.
func write(path string, data []byte, perm fs.FileMode, step func(string)) error {
	return writeWith(path, data, perm, step, finish)
}

// writeWith writes and lets last put the temporary file into place.
func writeWith(path string, data []byte, perm fs.FileMode, step func(string), last func(*os.File, string) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %q: %w", path, Cause(err))
		}
	}()
	step("resolve")
	target, err := resolve(path)
	if err != nil {
		return err
	}
	old, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		old = nil
	} else if err != nil {
		return err
	} else if err := replaceable(old); err != nil {
		return err
	}
	return replace(target, old, data, perm.Perm(), step, last)
}

// replace writes data beside target and renames it into place. old is nil when
// there is no target yet.
func replace(target string, old fs.FileInfo, data []byte, perm fs.FileMode, step func(string), last func(*os.File, string) error) error {
	first := perm
	if old != nil {
		first = perm & 0o600 // the old owner and group are given back before the old bits
	}
	dir, base := filepath.Split(target)
	sweepTemps(dir, base)
	step("create")
	f, err := createTemp(dir, base, first)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	step("write")
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := settle(f, old, perm); err != nil {
		return err
	}
	step("sync")
	if err := f.Sync(); err != nil {
		return err
	}
	step("rename")
	if err := last(f, target); err != nil {
		return err
	}
	done = true
	step("sync-folder")
	return syncDir(dir)
}

// settle gives the temporary file the owner and mode that the target will have.
func settle(f *os.File, old fs.FileInfo, perm fs.FileMode) error {
	if old == nil {
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		// A umask may hide the file from others, but not from us.
		if mode := fi.Mode().Perm() | perm&0o600; mode != fi.Mode().Perm() {
			return f.Chmod(mode)
		}
		return nil
	}
	mode := old.Mode().Perm() & perm
	sameGroup, err := keepOwner(f, old)
	if err != nil {
		return err
	}
	if !sameGroup {
		mode &^= 0o070 // these bits were meant for another group
	}
	return f.Chmod(mode)
}

func replaceable(old fs.FileInfo) error {
	if !old.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if old.Mode().Perm()&0o200 == 0 {
		return errors.New("it is read-only")
	}
	return nil
}

// A temporary file is called .TARGET.tmp-RANDOM.
const (
	tempMark   = ".tmp-"
	tempRandom = 13 // letters and digits of base32
)

func tempPrefix(base string) string { return "." + base + tempMark }

func createTemp(dir, base string, perm fs.FileMode) (*os.File, error) {
	for range tempTries {
		name := dir + tempPrefix(base) + strings.ToLower(rand.Text()[:tempRandom])
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return nil, err
		}
		if claimTemp(f) {
			return f, nil
		}
		f.Close()
		os.Remove(name)
	}
	return nil, errors.New("the temporary file was taken away")
}

// SweepTemps removes the temporary files in a folder whose writers were killed, whatever
// their targets: one that is never written again would keep its own for ever. A
// living writer's stays. Nothing depends on it, so it reports nothing.
func SweepTemps(dir string) {
	sweepWhere(dir, func(name string) bool {
		target, random, found := cutLast(name, tempMark)
		return found && len(target) > 1 && target[0] == '.' && len(random) == tempRandom && strings.Trim(random, "abcdefghijklmnopqrstuvwxyz234567") == ""
	})
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// sweepTemps removes temporary files of the same target whose writer is dead.
func sweepTemps(dir, base string) {
	sweepWhere(dir, func(name string) bool { return strings.HasPrefix(name, tempPrefix(base)) })
}

func sweepWhere(dir string, temp func(name string) bool) {
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if temp(e.Name()) && e.Type().IsRegular() {
			removeDeadTemp(filepath.Join(dir, e.Name()))
		}
	}
}

// resolve follows the links that stand for path, and returns the path of the file
// itself, which need not exist. The folders on the way are resolved by the system,
// never by cleaning the text: "link/../x" is not "x".
func resolve(path string) (string, error) {
	for range maxLinks {
		dir, base := filepath.Split(path)
		if base == "" || base == "." || base == ".." {
			return "", errors.New("it names a folder")
		}
		if dir != "" {
			real, err := filepath.EvalSymlinks(dir)
			if err != nil {
				return "", err
			}
			dir = strings.TrimSuffix(real, string(filepath.Separator)) + string(filepath.Separator)
		}
		link, err := os.Readlink(dir + base)
		if err != nil {
			return dir + base, nil // not a link, or not there; Lstat will say
		}
		if filepath.IsAbs(link) {
			dir = ""
		}
		path = dir + link
	}
	return "", fmt.Errorf("more than %d symbolic links", maxLinks)
}

// holds tells whether the file at path has exactly these bytes.
func holds(path string, want []byte) (bool, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return err == nil && bytes.Equal(got, want), err
}

// compareAndRename is finishIf for systems that cannot exchange two files.
func compareAndRename(f *os.File, target string, old []byte) error {
	if old == nil {
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			return ErrChanged
		}
	} else if same, err := holds(target, old); err != nil || !same {
		return ErrChanged
	}
	return finish(f, target)
}

// Cause strips the operation and the path that package os puts around an error: they
// name a temporary file, or a thing that the caller names in the user's terms.
func Cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
