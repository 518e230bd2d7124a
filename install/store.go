// Package install turns a bundle into an installed version of a connector, all
// or nothing (DESIGN.md, "One-way paths" and "On disk").
//
// Its law:
//   - Everything is prepared in a stage beside its place and made true by one
//     rename. A kill at any moment leaves the old version or the new one; what is
//     left over is swept later.
//   - It only takes checked bytes (*fetch.Bundle), and hashes them again whenever
//     it copies them.
//   - A committed version folder is never changed again. What runs is a copy of it,
//     in a work folder of one activation.
//   - Below its home it works through os.Root handles, and refuses a symbolic link
//     in place of one of its folders.
//
// On disk, below the home:
//
//	connectors/<id>/<version>-<digest>/  as shipped; folders 0555, files 0444
//	receipts/<id>.json                   which of those are here; can be rebuilt
//	work/<name>/<version>-<digest>/      what runs; folders 0700, files 0600
//	state/<name>/auth, state/<name>/state  durable data, linked into the work folder
//	deps/<hash>/                         built dependencies, shared, read-only; see Tree
//	checked/<id>@<version>-<digest>      what was hashed there, for the next start
//	locks/                               of activations, stages, trees, and the store
//	…/.stage-<token>, …/.trash-<token>   unfinished, and on its way out
//
// Version folders hold published bytes behind a home of mode 0700, so nothing in
// them is a secret and every user a sandbox may map us to can read them; they are
// read-only so that a connector that is run from the wrong place, an editor or a
// careless command cannot change what the record vouches for. Their owner can still
// rename them inside their parent, which is all that committing and removing need;
// what is removed is first renamed to trash and only then made writable.
//
// It never touches the network; npm and pip are started for it by its package deps,
// in the sandbox. It never writes the activation
// record (that is the commit point, and belongs to activate), and never decides that
// a version may run.
package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// The folders below the home that this package owns.
const (
	connectorsDir = "connectors"
	receiptsDir   = "receipts"
	workDir       = "work"
	stateDir      = "state"
	locksDir      = "locks"
)

// digestLength is the part of the SHA-256 that names a version folder: 64 bits tell
// apart the few versions of one connector; the files are checked against whole ones.
const digestLength = 16

// letGo bounds the wait for the store's lock when something is given up: clean-up
// that is not done then is done by the next sweep.
const letGo = 5 * time.Second

// Ref names one version of a connector by its content.
type Ref struct {
	Connector string
	Version   manifest.Version
	Digest    string // first 16 hex digits of the SHA-256 over the sorted lines "sha256 size path\n"
}

// Dir is the name of the version's folder, "<version>-<digest>".
func (r Ref) Dir() string { return strconv.FormatInt(int64(r.Version), 10) + "-" + r.Digest }

func newRef(connector string, version manifest.Version, files []manifest.File) Ref {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range sorted {
		fmt.Fprintf(h, "%s %d %s\n", f.SHA256, f.Size, f.Path)
	}
	return Ref{Connector: connector, Version: version, Digest: hex.EncodeToString(h.Sum(nil))[:digestLength]}
}

// parseRef reads the name of a version folder; ok is false for any other name.
func parseRef(connector, dir string) (r Ref, ok bool) {
	number, digest, _ := strings.Cut(dir, "-")
	v, err := strconv.ParseInt(number, 10, 64)
	if err != nil || v < 0 || len(digest) != digestLength || strings.Trim(digest, "0123456789abcdef") != "" {
		return Ref{}, false
	}
	r = Ref{Connector: connector, Version: manifest.Version(v), Digest: digest}
	return r, r.Dir() == dir
}

// valid says why a ref cannot name a folder. Refs come from records on disk.
func (r Ref) valid() error {
	if err := manifest.ValidID(r.Connector); err != nil {
		return err
	}
	if back, ok := parseRef(r.Connector, r.Dir()); !ok || back != r {
		return fmt.Errorf("%q does not name a version folder", r.Dir())
	}
	return nil
}

// A ChangedError says that a file is not what was installed. Whatever runs from
// there would be unchecked code.
type ChangedError struct {
	Ref  Ref
	File string // slash-separated, relative to the folder; "" for the folder itself
	Why  string // "it is missing", "its content differs", …
}

