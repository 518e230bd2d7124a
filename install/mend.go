package install

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"skald-connectors/internal/atomicfile"
)

// MendReceipts names the connectors whose receipt is missing or damaged, and where
// write is set writes it anew from the version folders. One of a newer format is left alone.
func (s *Store) MendReceipts(ctx context.Context, write bool) ([]string, error) {
	if write {
		unlock, err := s.lockStore(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	all, problems := s.Receipts()
	var mended []string
	for _, r := range all {
		if !r.rebuilt {
			continue
		}
		mended = append(mended, r.Connector)
		if write {
			problems = errors.Join(problems, s.writeReceipt(r, func(string) {}))
		}
	}
	return mended, problems
}

// Leftovers lists what interrupted commands left and a Sweep would take away, as paths
// below the home; a folder that a living process works on is not among them.
func (s *Store) Leftovers() []string {
	var out []string
	for _, place := range []string{connectorsDir + "/*", workDir + "/*", stateDir + "/*", depsDir} {
		for _, prefix := range []string{stagePrefix, trashPrefix} {
			found, _ := filepath.Glob(filepath.Join(s.home, filepath.FromSlash(place), prefix+"*"))
			for _, path := range found {
				if rel, err := filepath.Rel(s.home, path); err == nil && !s.alive(filepath.Base(path)) {
					out = append(out, filepath.ToSlash(rel))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// alive tells whether a process holds the lock of a stage.
func (s *Store) alive(folder string) bool {
	unlock, free, err := atomicfile.TryLock(filepath.Join(s.home, locksDir, folder+".lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil && free {
		unlock()
	}
	return err == nil && !free
}
