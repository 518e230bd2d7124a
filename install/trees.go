package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"skald-connectors/install/deps"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/lazyre"
	"skald-connectors/manifest"
)

const (
	depsDir    = "deps"
	treeMarker = "deps.json"
	// treeFormat is the format of the marker that this program writes.
	treeFormat = 1
	// markerLimit bounds a marker: ten thousand packages at 300 bytes.
	markerLimit = 4 << 20
)

// treeName is how a tree is called: the key of what it was built from.
var treeName = lazyre.New(`^[0-9a-f]{64}$`)

// A Tree is built dependencies, HOME/deps/<hash>: packages, what they were built from,
// and a marker. It is shared by every version and activation that asks for the same,
// read-only, and never changed: other dependencies are another tree.
type Tree struct {
	Format    int            `json:"format"`
	Hash      string         `json:"hash"`
	Ecosystem deps.Ecosystem `json:"ecosystem"`
	When      time.Time      `json:"when"`
	Runtime   string         `json:"runtime"` // with its version
	Locked    bool           `json:"locked"`
	Packages  []deps.Package `json:"packages"`
	Ran       []string       `json:"ran,omitempty"` // packages whose install scripts ran
	Start     *deps.Start    `json:"start,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	// Listing is the SHA-256 over the names, kinds and sizes of what is in it.
	Listing string `json:"listing"`
	// Digest is the SHA-256 over the same and what is in the files; "" in trees of an
	// older program.
	Digest string `json:"digest,omitempty"`
	// Reused tells that it was there already.
	Reused bool `json:"-"`
}

// TreeRequest asks for the tree of one set of dependencies.
type TreeRequest struct {
	Set     deps.Set
	Options deps.Options
	Now     func() time.Time
	Waiting func(holder string) // told once when another process builds the same tree
}

// TreeDir is the absolute path of a tree. It may be missing.
func (s *Store) TreeDir(hash string) string { return filepath.Join(s.home, depsDir, hash) }

// FindTree reads the marker of a tree and looks no further: a tree with a marker was
// whole when it was put there. A missing one is an error that wraps fs.ErrNotExist.
func (s *Store) FindTree(hash string) (*Tree, error) {
	if !treeName.MatchString(hash) {
		return nil, fmt.Errorf("reading dependencies: %q does not name a tree", hash)
	}
	src, err := atomicfile.Read(filepath.Join(s.TreeDir(hash), treeMarker), markerLimit)
	if err != nil {
		return nil, fmt.Errorf("reading dependencies %s: %w", short(hash), err)
	}
	t := &Tree{}
	if err := json.Unmarshal(src, t); err != nil || t.Hash != hash || t.Format < 1 {
		return nil, fmt.Errorf("reading dependencies %s: %w", short(hash), errDamaged)
	}
	if t.Format > treeFormat {
		return nil, &NewerError{File: filepath.Join(s.TreeDir(hash), treeMarker), Format: t.Format}
	}
	return t, nil
}

func short(hash string) string { return hash[:min(12, len(hash))] }

// Tree gives the tree of a set, built when it is not here. It is built in a stage
// beside its place under a lock, so several processes share one build, and put in
// place by one rename: a tree is whole or not there. One that lost a file is built
// again. Errors: those of deps.Set.Build, *NewerError.
func (s *Store) Tree(ctx context.Context, r TreeRequest) (*Tree, error) {
	hash := r.Set.Key(r.Options.Tool, r.Options.AllowScripts)
	if t, err := s.wholeTree(hash); t != nil || err != nil {
		return t, err
	}
	locks, err := s.top(locksDir)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(locks, ".deps-"+hash+".lock")
	unlock, err := atomicfile.Lock(ctx, file, r.Waiting)
	if err != nil {
		return nil, err
	}
	defer dropLock(file, unlock)
	if t, err := s.wholeTree(hash); t != nil || err != nil { // somebody built it while we waited
		return t, err
	}
	t, err := s.buildTree(ctx, hash, r)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// wholeTree gives a tree whose files are all there; nil when it has to be built.
func (s *Store) wholeTree(hash string) (*Tree, error) {
	t, err := s.FindTree(hash)
	var newer *NewerError
	if errors.As(err, &newer) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	root, err := s.find(depsDir, hash)
	if err != nil {
		return nil, nil
	}
	defer root.Close()
	if listing, err := listTree(root); err != nil || listing != t.Listing {
		return nil, nil
	}
	if t.Digest != "" {
		if digest, err := digestTree(root); err != nil || digest != t.Digest {
			return nil, nil
		}
	}
	t.Reused = true
	return t, nil
}

// buildTree builds in deps/.stage-<token> and moves the tree into place.
func (s *Store) buildTree(ctx context.Context, hash string, r TreeRequest) (*Tree, error) {
	step := r.Options.Step
	if step == nil {
		step = func(string) {}
	}
	stage := stagePrefix + newToken()
	alive, err := s.liveLock(stage)
	if err != nil {
		return nil, err
	}
	defer alive()
	root, err := s.ensure(depsDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	step("deps-folder")
	dir, err := openDir(root, stage, true)
	if err != nil {
		return nil, err
	}
	dir.Close()
	defer discard(root, stage, step)
	t, err := s.fillTree(ctx, hash, r, root, stage)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := discard(root, hash, step); err != nil { // a broken one
		return nil, err
	}
	step("deps-commit")
	if err := root.Rename(path.Join(stage, "tree"), hash); err != nil {
		return nil, fmt.Errorf("moving the dependencies into place: %w", atomicfile.Cause(err))
	}
	_ = root.Chmod(hash, dirReadOnly) // only now: a read-only folder cannot be moved
	return t, syncDir(root, ".")
}

// Hold keeps trees that no record names yet from being swept until release is called.
// A living Stage does the same.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	release, err = s.liveLock(stagePrefix + newToken())
	if err != nil {
		return nil, err
	}
	unlock, err := s.lockStore(ctx) // a sweep that is under way is over
	if err != nil {
		release()
		return nil, err
	}
	unlock()
	return release, nil
}

// liveLock takes the lock by which a sweep sees that a stage is alive.
func (s *Store) liveLock(stage string) (release func(), err error) {
	locks, err := s.top(locksDir)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(locks, stage+".lock")
	unlock, err := atomicfile.Lock(context.Background(), file, nil)
	if err != nil {
		return nil, err
	}
	return func() { dropLock(file, unlock) }, nil
}

// fillTree lets the packages be installed and makes the tree ready to be moved.
func (s *Store) fillTree(ctx context.Context, hash string, r TreeRequest, root *os.Root, stage string) (*Tree, error) {
	for _, name := range []string{"tree", "scratch"} {
		if err := makeDir(root, path.Join(stage, name)); err != nil {
			return nil, err
		}
	}
	at := filepath.Join(root.Name(), stage)
	res, err := r.Set.Build(ctx, filepath.Join(at, "tree"), filepath.Join(at, "scratch"), r.Options)
	if err != nil {
		return nil, err
	}
	tree, err := openDir(root, path.Join(stage, "tree"), false)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	if r.Options.Step != nil {
		r.Options.Step("deps-seal")
	}
	t := &Tree{Format: treeFormat, Hash: hash, Ecosystem: r.Set.Ecosystem, When: r.Now().UTC(), Locked: r.Set.Locked,
		Runtime:  r.Set.Ecosystem.Runtime() + " " + r.Options.Tool.Version,
		Packages: res.Packages, Ran: res.Ran, Start: res.Start, Notes: res.Notes}
	if t.Listing, err = listTree(tree); err != nil {
		return nil, &deps.BuildError{Ecosystem: r.Set.Ecosystem, Kind: deps.Unsafe, Err: err}
	}
	if t.Digest, err = digestTree(tree); err != nil {
		return nil, fmt.Errorf("reading the dependencies: %w", atomicfile.Cause(err))
	}
	return t, sealTree(tree, t)
}

// sealTree writes the marker, makes everything but the top read-only, and durable.
func sealTree(tree *os.Root, t *Tree) error {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	if err := place(tree, treeMarker, func(string) {}, func(out *os.File) error {
		_, err := out.Write(append(data, '\n'))
		return err
	}); err != nil {
		return fmt.Errorf("writing the marker of the dependencies: %w", atomicfile.Cause(err))
	}
	err = fs.WalkDir(tree.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fileReadOnly
		if info.Mode()&0o111 != 0 {
			mode = dirReadOnly
		}
		return tree.Chmod(p, mode)
	})
	if err == nil {
		err = eachDir(tree, func(dir string) error {
			if dir == "." {
				return nil
			}
			return tree.Chmod(dir, dirReadOnly)
		})
	}
	if err != nil {
		return fmt.Errorf("making the dependencies read-only: %w", atomicfile.Cause(err))
	}
	return syncAll(tree)
}

// Depend puts the packages of the trees into the connector's work folder, as links.
// Call it after Work, before what runs there.
func (st *Stage) Depend(trees ...*Tree) error {
	if !st.built || st.ended {
		return errors.New("linking dependencies: no work folder is staged")
	}
	st.trees = trees
	dir, err := st.store.find(workDir, st.name, st.folder())
	if err != nil {
		return fmt.Errorf("linking dependencies: %w", err)
	}
	defer dir.Close()
	if err := st.link(dir); err != nil {
		return fmt.Errorf("linking dependencies: %w", err)
	}
	return syncDir(dir, ".")
}

// Relink lets a committed work folder point to other trees; each link is exchanged by
// one rename.
func (s *Store) Relink(ctx context.Context, name string, ref Ref, trees ...*Tree) error {
	if err := errors.Join(manifest.ValidID(name), ref.valid()); err != nil {
		return fmt.Errorf("linking dependencies of %q: %w", name, err)
	}
	unlock, err := s.lockStore(ctx)
	if err != nil {
		return fmt.Errorf("linking dependencies of %q: %w", name, err)
	}
	defer unlock()
	dir, err := s.find(workDir, name, ref.Dir())
	if err != nil {
		return fmt.Errorf("linking dependencies of %q: %w", name, err)
	}
	defer dir.Close()
	for _, t := range trees {
		folder, temp := t.Ecosystem.Folder(), tempPrefix+newToken()
		err := dir.Symlink(treeLink(t), temp)
		if err == nil {
			err = dir.Rename(temp, folder)
		}
		if err != nil {
			dir.Remove(temp)
			return fmt.Errorf("linking dependencies of %q: %w", name, atomicfile.Cause(err))
		}
	}
	return syncDir(dir, ".")
}

func treeLink(t *Tree) string {
	return filepath.Join("..", "..", "..", depsDir, t.Hash, t.Ecosystem.Folder())
}

// links are the links of a work folder: name → where it points to, relative so that a
// home can be moved.
func (st *Stage) links() map[string]string {
	out := map[string]string{}
	for _, d := range durable {
		out[d] = filepath.Join("..", "..", "..", stateDir, st.name, d)
	}
	for _, t := range st.trees {
		out[t.Ecosystem.Folder()] = treeLink(t)
	}
	return out
}

// trees removes the dependencies that no record names, and what unfinished builds
// left. While any stage lives, a tree may be about to be named.
func (w *sweep) trees(used []string) {
	root, err := w.store.find(depsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		w.problems = append(w.problems, err)
		return
	}
	defer root.Close()
	entries, err := list(root)
	if err != nil {
		w.problems = append(w.problems, err)
		return
	}
	named := map[string]bool{}
	for _, hash := range used {
		named[hash] = true
	}
	busy := w.leftovers(root, depsDir, entries) || len(w.alive) > 0
	for _, e := range entries {
		if treeName.MatchString(e.Name()) && !named[e.Name()] && !busy {
			w.remove(root, depsDir, e.Name())
		}
	}
}

// escapes tells that a link in a tree points outside of it.
func escapes(from, target string) bool {
	if filepath.IsAbs(target) || strings.Contains(target, `\`) {
		return true
	}
	to := path.Join(path.Dir(from), filepath.ToSlash(target))
	return to == ".." || strings.HasPrefix(to, "../")
}
