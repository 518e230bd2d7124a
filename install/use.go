package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// usePrefix begins the lock files of sessions,
// ".use-<token>-<version>-<digest>-<name>.lock".
const usePrefix = ".use-"

// Use keeps the work folder of a version, and the packages that it links to, from
// being swept until release is called or this process ends: a session goes on with
// the files that it was started with, whatever version the record names later. Call
// it before the files are checked, and read the record once more afterwards: a sweep
// that is under way knows only what the records named when it began. It waits for
// nothing.
func (s *Store) Use(name string, ref Ref) (release func(), err error) {
	if err := errors.Join(manifest.ValidID(name), ref.valid()); err != nil {
		return nil, fmt.Errorf("using %q: %w", name, err)
	}
	return s.liveLock(usePrefix + newToken() + "-" + ref.Dir() + "-" + name)
}

// parseUse reads the name of a session's lock file, without its end.
func parseUse(file string) (name, dir string, ok bool) {
	rest, ok := strings.CutPrefix(file, usePrefix)
	parts := strings.SplitN(rest, "-", 4)
	if !ok || len(parts) != 4 || manifest.ValidID(parts[3]) != nil {
		return "", "", false
	}
	dir = parts[1] + "-" + parts[2]
	_, ok = parseRef(parts[3], dir)
	return parts[3], dir, ok
}

// used adds the version folders that sessions run from to those that the records
// name, and gives the trees that these link to.
func (w *sweep) used(files []string) {
	for _, file := range files {
		name, dir, ok := parseUse(file)
		if !ok {
			continue
		}
		if w.running[name] == nil {
			w.running[name] = map[string]bool{}
		}
		w.running[name][dir] = true
		work, err := w.store.find(workDir, name, dir)
		if err != nil {
			continue // it was taken away with its activation
		}
		for _, link := range [...]string{"node_modules", ".pydeps"} {
			if target, err := work.Readlink(link); err == nil {
				w.linked = append(w.linked, filepath.Base(filepath.Dir(target)))
			}
		}
		work.Close()
	}
}

// GoBack makes an earlier version of an activation ready to be named by its record
// again: its work folder holds the shipped bytes, and beside them what the
// connector has kept in the folder of the later version since; a file is replaced
// only by a younger one. left names what stayed behind, with the reason. Hold the
// activation's LockName. Errors: *ChangedError when the earlier version is not what
// was installed.
func (s *Store) GoBack(ctx context.Context, name string, to Ref, files []manifest.File, from Ref, fromFiles []manifest.File, step func(string)) (left []string, err error) {
	fail := func(err error) ([]string, error) {
		return left, fmt.Errorf("going back to %s of %q: %w", to.Dir(), name, err)
	}
	if err := errors.Join(manifest.ValidID(name), from.valid()); err != nil {
		return fail(err)
	}
	if err := s.Check(to, files); err != nil {
		return nil, err
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	step("heal")
	if err := s.heal(name, to, files); err != nil {
		return fail(err)
	}
	dir, err := s.find(workDir, name, to.Dir())
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	st := &Stage{store: s, ref: to, files: files, name: name, reused: true, step: step}
	step("carry-back")
	if left, err = st.carryFrom(dir, origin{ref: from, shipped: fromFiles}); err != nil {
		return fail(err)
	}
	return left, syncDirs(dir)
}

// Living counts the stages of other processes that are installing something, and the
// sessions that run from a work folder.
func (s *Store) Living(ctx context.Context) (stages, sessions int, err error) {
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	alive, err := s.liveLocks()
	for _, l := range alive {
		if strings.HasPrefix(l, stagePrefix) {
			stages++
		} else {
			sessions++
		}
	}
	return stages, sessions, err
}

// A ForeignError says that a home holds what is not ours: names like "work" could then
// be somebody's own, so nothing is wiped.
type ForeignError struct {
	Home  string
	Names []string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("wiping %q: it holds what is not of this program: %s", e.Home, strings.Join(e.Names, ", "))
}

// Wipe removes the home with what is in it under those names, the locks last. What
// cannot be removed does not keep the rest from being removed. Errors: *ForeignError,
// and then everything is as it was.
func (s *Store) Wipe(names []string) error {
	home, err := s.realHome()
	if err != nil {
		return fmt.Errorf("opening the home: %w", err)
	}
	root, err := os.OpenRoot(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %q: %w", home, atomicfile.Cause(err))
	}
	defer root.Close()
	entries, err := list(root)
	if err != nil {
		return err
	}
	names = append(slices.Clone(names), locksDir)
	var foreign []string
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), trashPrefix): // of a purge that was killed
			names = append(names, e.Name())
		case !slices.Contains(names, e.Name()) && !unfinishedCopy(e.Name(), names):
			foreign = append(foreign, e.Name())
		}
	}
	if len(foreign) > 0 {
		return &ForeignError{Home: home, Names: foreign}
	}
	for _, name := range names {
		err = errors.Join(err, discard(root, name, s.step))
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		_ = root.Remove(e.Name()) // an unfinished copy; the removal of the home tells
	}
	if err := os.Remove(home); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %q: %w", home, atomicfile.Cause(err))
	}
	if home != s.home {
		return unlessGone(os.Remove(s.home)) // the link to it
	}
	return nil
}

// unfinishedCopy tells the temporary file of a write to one of those names.
func unfinishedCopy(entry string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(entry, "."+n+".") })
}

// liveLocks names the stages and sessions whose lock is held, and removes the lock
// files of dead ones.
func (s *Store) liveLocks() ([]string, error) {
	dir, err := s.top(locksDir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var alive []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok || !strings.HasPrefix(name, stagePrefix) && !strings.HasPrefix(name, usePrefix) {
			continue
		}
		file := filepath.Join(dir, e.Name())
		unlock, free, err := tryExisting(file)
		if err != nil {
			return nil, err
		}
		if !free {
			alive = append(alive, name)
			continue
		}
		if unlock != nil {
			s.step("sweep-lock")
			dropLock(file, unlock)
		}
	}
	return alive, nil
}

// tryExisting tries a lock whose file was there a moment ago. Where its holder has
// removed it since, it is free and unlock is nil: the file is not made again.
func tryExisting(file string) (unlock func(), free bool, err error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	return atomicfile.TryLock(file)
}
