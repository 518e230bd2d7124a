package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"skald-connectors/fetch"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// bundle is what a Stage needs of a *fetch.Bundle.
type bundle interface {
	Entry() manifest.Entry
	Files() []manifest.File
	Open(path string) (io.ReadCloser, error)
}

// A Stage is one version on its way to one activation. It holds a lock that ends
// with the process, by which a sweep sees that it is alive. It is for one goroutine.
//
// End it with Commit or Discard. After a Commit, Discard does nothing; a committed
// version that no record names is removed by a later sweep.
type Stage struct {
	store *Store
	ref   Ref
	files []manifest.File
	step  func(string)
	token string
	alive func() // lets go of the stage's lock and removes its file

	reused bool   // the version was committed before, nothing is staged
	name   string // the activation that Work was called for
	built  bool   // its work folder is complete
	from   []origin
	trees  []*Tree  // dependencies that its work folder links to
	made   []string // folders below state/ that were not there before
	done   *Installed
	ended  bool
}

// Installed says where a committed version is.
type Installed struct {
	Ref  Ref
	Dir  string // the read-only version folder
	Work string // the activation's copy, which runs
}

// Stage writes the bundle's files into a new folder beside the place they are for,
// durably, and leaves everything that is installed alone. The same version that is
// already here and hashes clean is used as it is.
//
// step, when not nil, is told the name of each step on the file system before it is
// made, here and in the methods of the Stage. On an error nothing is left. The error
// wraps the operating system's (a full disk), and is a *NewerError when a newer
// program keeps the receipt.
func (s *Store) Stage(ctx context.Context, b *fetch.Bundle, step func(string)) (*Stage, error) {
	if b == nil {
		return nil, errors.New("staging: no bundle")
	}
	return s.stage(ctx, b, step)
}

func (s *Store) stage(ctx context.Context, b bundle, step func(string)) (*Stage, error) {
	entry, files := b.Entry(), b.Files()
	if step == nil {
		step = func(string) {}
	}
	st := &Stage{store: s, files: files, step: step, token: newToken(), ref: newRef(entry.ID, entry.Version, files)}
	if err := st.prepare(ctx, b); err != nil {
		st.Discard() // what it cannot remove now is swept
		return nil, fmt.Errorf("staging %q: %w", entry.ID, err)
	}
	return st, nil
}

func (st *Stage) prepare(ctx context.Context, b bundle) error {
	if err := st.ref.valid(); err != nil {
		return err
	}
	if err := manifest.ValidPaths(st.files); err != nil {
		return err
	}
	if _, err := st.store.receipt(st.ref.Connector); err != nil {
		return err
	}
	if err := st.register(ctx); err != nil {
		return err
	}
	if err := st.store.Check(st.ref, st.files); err == nil {
		st.reused = true
		return nil
	}
	dir, err := st.store.find(connectorsDir, st.ref.Connector, st.folder())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := copyFiles(ctx, dir, st.files, b.Open, fileReadOnly, "stage", st.step); err != nil {
		return err
	}
	st.step("stage-seal")
	if err := syncDirs(dir); err != nil {
		return err
	}
	return seal(dir)
}

// register takes the stage's lock and makes its folder. From then on, until Commit
// or Discard, no sweep touches the versions of the connector. The folder is made
// under the store's lock, so a sweep that is under way is over.
func (st *Stage) register(ctx context.Context) error {
	locks, err := st.store.top(locksDir)
	if err != nil {
		return err
	}
	st.step("stage-lock")
	path := filepath.Join(locks, st.folder()+".lock")
	unlock, err := atomicfile.Lock(ctx, path, nil)
	if err != nil {
		return err
	}
	st.alive = func() { dropLock(path, unlock) }
	return st.locked(ctx, func() error {
		parent, err := st.store.ensure(connectorsDir, st.ref.Connector)
		if err != nil {
			return err
		}
		defer parent.Close()
		st.step("stage-folder")
		_, err = makeStage(parent, st.folder())
		return err
	})
}

func (st *Stage) folder() string { return stagePrefix + st.token }

