package install

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestInstallAndUpgrade(t *testing.T) {
	disk := t.TempDir() // a real one
	t.Cleanup(func() { writable(disk) })
	home := filepath.Join(disk, "deep", "home")
	s := Open(home)
	r1 := mustPut(t, s, v1(), "work")
	if want := "1-" + r1.Digest; r1.Dir() != want || len(r1.Digest) != 16 {
		t.Errorf("folder %q", r1.Dir())
	}
	first := snapshot(t, filepath.Join(home, connectorsDir))

	// The connector keeps a session in its own folder, and one in auth.
	old := s.WorkDir("work", r1)
	write(t, filepath.Join(old, "session.json"), "token")
	write(t, filepath.Join(old, "auth", "creds.json"), "paired")
	from := v1()
	check(t, put(s, v2(), "work", &from, nil, nil))
	clean(t, s, v2(), "work")
	clean(t, s, v1(), "work") // kept for rollback
	now := s.WorkDir("work", v2().ref())
	content(t, filepath.Join(now, "session.json"), "token")
	content(t, filepath.Join(now, "auth", "creds.json"), "paired")
	absent(t, filepath.Join(now, "old.py"))

	// Another activation has its own folders and shares the version.
	mustPut(t, s, v2(), "home")
	absent(t, filepath.Join(s.WorkDir("home", v2().ref()), "session.json"))
	absent(t, filepath.Join(s.WorkDir("home", v2().ref()), "auth", "creds.json"))

	receipts, err := s.Receipts()
	check(t, err)
	if len(receipts) != 1 || receipts[0].Connector != "mail" || !slices.Equal(receipts[0].Versions, []Ref{r1, v2().ref()}) {
		t.Errorf("receipts %v", receipts)
	}
	removed, err := s.Sweep(context.Background(), map[string][]Ref{"work": {v2().ref(), r1}, "home": {v2().ref()}})
	if err != nil || len(removed) != 0 {
		t.Errorf("swept %v %v", removed, err)
	}
	noStageLocks(t, home)

	// Going back and away.
	removed, err = s.Sweep(context.Background(), map[string][]Ref{"work": {r1}})
	check(t, err)
	want := []string{"work/home/" + v2().ref().Dir(), "work/work/" + v2().ref().Dir(), "connectors/mail/" + v2().ref().Dir(), "state/home"}
	if !slices.Equal(removed, want) {
		t.Errorf("swept %v, want %v", removed, want)
	}
	same(t, "after the sweep", snapshot(t, filepath.Join(home, connectorsDir)), first)
	if removed, err = s.Remove(context.Background(), "work", "mail from here"); err != nil || !slices.Equal(removed, []string{"work/work"}) {
		t.Errorf("removed %v %v", removed, err)
	}
	content(t, filepath.Join(home, "state/work/auth/creds.json"), "paired")
	if removed, err = s.Remove(context.Background(), "work", ""); err != nil || !slices.Equal(removed, []string{"state/work"}) {
		t.Errorf("removed %v %v", removed, err)
	}
	removed, err = s.Sweep(context.Background(), nil)
	if err != nil || !slices.Equal(removed, []string{"connectors/mail/" + r1.Dir()}) {
		t.Errorf("swept %v %v", removed, err)
	}
	empty(t, home)
}

// empty checks that no folder of ours holds anything.
func empty(t *testing.T, home string) {
	t.Helper()
	for _, l := range strings.Split(strings.TrimSpace(snapshot(t, home)), "\n") {
		if strings.Count(l, " ") != 1 || strings.Contains(l, "/") {
			t.Errorf("left %s", l)
		}
	}
	noStageLocks(t, home)
}

func TestDiscardLeavesNothing(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	before := snapshot(t, home)
	for _, name := range []string{"work", "new"} {
		st, err := s.stage(context.Background(), v2(), nil)
		check(t, err)
		work, err := st.Work(name)
		check(t, err)
		again, err := st.Work(name)
		if again != work || err != nil {
			t.Errorf("Work again: %q %v", again, err)
		}
		content(t, filepath.Join(work, "index.py"), "print(2)\n")
		content(t, filepath.Join(st.Dir(), "index.py"), "print(2)\n")
		if _, err := st.Work("other"); err == nil {
			t.Error("a stage served two activations")
		}
		check(t, st.Discard())
		check(t, st.Discard())
		same(t, "after Discard", snapshot(t, home), before)
		noStageLocks(t, home)
		if _, err := st.Commit(name); err == nil {
			t.Error("a discarded stage was committed")
		}
		if _, err := st.Work(name); err == nil {
			t.Error("a discarded stage was used")
		}
	}
}

func TestCommitTwice(t *testing.T) {
	s := Open(tempDir(t))
	st, err := s.stage(context.Background(), v1(), nil)
	check(t, err)
	one, err := st.Commit("work")
	check(t, err)
	two, err := st.Commit("work")
	if two != one || err != nil {
		t.Errorf("%v %v", two, err)
	}
	if one.Dir != st.Dir() || one.Dir != s.VersionDir(one.Ref) || one.Work != s.WorkDir("work", one.Ref) {
		t.Errorf("%+v", one)
	}
	check(t, st.Discard())
	clean(t, s, v1(), "work")
}

