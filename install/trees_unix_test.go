//go:build unix

package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skald-connectors/install/deps"
	"skald-connectors/sandbox"
)

// fakePython answers as an interpreter with an old pip does, puts one package in place
// and counts how often it did.
const fakePython = `#!/bin/sh
case "$3" in compileall) exit 0;; esac
if [ "$2" = -c ]; then echo '{"prefix":"/no","platform":"p","tag":"t","pip":"21.0"}'; exit 0; fi
while [ $# -gt 0 ]; do [ "$1" = --target ] && t=$2; shift; done
mkdir -p "$t/a-1.0.dist-info" "$t/pkg" && echo x > "$t/a.py" && echo y > "$t/pkg/__init__.py"
%MORE%
echo built >> "${0%/*}/log"
`

// treeWorld is a home and what builds trees for it.
type treeWorld struct {
	t    *testing.T
	home string
	bin  string
	s    *Store
	box  *sandbox.Sandbox
}

func newTreeWorld(t *testing.T, more string) *treeWorld {
	t.Helper()
	w := &treeWorld{t: t, home: filepath.Join(tempDir(t), "home"), bin: tempDir(t)}
	w.s = Open(w.home)
	python := strings.ReplaceAll(fakePython, "%MORE%", more)
	check(t, os.WriteFile(filepath.Join(w.bin, "python3"), []byte(python), 0o700))
	var err error
	w.box, err = sandbox.New(sandbox.None)
	check(t, err)
	t.Cleanup(func() { writable(w.home) })
	return w
}

func (w *treeWorld) request(requirements string) TreeRequest {
	w.t.Helper()
	sets, err := deps.Read(deps.Input{Files: map[string][]byte{"requirements.txt": []byte(requirements)}})
	check(w.t, err)
	base := []string{"PATH=/usr/bin:/bin"}
	tool, err := deps.Finder{Sandbox: w.box, Base: base, Home: w.bin}.Find(w.t.Context(), deps.Pip, deps.Interpreter{Path: filepath.Join(w.bin, "python3"), Version: "3.11.2"})
	check(w.t, err)
	return TreeRequest{Set: sets[0], Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Options: deps.Options{Sandbox: w.box, Tool: tool, Base: base, Timeout: time.Minute}}
}

func (w *treeWorld) builds() int {
	data, _ := os.ReadFile(filepath.Join(w.bin, "log"))
	return strings.Count(string(data), "built")
}

func (w *treeWorld) tree(requirements string) *Tree {
	w.t.Helper()
	tree, err := w.s.Tree(w.t.Context(), w.request(requirements))
	check(w.t, err)
	return tree
}

// TestTreeIsBuiltOnce, is read-only, and is built again when something is gone from it.
func TestTreeIsBuiltOnce(t *testing.T) {
	w := newTreeWorld(t, "")
	first := w.tree("a==1.0")
	dir := w.s.TreeDir(first.Hash)
	if again := w.tree("a==1.0"); again.Hash != first.Hash || !again.Reused || w.builds() != 1 {
		t.Errorf("built %d times", w.builds())
	}
	for _, p := range []string{".", ".pydeps", ".pydeps/a.py", ".pydeps/pkg", treeMarker} {
		info, err := os.Stat(filepath.Join(dir, p))
		check(t, err)
		if info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
	}
	found, err := w.s.FindTree(first.Hash)
	if err != nil || found.Packages[0].Name != "a" || found.Runtime != "python3 3.11.2" {
		t.Errorf("marker %+v, %v", found, err)
	}
	check(t, os.Chmod(filepath.Join(dir, ".pydeps", "pkg"), 0o700))
	check(t, os.Remove(filepath.Join(dir, ".pydeps", "pkg", "__init__.py")))
	if mended := w.tree("a==1.0"); mended.Reused || w.builds() != 2 {
		t.Errorf("a broken tree was used")
	}
	check(t, os.Chmod(dir, 0o700))
	check(t, os.Remove(filepath.Join(dir, treeMarker)))
	if _, err := w.s.FindTree(first.Hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a marker: %v", err)
	}
	if mended := w.tree("a==1.0"); mended.Reused || w.builds() != 3 {
		t.Errorf("a tree without a marker was used")
	}
	if other := w.tree("a==1.1"); other.Hash == first.Hash || other.Reused {
		t.Error("another pin is the same tree")
	}
}

