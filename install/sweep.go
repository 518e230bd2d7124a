package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// A sweep is one call of Sweep: the store's lock is held for all of it.
type sweep struct {
	store    *Store
	inUse    map[string][]Ref
	alive    map[string]bool            // names of stage folders whose process lives
	running  map[string]map[string]bool // folders below work/<name> that sessions run from
	linked   []string                   // trees that these link to
	removed  []string
	problems []error
}

// Sweep removes what interrupted commands left (dead stages, what was on its way
// out), work and version folders that no record names, and state folders whose
// activation is gone and that no person asked to keep. inUse gives, for each activation, the
// versions that its record names (current and previous); an activation that is not
// in it is gone. trees are the hashes of the dependencies that the records name. What
// a living stage may be about to use, and what a session runs from, is left alone.
//
// It says what it removed, as paths below the home. Problems do not stop it: they come
// joined in the error, beside the list. Read the records and call Sweep under the lock
// that is held from Commit until the record is written; else a version that was
// committed in between looks unused.
func (s *Store) Sweep(ctx context.Context, inUse map[string][]Ref, trees ...string) ([]string, error) {
	if _, err := os.Lstat(s.home); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return nil, fmt.Errorf("sweeping: %w", err)
	}
	defer unlock()
	w := &sweep{store: s, inUse: inUse, alive: map[string]bool{}, running: map[string]map[string]bool{}}
	locks, err := s.liveLocks()
	if err != nil {
		return nil, fmt.Errorf("sweeping: %w", err)
	}
	for _, l := range locks {
		if strings.HasPrefix(l, stagePrefix) {
			w.alive[l] = true
		}
	}
	w.used(locks)
	w.each(workDir, w.activation)
	w.each(connectorsDir, w.connector)
	w.each(stateDir, w.state)
	w.notes()
	w.trees(append(trees, w.linked...))
	if err := errors.Join(w.problems...); err != nil {
		return w.removed, fmt.Errorf("sweeping: %w", err)
	}
	return w.removed, nil
}

// open gives a folder of the home with what could be listed of it; nil where there is none, or where it
// cannot be opened.
func (w *sweep) open(top string) (*os.Root, []fs.DirEntry) {
	root, err := w.store.find(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		w.problems = append(w.problems, err)
		return nil, nil
	}
	entries, err := list(root)
	if err != nil {
		w.problems = append(w.problems, err)
	}
	return root, entries
}

// each opens every folder of top that a connector or an activation has, and removes
// the trash beside them.
func (w *sweep) each(top string, visit func(parent *os.Root, name string)) {
	root, entries := w.open(top)
	if root == nil {
		return
	}
	defer root.Close()
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trashPrefix) {
			w.remove(root, top, e.Name())
		} else if manifest.ValidID(e.Name()) == nil && !e.Type().IsRegular() { // a desktop.ini is not ours
			visit(root, e.Name())
		}
	}
}

// remove takes one thing away and notes it.
func (w *sweep) remove(root *os.Root, where, name string) bool {
	err := discard(root, name, w.store.step)
	if err != nil {
		w.problems = append(w.problems, err)
		return false
	}
	w.removed = append(w.removed, path.Join(where, name))
	return true
}

// leftovers removes the dead stages and the trash in a folder, and says whether a
// living stage is at work there.
func (w *sweep) leftovers(root *os.Root, where string, entries []fs.DirEntry) (busy bool) {
	for _, e := range entries {
		switch {
		case w.alive[e.Name()]:
			busy = true
		case strings.HasPrefix(e.Name(), stagePrefix) || strings.HasPrefix(e.Name(), trashPrefix):
			w.remove(root, where, e.Name())
		}
	}
	return busy
}

// visitDir opens one folder and clears it of leftovers; nil when there is nothing
// more to do there.
func (w *sweep) visitDir(parent *os.Root, top, name string) (*os.Root, []fs.DirEntry) {
	root, err := openDir(parent, name, false)
	if err != nil {
		w.problems = append(w.problems, err)
		return nil, nil
	}
	entries, err := list(root)
	if err != nil {
		w.problems = append(w.problems, err)
	}
	if err != nil || w.leftovers(root, path.Join(top, name), entries) {
		root.Close()
		return nil, nil
	}
	return root, entries
}