func (e *ChangedError) Error() string {
	what := "the folder"
	if e.File != "" {
		what = strconv.Quote(e.File)
	}
	return fmt.Sprintf("checking %q %s: %s is not as it was installed: %s", e.Ref.Connector, e.Ref.Dir(), what, e.Why)
}

// A Store is the installed versions below one home.
type Store struct {
	home string
	step func(string) // told each step of Sweep and Remove, for tests
}

// Open names the home. It does no I/O; folders are made when they are needed.
func Open(home string) *Store { return &Store{home: home, step: func(string) {}} }

// Watched is the store, with step told the name of each step of a sweep or a removal, before it. nil tells nobody.
func (s *Store) Watched(step func(string)) *Store {
	if step != nil {
		s.step = step
	}
	return s
}

// VersionDir is the absolute path of a committed version folder. It may be missing.
func (s *Store) VersionDir(ref Ref) string {
	return filepath.Join(s.home, connectorsDir, ref.Connector, ref.Dir())
}

// WorkDir is the absolute path of the folder that runs for an activation. It may be
// missing.
func (s *Store) WorkDir(name string, ref Ref) string {
	return filepath.Join(s.home, workDir, name, ref.Dir())
}

// LockName takes the lock of one activation, HOME/locks/<name>.lock; see
// atomicfile.Lock for waiting. Hold it around everything that changes the activation.
func (s *Store) LockName(ctx context.Context, name string, waiting func(holder string)) (func(), error) {
	if err := manifest.ValidID(name); err != nil {
		return nil, fmt.Errorf("locking activation %q: %w", name, err)
	}
	return s.lock(ctx, name+".lock", waiting)
}

// OwnLock is the path of a lock that is no activation's, HOME/locks/.<name>.lock, whose folder is made: no activation's name
// begins with a dot.
func (s *Store) OwnLock(name string) (string, error) {
	dir, err := s.top(locksDir)
	return filepath.Join(dir, "."+name+".lock"), err
}

// lockStore is held for the short time in which shared folders change. It is the
// innermost lock: nothing waits for another one while it holds this one.
func (s *Store) lockStore(ctx context.Context) (func(), error) {
	return s.lock(ctx, ".store.lock", nil)
}

func (s *Store) lock(ctx context.Context, file string, waiting func(string)) (func(), error) {
	dir, err := s.top(locksDir)
	if err != nil {
		return nil, err
	}
	return atomicfile.Lock(ctx, filepath.Join(dir, file), waiting)
}

// realHome is the home with links resolved: a person may keep it on another disk.
// Below it nothing may be a link.
func (s *Store) realHome() (string, error) {
	home, err := filepath.EvalSymlinks(s.home)
	if errors.Is(err, fs.ErrNotExist) {
		return s.home, nil
	}
	return home, err
}

// top makes one of our folders below the home, and gives its path.
func (s *Store) top(name string) (string, error) {
	home, err := s.realHome()
	if err != nil {
		return "", fmt.Errorf("opening the home: %w", err)
	}
	if err := atomicfile.PrivateDir(home); err != nil {
		return "", err
	}
	dir := filepath.Join(home, name)
	return dir, atomicfile.PrivateDir(dir)
}

// ensure opens a folder below the home, made where it is missing.
func (s *Store) ensure(top string, below ...string) (*os.Root, error) {
	if _, err := s.top(top); err != nil {
		return nil, err
	}
	return s.open(true, top, below...)
}

// find opens a folder below the home; a missing one is an error that wraps
// fs.ErrNotExist.
func (s *Store) find(top string, below ...string) (*os.Root, error) {
	return s.open(false, top, below...)
}

func (s *Store) open(create bool, top string, below ...string) (*os.Root, error) {
	home, err := s.realHome()
	if err != nil {
		return nil, fmt.Errorf("opening the home: %w", err)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", home, atomicfile.Cause(err))
	}
	for _, name := range append([]string{top}, below...) {
		next, err := openDir(root, name, create)
		root.Close()
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}
