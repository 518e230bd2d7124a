package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// keptPrefix begins the name of a file in state/ that says that a person asked to keep the data of an activation when
// it was uninstalled, and what it is the data of. It lies beside state/<name>, where the connector can write: data that
// it left itself is nothing that a person kept. State without it and without a record is what an install left that was
// given up or killed.
const keptPrefix = ".kept-"

// keptLimit bounds that file: an id and the place of a marketplace.
const keptLimit = 64 << 10

// Kept tells whether an uninstalled activation's data was kept under this name, and what for: the text that Remove was
// given.
func (s *Store) Kept(name string) (keptFor string, ok bool) {
	root, err := s.find(stateDir, name)
	if err != nil {
		return "", false
	}
	root.Close()
	data, err := s.keptMark(name)
	return string(data), err == nil
}

func (s *Store) keptMark(name string) ([]byte, error) {
	dir, err := s.top(stateDir)
	if err != nil {
		return nil, err
	}
	return atomicfile.Read(filepath.Join(dir, keptPrefix+name), keptLimit)
}

// keep marks the data of an activation. No data is nothing to keep.
func (s *Store) keep(name, keptFor string) error {
	root, err := s.find(stateDir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root.Close()
	dir, err := s.top(stateDir)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, keptPrefix+name), []byte(keptFor), filePrivate)
}

// unkeep takes the mark away.
func (s *Store) unkeep(name string) error {
	root, err := s.find(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(keptPrefix + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return atomicfile.Cause(err)
	}
	return nil
}

// Abandon removes the data that a first install left which was given up. Data that a
// person kept before stays. Hold the activation's LockName; it must have no record.
func (s *Store) Abandon(ctx context.Context, name string) error {
	if _, kept := s.Kept(name); kept || manifest.ValidID(name) != nil {
		return nil
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return fmt.Errorf("removing the data of %q: %w", name, err)
	}
	defer unlock()
	root, err := s.find(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the data of %q: %w", name, err)
	}
	defer root.Close()
	return discard(root, name, s.step)
}

// ForgetSession empties state/<name>/auth, where a connector keeps its sign-in session
// (format.md section 7). Hold the activation's LockName, and run nothing of it.
func (s *Store) ForgetSession(ctx context.Context, name string) error {
	if err := manifest.ValidID(name); err != nil {
		return fmt.Errorf("removing the session of %q: %w", name, err)
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return fmt.Errorf("removing the session of %q: %w", name, err)
	}
	defer unlock()
	root, err := s.ensure(stateDir, name)
	if err != nil {
		return fmt.Errorf("removing the session of %q: %w", name, err)
	}
	defer root.Close()
	entries, err := list(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == durable[0] || strings.HasPrefix(e.Name(), trashPrefix) { // the latter: a kill came in between
			if err := discard(root, e.Name(), s.step); err != nil {
				return err
			}
		}
	}
	auth, err := s.ensure(stateDir, name, durable[0]) // the work folder links to it
	if err != nil {
		return fmt.Errorf("removing the session of %q: %w", name, err)
	}
	return auth.Close()
}

// held tells whether a process works on the activation right now.
func (s *Store) held(name string) bool {
	dir, err := s.top(locksDir)
	if err != nil {
		return true
	}
	unlock, free, err := atomicfile.TryLock(filepath.Join(dir, name+".lock"))
	if err != nil || !free {
		return true
	}
	unlock()
	return false
}

// Heal makes the work folder of an activation hold the shipped bytes again, from the
// version folder, which is checked first. What is not a shipped file stays. It also
// makes a work folder that is missing. Hold the activation's LockName. Errors:
// *ChangedError when the version folder itself is not what was installed.
func (s *Store) Heal(ctx context.Context, name string, ref Ref, files []manifest.File) error {
	if err := s.Check(ref, files); err != nil {
		return err
	}
	if err := s.CheckWork(name, ref, files); err == nil {
		return nil
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return fmt.Errorf("repairing the work folder of %q: %w", name, err)
	}
	defer unlock()
	if err := s.heal(name, ref, files); err != nil {
		return fmt.Errorf("repairing the work folder of %q: %w", name, err)
	}
	return nil
}

func (s *Store) heal(name string, ref Ref, files []manifest.File) error {
	dir, err := s.ensure(workDir, name, ref.Dir())
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, d := range durable {
		state, err := s.ensure(stateDir, name, d)
		if err != nil {
			return err
		}
		state.Close()
	}
	st := &Stage{store: s, ref: ref, files: files, name: name, reused: true, step: s.step}
	if err := loosen(dir, "."); err != nil {
		return atomicfile.Cause(err)
	}
	if err := st.repair(dir); err != nil {
		return err
	}
	if err := st.adopt(dir); err != nil {
		return err
	}
	if err := st.link(dir); err != nil {
		return err
	}
	return syncDirs(dir)
}
