package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	check(t, Write(p, []byte("12345"), 0o600))
	for _, limit := range []int64{5, 6} {
		if data, err := Read(p, limit); err != nil || string(data) != "12345" {
			t.Errorf("limit %d: %q %v", limit, data, err)
		}
	}
	want := fmt.Sprintf("reading %q: it is larger than 4 bytes", p)
	if _, err := Read(p, 4); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Read(filepath.Join(dir, "none"), 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func TestReadUnsafe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("rights are not mode bits here")
	}
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		check(t, os.WriteFile(p, []byte("x"), 0o600))
		check(t, os.Chmod(p, mode))
		return p
	}
	link := filepath.Join(dir, "link")
	check(t, os.Symlink(file("ok", 0o644), link))
	cases := []struct{ path, why string }{
		{link, "it is a symbolic link"},
		{dir, "it is not a regular file"},
		{file("group", 0o620), "it can be written by others"},
		{file("world", 0o602), "it can be written by others"},
	}
	if os.Geteuid() == 0 {
		p := file("foreign", 0o600)
		check(t, os.Chown(p, 65534, 65534))
		cases = append(cases, struct{ path, why string }{p, "it belongs to another user"})
	}
	for _, c := range cases {
		_, err := Read(c.path, 10)
		var unsafe *UnsafeError
		if want := fmt.Sprintf("%q is not safe to use: %s", c.path, c.why); !errors.As(err, &unsafe) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestPrivateDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("rights are not mode bits here")
	}
	dir := t.TempDir()
	folder := func(name string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		check(t, os.Mkdir(p, 0o700))
		check(t, os.Chmod(p, mode))
		return p
	}
	for _, p := range []string{filepath.Join(dir, "a", "b", "c"), folder("loose", 0o755), folder("shut", 0), folder("right", 0o700), folder("slash", 0o750) + "/"} {
		check(t, PrivateDir(p))
		fi, err := os.Stat(p)
		check(t, err)
		if fi.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
	}
	file := filepath.Join(dir, "file")
	check(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(dir, "link")
	check(t, os.Symlink("right", link))
	cases := []struct{ path, why string }{
		{file, "it is not a folder"}, {link, "it is a symbolic link"}, {folder("world", 0o777), "it can be written by others"}, {folder("group", 0o770), "it can be written by others"},
	}
	if os.Geteuid() == 0 {
		p := folder("foreign", 0o700)
		check(t, os.Chown(p, 65534, 65534))
		cases = append(cases, struct{ path, why string }{p, "it belongs to another user"})
	}
	for _, c := range cases {
		err := PrivateDir(c.path)
		var unsafe *UnsafeError
		if !errors.As(err, &unsafe) || unsafe.Why != c.why {
			t.Errorf("PrivateDir(%s): %v, want %s", c.path, err, c.why)
		}
	}
}

func TestRenameDir(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a", "x"), filepath.Join(dir, "b", "y")
	check(t, os.MkdirAll(from, 0o700))
	check(t, os.MkdirAll(filepath.Dir(to), 0o700))
	check(t, os.WriteFile(filepath.Join(from, "f"), []byte("1"), 0o600))
	check(t, RenameDir(from, to))
	content(t, filepath.Join(to, "f"), "1")
	err := RenameDir(from, to)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("moving what is not there gives %v", err)
	}
}
