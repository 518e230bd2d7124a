package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// commitWait bounds the wait for the store's lock in Work and Commit. It is held
// while folders are renamed or swept, which takes seconds at the very most.
const commitWait = time.Minute

// durable are the folders of a work folder that are links into state/<name>. Section
// 2 of the format keeps shipped files out of them.
var durable = [...]string{"auth", "state"}

// An origin is an older work folder whose own files are carried over.
type origin struct {
	ref     Ref
	shipped []manifest.File
}

// Work makes the copy that runs while the version is tried out, work/<name>/ beside
// the place where Commit puts it, and gives its absolute path: the shipped files
// (hashed while they are copied; 0700 and 0600), auth and state as links into
// state/<name>, and the connector's own files from a work folder of the same version
// when there is one. Calling it again gives the same folder. A stage is for one
// activation; hold its LockName.
func (st *Stage) Work(name string) (string, error) {
	dir := filepath.Join(st.store.home, workDir, name, st.folder())
	switch {
	case st.ended:
		return "", fmt.Errorf("preparing %q to run: the stage has ended", name)
	case st.name != "" && st.name != name:
		return "", fmt.Errorf("preparing %q to run: the stage is for %q", name, st.name)
	case st.built:
		return dir, nil
	}
	if err := manifest.ValidID(name); err != nil {
		return "", fmt.Errorf("preparing %q to run: %w", name, err)
	}
	st.name = name
	if err := st.buildWork(); err != nil {
		st.discardAt(workDir, name) // else Discard or a sweep does it
		return "", fmt.Errorf("preparing %q to run: %w", name, err)
	}
	st.built = true
	return dir, nil
}

func (st *Stage) buildWork() error {
	ctx, cancel := context.WithTimeout(context.Background(), commitWait)
	defer cancel()
	if err := st.locked(ctx, st.makeFolders); err != nil {
		return err
	}
	dir, err := st.store.find(workDir, st.name, st.folder())
	if err != nil {
		return err
	}
	defer dir.Close()
	version, err := st.version()
	if err != nil {
		return err
	}
	defer version.Close()
	if err := copyFiles(ctx, dir, st.files, fromRoot(version), filePrivate, "work", st.step); err != nil {
		return err
	}
	st.step("work-links")
	if err := st.link(dir); err != nil {
		return err
	}
	_, err = st.carryFrom(dir, origin{ref: st.ref, shipped: st.files})
	return err // its folders are synced by Commit
}

// makeFolders makes the stage's folder below work/<name>, by which a sweep leaves the
// activation alone, and the durable folders. The store's lock is held.
func (st *Stage) makeFolders() error {
	parent, err := st.store.ensure(workDir, st.name)
	if err != nil {
		return err
	}
	defer parent.Close()
	st.step("work-folder")
	if _, err := makeStage(parent, st.folder()); err != nil {
		return err
	}
	st.step("work-state")
	state, err := st.store.ensure(stateDir)
	if err != nil {
		return err
	}
	defer state.Close()
	for _, below := range []string{st.name, filepath.Join(st.name, durable[0]), filepath.Join(st.name, durable[1])} {
		if _, err := state.Lstat(below); errors.Is(err, fs.ErrNotExist) {
			st.made = append(st.made, below)
		}
	}
	for _, d := range durable {
		r, err := st.store.ensure(stateDir, st.name, d)
		if err != nil {
			return err
		}
		r.Close()
	}
	return nil
}

// Carry brings the files that an older version's work folder holds and that version
// did not ship (a connector may keep its session in its own folder) into the staged
// work folder; Work must have been called. shipped are the older version's files.
// Commit does it once more for what a running session wrote since. left names what
// stayed behind, with the reason, for a person. A missing old folder is fine.
func (st *Stage) Carry(from Ref, shipped []manifest.File) (left []string, err error) {
	if !st.built || st.ended {
		return nil, fmt.Errorf("carrying over the files of %q %s: no work folder is staged", from.Connector, from.Dir())
	}
	if err := from.valid(); err != nil {
		return nil, fmt.Errorf("carrying over the files of %q: %w", from.Connector, err)
	}
	dir, err := st.store.find(workDir, st.name, st.folder())
	if err != nil {
		return nil, fmt.Errorf("carrying over the files of %q %s: %w", from.Connector, from.Dir(), err)
	}
	defer dir.Close()
	o := origin{ref: from, shipped: shipped}
	if left, err = st.carryFrom(dir, o); err != nil {
		return left, fmt.Errorf("carrying over the files of %q %s: %w", from.Connector, from.Dir(), err)
	}
	st.from = append(st.from, o)
	return left, nil
}

