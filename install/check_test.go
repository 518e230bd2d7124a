package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"skald-connectors/internal/atomicfile"
)

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
			s.Remove(context.Background(), "work", "")
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
	if _, err := s.Remove(context.Background(), "gone", "mail from here"); err != nil {
		t.Fatal(err)
	}
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