// A version that is here is used as it is; one that was tampered with is replaced.
func TestStageOfWhatIsHere(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	ref := mustPut(t, s, v1(), "work")
	st, err := s.stage(context.Background(), v1(), nil)
	check(t, err)
	if st.Dir() != s.VersionDir(ref) {
		t.Errorf("staged again in %s", st.Dir())
	}
	check(t, st.Discard())
	clean(t, s, v1(), "work")

	bad := filepath.Join(s.VersionDir(ref), "index.py")
	check(t, os.Chmod(filepath.Dir(bad), 0o700))
	check(t, os.Remove(bad))
	write(t, bad, "evil\n")
	check(t, put(s, v1(), "work", nil, nil, nil))
	clean(t, s, v1(), "work")
	content(t, bad, "print(1)\n")
	noStageLocks(t, home)
}

// What the connector does while it is tried out cannot reach what is committed.
func TestTrialCannotChangeTheCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	home := tempDir(t)
	s := Open(home)
	outside := tempDir(t)
	try := func(work string) error {
		write(t, filepath.Join(work, "index.py"), "evil\n")
		write(t, filepath.Join(work, "session.json"), "new")
		write(t, filepath.Join(work, "shut.json"), "shut")
		check(t, os.Chmod(filepath.Join(work, "shut.json"), 0))
		check(t, os.RemoveAll(filepath.Join(work, "lib")))
		check(t, os.Symlink(outside, filepath.Join(work, "lib")))
		check(t, os.Remove(filepath.Join(work, "old.py")))
		check(t, os.Mkdir(filepath.Join(work, "old.py"), 0))
		check(t, os.Remove(filepath.Join(work, "auth")))
		write(t, filepath.Join(work, "auth", "creds.json"), "paired")
		check(t, os.Remove(filepath.Join(work, "state")))
		check(t, os.Symlink(outside, filepath.Join(work, "state")))
		return nil
	}
	for range 2 { // the second time into the folder that is there
		check(t, put(s, v1(), "work", nil, try, nil))
		clean(t, s, v1(), "work")
		work := s.WorkDir("work", v1().ref())
		content(t, filepath.Join(work, "session.json"), "new")
		content(t, filepath.Join(work, "shut.json"), "shut")
		content(t, filepath.Join(home, "state/work/auth/creds.json"), "paired")
		if to, err := os.Readlink(filepath.Join(work, "state")); err != nil || to != filepath.FromSlash("../../../state/work/state") {
			t.Errorf("state links to %q %v", to, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("written outside: %v %v", entries, err)
		}
	}
	// The staged version folder itself is hashed again.
	st, err := s.stage(context.Background(), v2(), nil)
	check(t, err)
	_, err = st.Work("work")
	check(t, err)
	check(t, os.Chmod(st.Dir(), 0o700))
	write(t, filepath.Join(st.Dir(), "sitecustomize.py"), "evil")
	_, err = st.Commit("work")
	var changed *ChangedError
	if !errors.As(err, &changed) || changed.File != "sitecustomize.py" {
		t.Errorf("committed with %v", err)
	}
	check(t, st.Discard())
	clean(t, s, v1(), "work")
	absent(t, s.VersionDir(v2().ref()))
}

type badBundle struct{ fakeBundle }

func (b badBundle) Open(path string) (io.ReadCloser, error) {
	if path == "index.py" {
		return io.NopCloser(strings.NewReader("print(!)\n")), nil
	}
	return b.fakeBundle.Open(path)
}

func TestStageRefuses(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	before := snapshot(t, home)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	path := func(p string) fakeBundle {
		return fakeBundle{id: "mail", version: 3, content: map[string]string{p: "x"}}
	}
	for _, c := range []struct {
		ctx  context.Context
		b    bundle
		want string
	}{
		{context.Background(), badBundle{v2()}, `staging "mail": writing "index.py": its content differs`},
		{cancelled, v2(), `context canceled`},
		{context.Background(), fakeBundle{id: "../evil", version: 1}, `staging "../evil": `},
		{context.Background(), fakeBundle{id: "mail", version: -1}, `"-1-`},
		{context.Background(), path("../../evil"), `"../../evil"`},
		{context.Background(), path("node_modules/x"), `"node_modules/x"`},
		{context.Background(), path("auth/x"), `"auth/x"`},
	} {
		_, err := s.stage(c.ctx, c.b, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want …%s…", err, c.want)
		}
		same(t, c.want, snapshot(t, home), before)
	}
	if _, err := s.Stage(context.Background(), nil, nil); err == nil {
		t.Error("staged nothing")
	}
	for _, name := range []string{"", "..", "../x", "a/b", "A"} {
		if err := put(s, v1(), name, nil, nil, nil); err == nil {
			t.Errorf("installed as %q", name)
		}
		if _, err := s.Remove(context.Background(), name, ""); err == nil {
			t.Errorf("removed %q", name)
		}
	}
	same(t, "names", snapshot(t, home), before)
	noStageLocks(t, home)
}
