package install

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
)

// Names of what is unfinished and of what is on its way out. Ids and activation
// names never start with a dot.
const (
	stagePrefix = ".stage-"
	trashPrefix = ".trash-"
	tempPrefix  = ".skald-temp-" // a file inside a work or state folder
)

// Modes; see the package comment.
const (
	dirPrivate   fs.FileMode = 0o700
	filePrivate  fs.FileMode = 0o600
	dirReadOnly  fs.FileMode = 0o555
	fileReadOnly fs.FileMode = 0o444
)

// newToken makes a name part that is never used twice.
func newToken() string { return strings.ToLower(rand.Text()) }

// openDir opens a folder that must be a folder itself: a link, also one that stays
// below the root, could have been planted to make us write elsewhere.
func openDir(parent *os.Root, name string, create bool) (*os.Root, error) {
	full := filepath.Join(parent.Name(), name)
	if create {
		if err := makeDir(parent, name); err != nil {
			return nil, err
		}
	}
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", full, atomicfile.Cause(err))
	}
	if seen.Mode()&fs.ModeSymlink != 0 {
		return nil, &atomicfile.UnsafeError{Path: full, Why: "it is a symbolic link"}
	}
	if !seen.IsDir() {
		return nil, &atomicfile.UnsafeError{Path: full, Why: "it is not a folder"}
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", full, atomicfile.Cause(err))
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(seen, now) {
		root.Close()
		return nil, &atomicfile.UnsafeError{Path: full, Why: "it was exchanged while it was opened"}
	}
	return root, nil
}

// makeDir makes a private folder, durably; an existing one is fine.
func makeDir(parent *os.Root, name string) error {
	made, err := makeStage(parent, name)
	if err != nil || !made {
		return err
	}
	if err := syncDir(parent, "."); err != nil {
		return fmt.Errorf("making %q: %w", filepath.Join(parent.Name(), name), atomicfile.Cause(err))
	}
	return nil
}

// makeStage makes a private folder whose name needs not outlive a crash: it is renamed into place, and its parent synced then.
func makeStage(parent *os.Root, name string) (made bool, err error) {
	err = parent.Mkdir(name, dirPrivate)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err == nil {
		err = parent.Chmod(name, dirPrivate) // a umask may have taken our own rights
	}
	if err != nil {
		return false, fmt.Errorf("making %q: %w", filepath.Join(parent.Name(), name), atomicfile.Cause(err))
	}
	return true, nil
}

// makeParents makes the folders above a file, from the top down, because a umask may
// close each one to us. Their durability comes with syncTree.
func makeParents(root *os.Root, file string) error {
	parts := strings.Split(file, "/")
	for i := 1; i < len(parts); i++ {
		dir := filepath.Join(parts[:i]...)
		err := root.Mkdir(dir, dirPrivate)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = root.Chmod(dir, dirPrivate)
		}
		if err != nil {
			return fmt.Errorf("making %q: %w", dir, atomicfile.Cause(err))
		}
	}
	return nil
}

// eachDir calls visit for every folder of a tree, the deepest first. Links are not
// followed.
func eachDir(root *os.Root, visit func(dir string) error) error {
	var dirs []string
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return err
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = visit(dirs[i])
	}
	return err
}

// syncTree makes the names in a tree durable; the files are synced when they are
// written.
func syncTree(root *os.Root) error {
	return eachDir(root, func(dir string) error { return syncDir(root, dir) })
}

// seal makes a version folder read-only.
func seal(root *os.Root) error {
	err := eachDir(root, func(dir string) error { return root.Chmod(dir, dirReadOnly) })
	if err != nil {
		return fmt.Errorf("making the files read-only: %w", atomicfile.Cause(err))
	}
	return nil
}

// list gives what is in a folder, sorted by name.
func list(root *os.Root) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("listing %q: %w", root.Name(), atomicfile.Cause(err))
	}
	return entries, nil
}

// discard renames something to trash, so that a half-removed folder never looks
// like a whole one, and then removes it. A missing thing is fine.
func discard(root *os.Root, name string, step func(string)) error {
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	trash := trashPrefix + newToken()
	step("trash")
	err := root.Rename(name, trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		step("trash-remove")
		err = removeTree(root, trash)
	}
	if err != nil {
		return fmt.Errorf("removing %q: %w", filepath.Join(root.Name(), name), atomicfile.Cause(err))
	}
	return nil
}

// removeTree removes a tree, also one with read-only folders in it. Another process
// may be removing it as well.
func removeTree(root *os.Root, name string) error {
	if fi, err := root.Lstat(name); err == nil && fi.IsDir() {
		if err := loosen(root, name); err != nil {
			return err
		}
	}
	return unlessGone(root.RemoveAll(name))
}

// loosen opens every folder and file of a tree to us, from the top down, because what
// is in a closed folder cannot be listed. What runs in a work folder may have closed
// them.
func loosen(root *os.Root, dir string) error {
	if err := root.Chmod(dir, dirPrivate); err != nil {
		return unlessGone(err)
	}
	f, err := root.Open(dir)
	if err != nil {
		return unlessGone(err)
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	err = unlessGone(err)
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.IsDir() {
			err = errors.Join(err, loosen(root, p))
		} else if e.Type().IsRegular() {
			freeFile(root, p)
		}
	}
	return err
}

// unlessGone forgives that something went away meanwhile.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeEmpty removes folders that hold nothing, one after the other.
func removeEmpty(root *os.Root, dirs ...string) {
	for _, d := range dirs {
		if fi, err := root.Lstat(d); err == nil && fi.IsDir() {
			root.Remove(d)
		}
	}
}