func (st *Stage) locked(ctx context.Context, do func() error) error {
	unlock, err := st.store.lockStore(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// Ref names the staged version.
func (st *Stage) Ref() Ref { return st.ref }

// Dir is the absolute path of the version folder: staged, or committed when it is
// used again or Commit has been called. Nothing may be written there.
func (st *Stage) Dir() string {
	if st.reused || st.done != nil {
		return st.store.VersionDir(st.ref)
	}
	return filepath.Join(st.store.home, connectorsDir, st.ref.Connector, st.folder())
}

// version opens the version folder.
func (st *Stage) version() (*os.Root, error) {
	return st.store.find(connectorsDir, st.ref.Connector, filepath.Base(st.Dir()))
}

// Commit makes the staged version and the activation's work folder true, each by one
// rename, and writes the receipt. The work folder is made first when Work was not
// called. The version's bytes are hashed once more: what ran since it was staged
// could have reached them.
//
// A work folder of the same version that is already there stays: its shipped files
// are repaired where they differ, and the connector's own files are brought up to
// date. Commit can be repeated after an error, and after success gives the same
// answer again. It does not write the activation record; until that is written, hold
// a lock that every Sweep is called under.
func (st *Stage) Commit(name string) (Installed, error) {
	if st.done != nil && st.name == name {
		return *st.done, nil
	}
	if st.ended {
		return Installed{}, fmt.Errorf("committing %q: the stage has ended", name)
	}
	if _, err := st.Work(name); err != nil {
		return Installed{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWait)
	defer cancel()
	if err := st.locked(ctx, st.commit); err != nil {
		return Installed{}, fmt.Errorf("committing %q: %w", name, err)
	}
	st.done = &Installed{Ref: st.ref, Dir: st.store.VersionDir(st.ref), Work: st.store.WorkDir(name, st.ref)}
	st.end()
	return *st.done, nil
}

func (st *Stage) commit() error {
	if err := st.commitVersion(); err != nil {
		return err
	}
	if err := st.commitWork(); err != nil {
		return err
	}
	return st.store.addReceipt(st.ref, st.step)
}

func (st *Stage) commitVersion() error {
	parent, err := st.store.find(connectorsDir, st.ref.Connector)
	if err != nil {
		return err
	}
	defer parent.Close()
	if !st.reused {
		staged, err := st.version()
		if err != nil {
			return err
		}
		err = checkVersion(staged, st.ref, st.files, hashed(staged))
		staged.Close()
		if err != nil {
			return err
		}
	}
	err = st.store.Check(st.ref, st.files)
	if err == nil || st.reused {
		return err // committed by us before an error, by another process, or long ago
	}
	st.step("commit-clear")
	if err := discard(parent, st.ref.Dir(), st.step); err != nil {
		return err
	}
	st.step("commit-version")
	if err := parent.Rename(st.folder(), st.ref.Dir()); err != nil {
		return fmt.Errorf("moving the files into place: %w", atomicfile.Cause(err))
	}
	st.reused = true
	return syncDir(parent, ".")
}

// Discard gives the stage up and removes what it made. It may be called twice.
func (st *Stage) Discard() error {
	if st.ended || st.alive == nil {
		return nil
	}
	err := st.removeStaged()
	st.end()
	ctx, cancel := context.WithTimeout(context.Background(), letGo)
	defer cancel()
	st.locked(ctx, st.removeMade) // what it misses is swept
	if err != nil {
		return fmt.Errorf("giving up %q: %w", st.ref.Connector, err)
	}
	return nil
}

// end removes what marks the stage as alive.
func (st *Stage) end() {
	st.step("end")
	st.ended = true
	st.removeStaged()
	st.alive()
}

// removeStaged removes the two folders that only this stage uses.
func (st *Stage) removeStaged() error {
	err := st.discardAt(connectorsDir, st.ref.Connector)
	if st.name != "" {
		err = errors.Join(err, st.discardAt(workDir, st.name))
	}
	return err
}

// removeMade removes shared folders that hold nothing.
func (st *Stage) removeMade() error {
	if root, err := st.store.find(connectorsDir); err == nil {
		removeEmpty(root, st.ref.Connector)
		root.Close()
	}
	if st.name == "" {
		return nil
	}
	if root, err := st.store.find(workDir); err == nil {
		removeEmpty(root, st.name)
		root.Close()
	}
	root, err := st.store.find(stateDir)
	if err != nil {
		return err
	}
	defer root.Close()
	slices.Reverse(st.made) // the innermost first
	removeEmpty(root, st.made...)
	return nil
}

// discardAt removes the stage's folder from one of our folders, which may be missing.
func (st *Stage) discardAt(top, below string) error {
	root, err := st.store.find(top, below)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return discard(root, st.folder(), st.step)
}
