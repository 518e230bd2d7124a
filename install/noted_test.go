package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// reads gives the files that a look at a version reads.
func reads(t *testing.T, s *Store, b fakeBundle, now time.Time) (list []string, err error) {
	t.Helper()
	s.step = func(what string) {
		if file, ok := strings.CutPrefix(what, "read-file "); ok {
			list = append(list, file)
		}
	}
	defer func() { s.step = func(string) {} }()
	err = s.CheckNoted(b.ref(), b.Files(), now)
	return list, err
}

func needStates(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("on this platform every file is always read")
	}
}

// What was read once is not read again while the file system says that it is the
// same; every doubt reads.
func TestCheckNoted(t *testing.T) {
	needStates(t)
	s, b := Open(tempDir(t)), v1()
	ref := mustPut(t, s, b, "work")
	all := len(b.Files())
	file := filepath.Join(s.VersionDir(ref), "index.py")
	noted := filepath.Join(s.home, notesDir, noteName(ref))
	later := time.Now().Add(time.Minute)
	expect := func(what string, now time.Time, want int) {
		t.Helper()
		list, err := reads(t, s, b, now)
		if err != nil || len(list) != want {
			t.Errorf("%s: %d files are read (%q), want %d; %v", what, len(list), list, want, err)
		}
	}
	expect("just installed", time.Now(), all)
	expect("and again, since the times are too young", time.Now(), all)
	expect("first look", later, all)
	expect("second look", later.Add(time.Second), 0)
	expect("the clock was set back", later.Add(-time.Second), all)
	expect("the same", later, 0)

	check(t, os.Chmod(file, 0o600))
	expect("one was touched", later, 1)
	past := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(file, past, past))
	expect("its time was set", later, 1)
	check(t, os.Chmod(filepath.Dir(file), 0o700))
	check(t, os.Rename(file, file+".x"))
	check(t, os.WriteFile(file, []byte(b.content["index.py"]), 0o600))
	check(t, os.Remove(file+".x"))
	expect("another file of the same bytes", later, 1)

	for _, text := range []string{"", "nonsense", "checked 2 " + noteName(ref) + " 1\n", "checked 1 other@1-0123456789abcdef 1\n"} {
		check(t, os.WriteFile(noted, []byte(text), 0o600))
		expect(fmt.Sprintf("the note %q", text), later, all)
	}
	check(t, os.Chmod(noted, 0o666))
	expect("a note that others can write", later, all)
	check(t, os.Remove(noted))
	check(t, os.Mkdir(noted, 0o700))
	expect("a note that is a folder", later, all)
}

// A file that is not the pinned one is named, whatever was noted.
func TestCheckNotedChanged(t *testing.T) {
	needStates(t)
	for _, c := range []struct {
		what, why string
		do        func(file string) error
	}{
		{"the same length and the same times", "its content differs", func(file string) error {
			fi, err := os.Stat(file)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(file, []byte("print(9)\n"), 0), os.Chtimes(file, fi.ModTime(), fi.ModTime()))
		}},
		{"exchanged", "its content differs", func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("print(9)\n"), 0o400), os.Rename(file+".new", file))
		}},
		{"gone", "it is missing", os.Remove},
		{"a link to the same bytes", "it is not a regular file", func(file string) error {
			same := filepath.Join(filepath.Dir(file), "..", "same")
			return errors.Join(os.Rename(file, same), os.Symlink("../same", file))
		}},
		{"added beside it", "it was added", func(file string) error { return os.WriteFile(file+"c", nil, 0o600) }},
	} {
		s, b := Open(tempDir(t)), v1()
		ref := mustPut(t, s, b, "work")
		file := filepath.Join(s.VersionDir(ref), "index.py")
		check(t, os.Chmod(filepath.Dir(file), 0o700))
		check(t, os.Chmod(file, 0o600))
		later := time.Now().Add(time.Minute)
		check(t, s.CheckNoted(ref, b.Files(), later))
		check(t, c.do(file))
		var changed *ChangedError
		if err := s.CheckNoted(ref, b.Files(), later); !errors.As(err, &changed) || changed.Why != c.why {
			t.Errorf("%s: %v, want %s", c.what, err, c.why)
		}
	}
}

// A note goes with its version.
func TestNotesAreSwept(t *testing.T) {
	needStates(t)
	s, b := Open(tempDir(t)), v1()
	ref := mustPut(t, s, b, "work")
	check(t, s.CheckNoted(ref, b.Files(), time.Now().Add(time.Minute)))
	check(t, os.WriteFile(filepath.Join(s.home, notesDir, "rubbish"), nil, 0o600))
	left := func(inUse map[string][]Ref) int {
		_, err := s.Sweep(context.Background(), inUse)
		check(t, err)
		entries, err := os.ReadDir(filepath.Join(s.home, notesDir))
		check(t, err)
		return len(entries)
	}
	if n := left(map[string][]Ref{"work": {ref}}); n != 1 {
		t.Errorf("%d notes are left beside the one of the version", n-1)
	}
	if n := left(nil); n != 0 {
		t.Errorf("%d notes are left without a version", n)
	}
}

// FuzzNote holds that a note that is read is the one that would be written.
func FuzzNote(f *testing.F) {
	ref := v1().ref()
	n := note{taken: time.Unix(0, 5), files: map[string]notedFile{"a b": {strings.Repeat("0a", 32), fileState{1, 2, -3, 4, 5}}}}
	f.Add(n.text(ref))
	f.Add([]byte("checked 1 " + noteName(ref) + " 7\n"))
	f.Add([]byte("checked 1 " + noteName(ref) + " 7\n" + strings.Repeat("0a", 32) + " 1 2 3 4 5 \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := parseNote(data, ref)
		again := parseNote(n.text(ref), ref)
		if n.files != nil && (!again.taken.Equal(n.taken) || fmt.Sprint(again.files) != fmt.Sprint(n.files)) {
			t.Fatalf("%v became %v", n, again)
		}
	})
}
