package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skald-connectors/manifest"
)

// helperEnv names the role that the test binary plays when a test starts it as
// another process.
const helperEnv = "INSTALL_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(helperEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func helper(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// A fakeBundle is a bundle in memory.
type fakeBundle struct {
	id      string
	version manifest.Version
	content map[string]string
}

func (b fakeBundle) Entry() manifest.Entry { return manifest.Entry{ID: b.id, Version: b.version} }

func (b fakeBundle) Files() []manifest.File {
	var files []manifest.File
	for path, data := range b.content {
		sum := sha256.Sum256([]byte(data))
		files = append(files, manifest.File{Path: path, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))})
	}
	slices.SortFunc(files, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

func (b fakeBundle) Open(path string) (io.ReadCloser, error) {
	data, ok := b.content[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(data)), nil
}

func (b fakeBundle) ref() Ref { return newRef(b.id, b.version, b.Files()) }

// Two versions of one connector. The second drops old.py and adds lib/new.py.
func v1() fakeBundle {
	return fakeBundle{id: "mail", version: 1, content: map[string]string{
		"connector.json": `{"id":"mail","version":1}`, "index.py": "print(1)\n", "lib/a/deep.py": "deep = 1\n", "old.py": "", "icons/small.svg": "<svg/>",
	}}
}

func v2() fakeBundle {
	return fakeBundle{id: "mail", version: 2, content: map[string]string{
		"connector.json": `{"id":"mail","version":2}`, "index.py": "print(2)\n", "lib/a/deep.py": "deep = 1\n", "lib/new.py": "new = 2\n",
	}}
}

// put installs a bundle for an activation, as the program does it.
func put(s *Store, b fakeBundle, name string, from *fakeBundle, try func(work string) error, step func(string)) error {
	ctx := context.Background()
	unlock, err := s.LockName(ctx, name, nil)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.stage(ctx, b, step)
	if err != nil {
		return err
	}
	if err := finish(st, name, from, try); err != nil {
		st.Discard()
		return err
	}
	return nil
}

func finish(st *Stage, name string, from *fakeBundle, try func(work string) error) error {
	work, err := st.Work(name)
	if err != nil {
		return err
	}
	if from != nil {
		if _, err := st.Carry(from.ref(), from.Files()); err != nil {
			return err
		}
	}
	if try != nil {
		if err := try(work); err != nil {
			return err
		}
	}
	_, err = st.Commit(name)
	return err
}

func mustPut(t *testing.T, s *Store, b fakeBundle, name string) Ref {
	t.Helper()
	check(t, put(s, b, name, nil, nil, nil))
	clean(t, s, b, name)
	return b.ref()
}

// clean checks that a version is committed, whole, for an activation.
func clean(t *testing.T, s *Store, b fakeBundle, name string) {
	t.Helper()
	check(t, s.Check(b.ref(), b.Files()))
	check(t, s.CheckWork(name, b.ref(), b.Files()))
	for _, d := range durable {
		fi, err := os.Stat(filepath.Join(s.WorkDir(name, b.ref()), d)) // through the link
		check(t, err)
		if !fi.IsDir() {
			t.Errorf("%s is not a folder", d)
		}
	}
}

// tempDir is t.TempDir for trees with read-only folders in them, which the usual
// clean-up cannot remove unless it is root's. It is in memory where that is possible:
// hundreds of homes are synced in no time there.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "install")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		writable(dir)
		os.RemoveAll(dir)
	})
	return dir
}

func writable(dir string) {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err == nil {
		loosen(root, filepath.Base(dir))
		root.Close()
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(data), 0o600))
}

// older makes a file look as if it had been written an hour ago, so that tests of
// "the younger one wins" need not wait.
func older(t *testing.T, path string) {
	t.Helper()
	fi, err := os.Stat(path)
	check(t, err)
	past := fi.ModTime().Add(-time.Hour)
	check(t, os.Chtimes(path, past, past))
}

func content(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

// snapshot lists a tree below the home, modes and contents included; locks, which
// mean nothing when nobody holds them, are left out.
func snapshot(t *testing.T, home string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(home, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(home, p)
		if err != nil || rel == "." {
			return err
		}
		if rel == locksDir {
			return fs.SkipDir
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%v %s", fi.Mode(), filepath.ToSlash(rel))
		switch {
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %q", data)
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&out, " -> %s", filepath.ToSlash(to))
		}
		out.WriteByte('\n')
		return nil
	})
	check(t, err)
	return out.String()
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, l := range g {
		if !slices.Contains(w, l) {
			t.Errorf("%s: unexpected %s", what, l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			t.Errorf("%s: missing %s", what, l)
		}
	}
}

// noLocks checks that no stage left its lock file.
func noStageLocks(t *testing.T, home string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(home, locksDir, stagePrefix+"*"))
	check(t, err)
	if len(found) > 0 {
		t.Errorf("left %v", found)
	}
}