// carryFrom brings the own files of a committed work folder of this activation, when
// it is there, into dst, and then makes sure that dst's shipped files are the
// shipped ones.
func (st *Stage) carryFrom(dst *os.Root, o origin) (left []string, err error) {
	src, err := st.store.find(workDir, st.name, o.ref.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := loosen(src, "."); err != nil {
		return nil, fmt.Errorf("opening the older work folder: %w", atomicfile.Cause(err))
	}
	if left, err = carry(dst, src, o.shipped, st.files, st.step); err != nil {
		return left, err
	}
	if err := st.adopt(src); err != nil {
		return left, err
	}
	return left, st.repair(dst)
}

// commitWork puts the work folder in place. The store's lock is held.
func (st *Stage) commitWork() error {
	parent, err := st.store.find(workDir, st.name)
	if err != nil {
		return err
	}
	defer parent.Close()
	if now, err := parent.Lstat(st.ref.Dir()); err == nil && !now.IsDir() {
		if err := discard(parent, st.ref.Dir(), st.step); err != nil {
			return err
		}
	} else if err == nil {
		return st.mergeWork(parent)
	}
	staged, err := openDir(parent, st.folder(), false)
	if err != nil {
		return err
	}
	err = st.finishWork(staged)
	staged.Close()
	if err != nil {
		return err
	}
	st.step("commit-work")
	if err := parent.Rename(st.folder(), st.ref.Dir()); err != nil {
		return fmt.Errorf("moving the work folder into place: %w", atomicfile.Cause(err))
	}
	return syncDir(parent, ".")
}

// finishWork brings the staged folder up to date after the trial: late files of the
// older version, and whatever the connector did to the shipped files and the links.
func (st *Stage) finishWork(staged *os.Root) error {
	if err := loosen(staged, "."); err != nil {
		return fmt.Errorf("opening the work folder: %w", atomicfile.Cause(err))
	}
	for _, o := range st.from {
		if _, err := st.carryFrom(staged, o); err != nil {
			return err
		}
	}
	if err := st.repair(staged); err != nil {
		return err
	}
	if err := st.adopt(staged); err != nil {
		return err
	}
	if err := st.link(staged); err != nil {
		return err
	}
	return syncDirs(staged)
}

// mergeWork brings an existing work folder of the same version up to date, file by
// file, because a folder cannot be exchanged in one step: every moment shows the old
// or the new form of each file, and the shipped ones are the same in both.
func (st *Stage) mergeWork(parent *os.Root) error {
	final, err := openDir(parent, st.ref.Dir(), false)
	if err != nil {
		return err
	}
	defer final.Close()
	st.step("commit-merge")
	if err := removeTemps(final); err != nil {
		return err
	}
	staged, err := openDir(parent, st.folder(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return st.finishWork(final) // moved into place by a Commit that ended in an error later
	}
	if err != nil {
		return err
	}
	defer staged.Close()
	if err := errors.Join(loosen(staged, "."), loosen(final, ".")); err != nil {
		return fmt.Errorf("opening the work folder: %w", atomicfile.Cause(err))
	}
	if _, err := carry(final, staged, st.files, st.files, st.step); err != nil {
		return err
	}
	if err := st.adopt(staged); err != nil {
		return err
	}
	return st.finishWork(final)
}

// link makes the links of a work folder, and puts them back where the connector
// replaced them; what it wrote into durable folders was adopted before.
func (st *Stage) link(dir *os.Root) error {
	for d, want := range st.links() {
		if now, err := dir.Readlink(d); err == nil && now == want {
			continue
		}
		if err := discard(dir, d, st.step); err != nil {
			return err
		}
		if err := dir.Symlink(want, d); err != nil {
			return fmt.Errorf("linking %q: %w", d, atomicfile.Cause(err))
		}
	}
	return nil
}

// adopt copies what a connector keeps in real folders auth and state (it may remove
// the links and make folders) to where the links point.
func (st *Stage) adopt(dir *os.Root) error {
	for _, d := range durable {
		if fi, err := dir.Lstat(d); err != nil || !fi.IsDir() {
			continue
		}
		src, err := openDir(dir, d, false)
		if err != nil {
			return err
		}
		defer src.Close()
		dst, err := st.store.ensure(stateDir, st.name, d)
		if err != nil {
			return err
		}
		defer dst.Close()
		st.step("adopt-" + d)
		if err := copyAll(dst, src, st.step); err != nil {
			return err
		}
	}
	return nil
}