// TestTreeMarkers: one of a newer program is left alone, a damaged one is built again.
func TestTreeMarkers(t *testing.T) {
	w := newTreeWorld(t, "")
	hash := w.tree("a").Hash
	marker := filepath.Join(w.s.TreeDir(hash), treeMarker)
	check(t, os.Chmod(filepath.Dir(marker), 0o700))
	replace := func(text string) {
		check(t, os.Remove(marker))
		check(t, os.WriteFile(marker, []byte(text), 0o600))
	}
	replace(`{"format":2,"hash":"` + hash + `"}`)
	var newer *NewerError
	if _, err := w.s.Tree(t.Context(), w.request("a")); !errors.As(err, &newer) || w.builds() != 1 {
		t.Errorf("a newer marker: %v", err)
	}
	for _, text := range []string{"", "{", `{"format":1,"hash":"` + strings.Repeat("0", 64) + `"}`, `{"format":1}`} {
		replace(text)
		if w.tree("a").Reused {
			t.Errorf("the marker %q was taken", text)
		}
		check(t, os.Chmod(filepath.Dir(marker), 0o700))
	}
	if _, err := w.s.FindTree("../../x"); err == nil {
		t.Error("a path was taken for a tree")
	}
}

// TestUnsafeTrees: nothing that leaves its folder comes into place.
func TestUnsafeTrees(t *testing.T) {
	for name, more := range map[string]string{
		"absolute link": `ln -s /etc/passwd "$t/x"`,
		"upward link":   `ln -s ../../../../x "$t/pkg/x"`,
		"pipe":          `mkfifo "$t/x"`,
	} {
		w := newTreeWorld(t, more)
		_, err := w.s.Tree(t.Context(), w.request("a"))
		var build *deps.BuildError
		if !errors.As(err, &build) || build.Kind != deps.Unsafe {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(filepath.Join(w.home, depsDir)); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	w := newTreeWorld(t, `ln -s a.py "$t/inside"`)
	w.tree("a")
}

// TestEightTrees are one build.
func TestEightTrees(t *testing.T) {
	w := newTreeWorld(t, "sleep 0.2")
	r := w.request("a")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.s.Tree(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if w.builds() != 1 {
		t.Errorf("built %d times", w.builds())
	}
}

// TestFailedTreeLeavesNothing, nor does one that was given up.
func TestFailedTreeLeavesNothing(t *testing.T) {
	w := newTreeWorld(t, "echo no >&2; exit 1")
	_, err := w.s.Tree(t.Context(), w.request("a"))
	var build *deps.BuildError
	if !errors.As(err, &build) || build.Kind != deps.Failed || build.Tail != "no" {
		t.Errorf("%v", err)
	}
	w2 := newTreeWorld(t, "sleep 60")
	r := w2.request("a")
	ctx, cancel := context.WithCancel(t.Context())
	r.Options.Step = func(name string) {
		if name == "deps-run" {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	}
	if _, err := w2.s.Tree(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, home := range []string{w.home, w2.home} {
		left, _ := os.ReadDir(filepath.Join(home, depsDir))
		locks, _ := os.ReadDir(filepath.Join(home, locksDir))
		if len(left) != 0 || len(locks) != 0 {
			t.Errorf("left %v %v", left, locks)
		}
	}
}

// TestTreesAreSwept: what no record names goes, and what dead builds left; not while
// somebody holds what may be named next.
func TestTreesAreSwept(t *testing.T) {
	w := newTreeWorld(t, "")
	used, unused := w.tree("a==1"), w.tree("a==2")
	dead := filepath.Join(w.home, depsDir, stagePrefix+newToken())
	check(t, os.MkdirAll(filepath.Join(dead, "scratch", "home"), 0o700))
	release, err := w.s.Hold(t.Context())
	check(t, err)
	removed, err := w.s.Sweep(t.Context(), nil, used.Hash)
	check(t, err)
	if len(removed) != 1 || removed[0] != "deps/"+filepath.Base(dead) {
		t.Errorf("while trees are held, swept %v", removed)
	}
	release()
	removed, err = w.s.Sweep(t.Context(), nil, used.Hash)
	check(t, err)
	if len(removed) != 1 || removed[0] != "deps/"+unused.Hash {
		t.Errorf("swept %v", removed)
	}
	if _, err := w.s.FindTree(used.Hash); err != nil {
		t.Error(err)
	}
}

// TestWorkFolderLinksItsTrees, through commits and a connector that replaces the link.
func TestWorkFolderLinksItsTrees(t *testing.T) {
	w := newTreeWorld(t, "")
	one, two := w.tree("a==1"), w.tree("a==2")
	st, err := w.s.stage(t.Context(), v1(), nil)
	check(t, err)
	if err := st.Depend(one); err == nil {
		t.Error("linked without a work folder")
	}
	work, err := st.Work("mail")
	check(t, err)
	check(t, st.Depend(one))
	content(t, filepath.Join(work, ".pydeps", "a.py"), "x\n")
	check(t, os.Remove(filepath.Join(work, ".pydeps")))
	check(t, os.MkdirAll(filepath.Join(work, ".pydeps"), 0o700))
	write(t, filepath.Join(work, ".pydeps", "evil.py"), "evil")
	done, err := st.Commit("mail")
	check(t, err)
	link := filepath.Join(done.Work, ".pydeps")
	content(t, filepath.Join(link, "a.py"), "x\n")
	absent(t, filepath.Join(link, "evil.py"))
	check(t, w.s.Relink(t.Context(), "mail", done.Ref, two))
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("..", "..", "..", "deps", two.Hash, ".pydeps") {
		t.Errorf("the link points to %q, %v", to, err)
	}
	content(t, filepath.Join(link, "a.py"), "x\n")
}

// TestTreeOnAFullDisk says so and leaves nothing.
func TestTreeOnAFullDisk(t *testing.T) {
	w := newTreeWorld(t, `echo "OSError: [Errno 28] No space left on device" >&2; exit 2`)
	_, err := w.s.Tree(t.Context(), w.request("a"))
	var build *deps.BuildError
	if !errors.As(err, &build) || build.Kind != deps.NoSpace {
		t.Errorf("%v", err)
	}
}

// TestTreeThatChanged: a byte that another program changes is noticed, also where name,
// size and time stay; a tree that stays is read once.
func TestTreeThatChanged(t *testing.T) {
	w := newTreeWorld(t, "")
	tree := w.tree("a==1.0")
	reads := 0
	w.s.step = func(name string) {
		if name == "read-tree" {
			reads++
		}
	}
	later := time.Now().Add(time.Minute)
	for range 3 {
		check(t, w.s.CheckTree(tree.Hash, tree.Digest, later))
	}
	if reads != 1 {
		t.Errorf("read %d times", reads)
	}
	if err := w.s.CheckTree(tree.Hash, strings.Repeat("0", 64), later); !errors.Is(err, ErrTreeChanged) {
		t.Errorf("another digest: %v", err)
	}
	file := filepath.Join(w.s.TreeDir(tree.Hash), ".pydeps", "a.py")
	data, err := os.ReadFile(file)
	check(t, err)
	fi, err := os.Stat(file)
	check(t, err)
	data[len(data)-1] ^= 1
	check(t, os.Chmod(file, 0o600))
	check(t, os.WriteFile(file, data, 0o600))
	check(t, os.Chmod(file, fi.Mode()))
	check(t, os.Chtimes(file, fi.ModTime(), fi.ModTime()))
	if err := w.s.CheckTree(tree.Hash, tree.Digest, later); !errors.Is(err, ErrTreeChanged) {
		t.Errorf("a changed byte: %v", err)
	}
	if mended := w.tree("a==1.0"); mended.Reused || w.builds() != 2 {
		t.Error("a changed tree was used")
	}
	check(t, w.s.CheckTree(tree.Hash, tree.Digest, later))
}
