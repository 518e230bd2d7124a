package install

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skald-connectors/internal/atomicfile"
)

func TestInstallAndUpgrade(t *testing.T) {
	home := filepath.Join(tempDir(t), "deep", "home")
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
	if removed, err = s.Remove(context.Background(), "work", true); err != nil || !slices.Equal(removed, []string{"work/work"}) {
		t.Errorf("removed %v %v", removed, err)
	}
	content(t, filepath.Join(home, "state/work/auth/creds.json"), "paired")
	if removed, err = s.Remove(context.Background(), "work", false); err != nil || !slices.Equal(removed, []string{"state/work"}) {
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
		if _, err := s.Remove(context.Background(), name, false); err == nil {
			t.Errorf("removed %q", name)
		}
	}
	same(t, "names", snapshot(t, home), before)
	noStageLocks(t, home)
}

// A link in place of one of our folders is never followed, wherever it leads.
func TestPlantedLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	for _, to := range []string{"outside", "inside"} {
		for _, where := range []string{"connectors", "connectors/mail", "work", "work/work", "state", "state/work", "state/work/auth", "receipts", "locks"} {
			home, target := tempDir(t), tempDir(t)
			if to == "inside" {
				target = filepath.Join(home, "elsewhere")
				check(t, os.Mkdir(target, 0o700))
			}
			check(t, os.MkdirAll(filepath.Dir(filepath.Join(home, where)), 0o700))
			check(t, os.Symlink(target, filepath.Join(home, where)))
			s := Open(home)
			err := put(s, v1(), "work", nil, nil, nil)
			var unsafe *atomicfile.UnsafeError
			if !errors.As(err, &unsafe) || unsafe.Path != filepath.Join(home, where) {
				t.Errorf("%s link at %s: %v", to, where, err)
			}
			if where != "receipts" && where != "locks" { // those are not read here
				s.Sweep(context.Background(), nil)
			}
			s.Remove(context.Background(), "work", false)
			if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
				t.Errorf("%s link at %s: written %v %v", to, where, entries, err)
			}
		}
	}
}

// A home may itself be a link: people keep it on another disk.
func TestLinkedHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	real := tempDir(t)
	home := filepath.Join(tempDir(t), "link")
	check(t, os.Symlink(real, home))
	s := Open(home)
	mustPut(t, s, v1(), "work")
	if _, err := os.Stat(filepath.Join(real, "connectors", "mail")); err != nil {
		t.Error(err)
	}
	if r, err := s.Receipts(); err != nil || len(r) != 1 {
		t.Error(r, err)
	}
}

func TestCheck(t *testing.T) {
	s := Open(tempDir(t))
	ref := mustPut(t, s, v1(), "work")
	dir := s.VersionDir(ref)
	link := func(to string) func(p string) {
		return func(p string) { check(t, os.RemoveAll(p)); check(t, os.Symlink(to, p)) }
	}
	for _, c := range []struct {
		what, file, at, why string
		do                  func(p string)
	}{
		{"flip", "index.py", "", "its content differs", func(p string) { write(t, p, "print(7)\n") }},
		{"cut", "index.py", "", "it has 1 bytes, not 9", func(p string) { write(t, p, "p") }},
		{"gone", "index.py", "", "it is missing", func(p string) { check(t, os.Remove(p)) }},
		{"folder", "index.py", "", "it is not a regular file", func(p string) { check(t, os.Remove(p)); check(t, os.Mkdir(p, 0o700)) }},
		{"added", "lib/evil.py", "", "it was added", func(p string) { write(t, p, "") }},
		{"added folder", "json", "", "it was added", func(p string) { check(t, os.Mkdir(p, 0o700)) }},
		{"link", "index.py", "", "it is not a regular file", link("old.py")},
		{"linked folder", "lib/a", "", "it is not a folder", func(p string) { check(t, os.Rename(p, filepath.Join(dir, "b"))); link("../b")(p) }},
	} {
		if runtime.GOOS == "windows" && strings.Contains(c.what, "link") {
			continue
		}
		p := filepath.Join(dir, filepath.FromSlash(c.file))
		check(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			check(t, err)
			return os.Chmod(p, 0o700)
		}))
		if c.what == "flip" || c.what == "cut" {
			check(t, os.Remove(p))
		}
		c.do(p)
		err := s.Check(ref, v1().Files())
		var changed *ChangedError
		if !errors.As(err, &changed) || changed.Ref != ref || changed.Why != c.why && c.what != "linked folder" {
			t.Errorf("%s: %v", c.what, err)
		}
		check(t, put(s, v1(), "work", nil, nil, nil)) // replaces it
		clean(t, s, v1(), "work")
	}

	write(t, filepath.Join(s.WorkDir("work", ref), "index.py"), "evil")
	err := s.CheckWork("work", ref, v1().Files())
	want := `checking "mail" ` + ref.Dir() + `: "index.py" is not as it was installed: it has 4 bytes, not 9`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	err = s.Check(v2().ref(), v2().Files())
	want = `checking "mail" ` + v2().ref().Dir() + `: the folder is not as it was installed: it is missing`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := s.Check(ref, v2().Files()); err == nil || !strings.HasSuffix(err.Error(), "the list of its files is another one") {
		t.Errorf("another list: %v", err)
	}
	if err := s.Check(Ref{Connector: "..", Version: 1, Digest: ref.Digest}, nil); err == nil {
		t.Error("a hostile ref was checked")
	}
	if err := s.Check(Ref{Connector: "mail", Version: 1, Digest: "../../../../x"}, nil); err == nil {
		t.Error("a hostile ref was checked")
	}
}

func TestLiveStageIsNotSwept(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work") // named by no record
	st, err := s.stage(context.Background(), v1(), nil)
	check(t, err)
	work, err := st.Work("work")
	check(t, err)
	before := snapshot(t, home)
	removed, err := s.Sweep(context.Background(), nil)
	if err != nil || len(removed) > 0 {
		t.Errorf("swept %v %v", removed, err)
	}
	same(t, "with a live stage", snapshot(t, home), before)
	if _, err := os.Stat(work); err != nil {
		t.Error(err)
	}
	check(t, st.Discard())
	removed, err = s.Sweep(context.Background(), nil)
	if err != nil || len(removed) != 3 {
		t.Errorf("swept %v %v", removed, err)
	}
	empty(t, home)
}

// A sweep keeps what it does not know, and files that somebody asked to keep.
func TestSweepIsCareful(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	ref := mustPut(t, s, v1(), "work")
	write(t, filepath.Join(home, "state/gone/state/kept.db"), "x")
	write(t, filepath.Join(home, "connectors/mail/notes.txt"), "mine")
	write(t, filepath.Join(home, "connectors/desktop.ini"), "mine")
	write(t, filepath.Join(home, "activations/work.json"), "{}")
	before := snapshot(t, home)
	removed, err := s.Sweep(context.Background(), map[string][]Ref{"work": {ref}})
	if err != nil || len(removed) > 0 {
		t.Errorf("swept %v %v", removed, err)
	}
	same(t, "careful", snapshot(t, home), before)
	if removed, err := Open(filepath.Join(home, "none")).Sweep(context.Background(), nil); err != nil || removed != nil {
		t.Errorf("no home: %v %v", removed, err)
	}
	absent(t, filepath.Join(home, "none"))
}
