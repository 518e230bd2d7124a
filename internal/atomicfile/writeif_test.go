package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWriteIf(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	check(t, WriteIf(p, nil, []byte("one"), 0o600))
	if err := WriteIf(p, nil, []byte("x"), 0o600); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that appeared: %v", err)
	}
	check(t, WriteIf(p, []byte("one"), []byte("two"), 0o600))
	for _, old := range []string{"one", "", "two longer", "tw"} {
		err := WriteIf(p, []byte(old), []byte("x"), 0o600)
		if want := fmt.Sprintf("writing %q: it was changed by another program", p); err == nil || err.Error() != want || !errors.Is(err, ErrChanged) {
			t.Errorf("old %q: %v, want %s", old, err, want)
		}
	}
	content(t, p, "two")
	check(t, os.Remove(p))
	if err := WriteIf(p, []byte("two"), []byte("x"), 0o600); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that went away: %v", err)
	}
	only(t, dir)
}

func TestWriteIfThroughLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	check(t, os.Symlink("real", link))
	check(t, WriteIf(link, nil, []byte("one"), 0o600))
	check(t, WriteIf(link, []byte("one"), []byte("two"), 0o600))
	content(t, filepath.Join(dir, "real"), "two")
	only(t, dir, "link", "real")
}

// Another program rewrites the file all the time and looks whether what it wrote is
// still there; we rewrite it too, keeping its part.
func TestWriteIfLosesNothingOfOthers(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this platform cannot exchange two files")
	}
	dir := t.TempDir()
	p := filepath.Join(dir, "n")
	check(t, os.WriteFile(p, []byte("0 0"), 0o600))
	read := func() (theirs, ours int) {
		data, err := os.ReadFile(p)
		check(t, err)
		if n, _ := fmt.Sscan(string(data), &theirs, &ours); n != 2 {
			t.Errorf("torn: %q", data)
		}
		return theirs, ours
	}
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			theirs, ours := read()
			for tries := 0; theirs != n && tries < 1000; tries++ { // between the two exchanges ours is seen
				theirs, ours = read()
			}
			if theirs != n {
				t.Errorf("they wrote %d and find %d", n, theirs)
				return
			}
			tmp := filepath.Join(dir, "theirs")
			os.WriteFile(tmp, fmt.Append(nil, n+1, " ", ours), 0o600)
			os.Rename(tmp, p)
		}
	}()
	won, lost := 0, 0
	for won < 5 && lost < 200 {
		old, err := os.ReadFile(p)
		check(t, err)
		var theirs, ours int
		fmt.Sscan(string(old), &theirs, &ours)
		switch err := WriteIf(p, old, fmt.Append(nil, theirs, " ", ours+1), 0o600); {
		case err == nil:
			won++
		case errors.Is(err, ErrChanged):
			lost++
		default:
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
	t.Logf("%d writes, %d given up", won, lost)
}