// activation clears work/<name>.
func (w *sweep) activation(parent *os.Root, name string) {
	root, entries := w.visitDir(parent, workDir, name)
	if root == nil {
		return
	}
	defer root.Close()
	used := map[string]bool{}
	for _, ref := range w.inUse[name] {
		used[ref.Dir()] = true
	}
	for _, e := range entries {
		_, ok := parseRef(name, e.Name())
		if ok && (used[e.Name()] || w.running[name][e.Name()]) {
			w.temps(root, e.Name())
		} else if ok {
			w.remove(root, path.Join(workDir, name), e.Name())
		}
	}
	if len(used) == 0 {
		removeEmpty(parent, name)
	}
}

// connector clears connectors/<id> and brings its receipt up to date.
func (w *sweep) connector(parent *os.Root, id string) {
	root, entries := w.visitDir(parent, connectorsDir, id)
	if root == nil {
		return
	}
	defer root.Close()
	receipt, err := w.store.receipt(id)
	if err != nil { // a newer program keeps this connector: leave it to that
		w.problems = append(w.problems, err)
		return
	}
	used := map[Ref]bool{}
	for _, refs := range w.inUse {
		for _, ref := range refs {
			used[ref] = true
		}
	}
	gone := 0
	for _, e := range entries {
		if ref, ok := parseRef(id, e.Name()); ok && !used[ref] && w.remove(root, path.Join(connectorsDir, id), e.Name()) {
			receipt.Versions = slices.DeleteFunc(receipt.Versions, func(r Ref) bool { return r == ref })
			gone++
		}
	}
	if err := w.receipt(receipt, gone > 0 || receipt.rebuilt); err != nil {
		w.problems = append(w.problems, err)
	}
	if len(receipt.Versions) == 0 {
		removeEmpty(parent, id)
	}
}

// receipt writes or removes the receipt of a connector whose folders changed.
func (w *sweep) receipt(r Receipt, changed bool) error {
	if len(r.Versions) > 0 {
		if !changed {
			return nil
		}
		return w.store.writeReceipt(r, w.store.step)
	}
	root, err := w.store.find(receiptsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	w.store.step("sweep-receipt")
	if err := root.Remove(r.Connector + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing receipt %q: %w", r.Connector, atomicfile.Cause(err))
	}
	return nil
}

// temps clears a folder that stays of unfinished files.
func (w *sweep) temps(parent *os.Root, name string) {
	root, err := openDir(parent, name, false)
	if err == nil {
		err = removeTemps(root)
		root.Close()
	}
	if err := unlessGone(err); err != nil {
		w.problems = append(w.problems, err)
	}
}

// state clears state/<name> of unfinished files, and removes it when its activation
// is gone, nobody works on it, and no person asked to keep it.
func (w *sweep) state(parent *os.Root, name string) {
	_, used := w.inUse[name]
	if w.working(name) || !used && w.store.held(name) {
		return
	}
	root, err := openDir(parent, name, false)
	if err != nil {
		w.problems = append(w.problems, err)
		return
	}
	for _, d := range durable {
		w.temps(root, d)
	}
	root.Close()
	if _, kept := w.store.Kept(name); !used && !kept {
		w.remove(parent, stateDir, name)
	}
}

// working says that a living stage is preparing the activation.
func (w *sweep) working(name string) bool {
	root, err := w.store.find(workDir, name)
	if err != nil {
		return false
	}
	defer root.Close()
	for folder := range w.alive {
		if _, err := root.Lstat(folder); err == nil {
			return true
		}
	}
	return false
}

// Remove takes an activation's folders away: work/<name>, and state/<name> where keepFor
// is "", else that is what the data is kept for. It says what it removed, as paths below the home; what is not there is
// fine. Version folders stay until a Sweep finds that no record names them. Hold the
// activation's LockName and remove its record first.
func (s *Store) Remove(ctx context.Context, name, keepFor string) ([]string, error) {
	if err := manifest.ValidID(name); err != nil {
		return nil, fmt.Errorf("removing the folders of %q: %w", name, err)
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return nil, fmt.Errorf("removing the folders of %q: %w", name, err)
	}
	defer unlock()
	tops := []string{workDir, stateDir}
	if keepFor != "" {
		tops = tops[:1]
		if err := s.keep(name, keepFor); err != nil {
			return nil, fmt.Errorf("keeping the data of %q: %w", name, err)
		}
	} else if err := s.unkeep(name); err != nil {
		return nil, fmt.Errorf("removing the folders of %q: %w", name, err)
	}
	var removed []string
	for _, top := range tops {
		root, err := s.find(top)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("removing the folders of %q: %w", name, err)
		}
		_, missing := root.Lstat(name)
		err = discard(root, name, s.step)
		root.Close()
		if err != nil {
			return removed, err
		}
		if missing == nil {
			removed = append(removed, path.Join(top, name))
		}
	}
	return removed, nil
}
