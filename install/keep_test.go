package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// State that no record names is what an interrupted install left, unless a person
// asked to keep it or a process works on it right now.
func TestUnnamedState(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	for _, name := range []string{"left", "kept", "busy"} {
		write(t, filepath.Join(home, "state", name, "home/token"), "x")
	}
	for _, planted := range []string{".kept", ".kept-left", "home/.kept-left"} { // the connector can write there
		write(t, filepath.Join(home, "state/left", planted), "x")
	}
	if _, err := s.Remove(context.Background(), "kept", "mail from here"); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.LockName(context.Background(), "busy", nil)
	check(t, err)
	removed, err := s.Sweep(context.Background(), nil)
	if err != nil || len(removed) != 1 || removed[0] != "state/left" {
		t.Errorf("swept %v (%v)", removed, err)
	}
	check(t, s.Abandon(context.Background(), "busy"))
	unlock()
	absent(t, filepath.Join(home, "state/busy"))
	check(t, s.Abandon(context.Background(), "kept"))
	if what, ok := s.Kept("kept"); !ok || what != "mail from here" {
		t.Errorf("kept data is known as %q, %v", what, ok)
	}
	if _, ok := s.Kept("left"); ok {
		t.Error("what was left is taken for kept")
	}
	if _, err := os.Stat(filepath.Join(home, "state/kept/home/token")); err != nil {
		t.Error(err)
	}
	if _, err := s.Remove(context.Background(), "kept", ""); err != nil {
		t.Error(err)
	}
	absent(t, filepath.Join(home, "state/.kept-kept"))
}

// Heal brings back what a connector did to its shipped files and leaves its own; a
// version folder that was changed is not a source to heal from.
func TestHeal(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	b := v1()
	ref := mustPut(t, s, b, "work")
	work := s.WorkDir("work", ref)
	files := b.Files()
	for _, f := range files {
		path := filepath.Join(work, filepath.FromSlash(f.Path))
		check(t, os.Chmod(path, 0o600))
		check(t, os.WriteFile(path, []byte("evil"), 0o600))
	}
	write(t, filepath.Join(work, "own.db"), "mine")
	check(t, s.Heal(context.Background(), "work", ref, files))
	check(t, s.CheckWork("work", ref, files))
	if data, err := os.ReadFile(filepath.Join(work, "own.db")); err != nil || string(data) != "mine" {
		t.Errorf("%q %v", data, err)
	}
	check(t, os.RemoveAll(work))
	check(t, s.Heal(context.Background(), "work", ref, files))
	check(t, s.CheckWork("work", ref, files))
	if now, err := os.Readlink(filepath.Join(work, "state")); err != nil || now == "" {
		t.Errorf("the link is missing: %v", err)
	}

	shipped := filepath.Join(s.VersionDir(ref), filepath.FromSlash(files[0].Path))
	check(t, os.Chmod(filepath.Dir(shipped), 0o700))
	check(t, os.Chmod(shipped, 0o600))
	check(t, os.WriteFile(shipped, []byte("evil"), 0o600))
	var changed *ChangedError
	if err := s.Heal(context.Background(), "work", ref, files); !errors.As(err, &changed) || changed.File != files[0].Path {
		t.Errorf("healed from a changed version: %v", err)
	}
}
