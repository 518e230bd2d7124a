package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A version that a session runs from stays, with the packages that it links to, until the
// session ends.
func TestUseKeepsFromSweeping(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	tree := filepath.Join(home, depsDir, "0123456789012345678901234567890123456789012345678901234567890123")
	check(t, os.MkdirAll(filepath.Join(tree, "node_modules"), 0o700))
	work := s.WorkDir("work", v1().ref())
	check(t, os.Symlink(filepath.Join("..", "..", "..", depsDir, filepath.Base(tree), "node_modules"), filepath.Join(work, "node_modules")))
	mustPut(t, s, v2(), "work")
	one, err := s.Use("work", v1().ref())
	check(t, err)
	two, err := s.Use("work", v1().ref())
	check(t, err)
	sweep := func() {
		t.Helper()
		_, err := s.Sweep(context.Background(), map[string][]Ref{"work": {v2().ref()}})
		check(t, err)
		clean(t, s, v2(), "work")
	}
	sweep()
	one()
	sweep()
	check(t, s.CheckWork("work", v1().ref(), v1().Files()))
	if !exists(tree) {
		t.Error("its packages are gone")
	}
	if stages, sessions, err := s.Living(context.Background()); err != nil || stages != 0 || sessions != 1 {
		t.Errorf("%d stages and %d sessions live (%v)", stages, sessions, err)
	}
	two()
	sweep()
	if exists(work) || exists(tree) {
		t.Error("what nobody uses is left")
	}
	noStageLocks(t, home)
	if _, err := s.Use("../work", v1().ref()); err == nil {
		t.Error("a name that is none")
	}
}

func TestParseUse(t *testing.T) {
	ref := v1().ref()
	if name, dir, ok := parseUse(usePrefix + newToken() + "-" + ref.Dir() + "-my.work-2"); !ok || name != "my.work-2" || dir != ref.Dir() {
		t.Errorf("%q %q %t", name, dir, ok)
	}
	for _, bad := range []string{"", usePrefix, usePrefix + "a-1-0123456789abcdef", usePrefix + "a-1-0123456789abcdef-..", usePrefix + "a-x-0123456789abcdef-n", ".stage-a-1-0123456789abcdef-n"} {
		if name, dir, ok := parseUse(bad); ok {
			t.Errorf("%q is taken for %q %q", bad, name, dir)
		}
	}
}

// Going back takes along what the connector has kept since, and nothing of the later
// version.
func TestGoBack(t *testing.T) {
	home := tempDir(t)
	withV1(t, home)
	s := Open(home)
	from := v1()
	check(t, put(s, v2(), "work", &from, nil, nil))
	late := s.WorkDir("work", v2().ref())
	write(t, filepath.Join(late, "session.json"), "new")
	write(t, filepath.Join(late, "evil.py"), "evil")
	early := s.WorkDir("work", v1().ref())
	write(t, filepath.Join(early, "index.py"), "changed")
	left, err := s.GoBack(context.Background(), "work", v1().ref(), v1().Files(), v2().ref(), v2().Files(), func(string) {})
	check(t, err)
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	clean(t, s, v1(), "work")
	content(t, filepath.Join(early, "session.json"), "new")
	content(t, filepath.Join(early, "cache/a.db"), "old")
	if exists(filepath.Join(early, "lib/new.py")) || exists(filepath.Join(early, "evil.py")) {
		t.Error("code of the later version came along")
	}
}

// Wipe takes everything, read-only folders as well, unless something is not ours.
func TestWipe(t *testing.T) {
	home := filepath.Join(tempDir(t), "home")
	s := Open(home)
	mustPut(t, s, v1(), "work")
	names := []string{connectorsDir, receiptsDir, workDir, stateDir, "settings.json"}
	write(t, filepath.Join(home, ".settings.json.tmp-1"), "half")
	write(t, filepath.Join(home, "mine.txt"), "mine")
	before := snapshot(t, home)
	var foreign *ForeignError
	if err := s.Wipe(names); !errors.As(err, &foreign) || len(foreign.Names) != 1 || foreign.Names[0] != "mine.txt" {
		t.Errorf("%v", err)
	}
	same(t, "not ours", snapshot(t, home), before)
	check(t, os.Remove(filepath.Join(home, "mine.txt")))
	check(t, s.Wipe(names))
	if exists(home) {
		t.Errorf("left:\n%s", snapshot(t, home))
	}
	check(t, s.Wipe(names))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// withV1 is a home in which version 1 runs and has files of its own.
func withV1(t *testing.T, home string) {
	s := Open(home)
	mustPut(t, s, v1(), "work")
	work := s.WorkDir("work", v1().ref())
	for _, f := range []string{"session.json", "cache/a.db", "auth/creds.json"} {
		write(t, filepath.Join(work, f), "old")
		older(t, filepath.Join(work, f))
	}
}
