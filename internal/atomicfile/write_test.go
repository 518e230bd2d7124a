package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestWriteNewAndOld(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	for _, data := range []string{"one", "", strings.Repeat("x", 1<<20)} {
		check(t, Write(p, []byte(data), 0o600))
		content(t, p, data)
	}
	only(t, dir, "f")
}

func TestWriteRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	check(t, Write("f", []byte("x"), 0o600))
	check(t, Write("./f", []byte("y"), 0o600))
	content(t, filepath.Join(dir, "f"), "y")
	only(t, dir, "f")
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	check(t, os.Mkdir(sub, 0o700))
	locked := filepath.Join(dir, "locked")
	check(t, os.WriteFile(locked, []byte("keep"), 0o444))
	for _, c := range []struct{ path, want string }{
		{sub, fmt.Sprintf("writing %q: it is not a regular file", sub)},
		{locked, fmt.Sprintf("writing %q: it is read-only", locked)},
		{sub + "/", fmt.Sprintf("writing %q: it names a folder", sub+"/")},
		{"", `writing "": it names a folder`},
	} {
		err := Write(c.path, []byte("new"), 0o600)
		if err == nil || err.Error() != c.want {
			t.Errorf("Write(%q): %v, want %s", c.path, err, c.want)
		}
	}
	if err := Write(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
	content(t, locked, "keep")
	only(t, dir, "locked", "sub")
	only(t, sub)
}

func TestWriteConcurrent(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if err := Write(p, []byte(strings.Repeat(fmt.Sprint(i), 1000)), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(p)
	check(t, err)
	if len(data) != 1000 || strings.Trim(string(data), string(data[0])) != "" {
		t.Errorf("mixed content %.20q…", data)
	}
	only(t, dir, "f")
}

func TestWriteThroughLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir := t.TempDir()
	mk := func(path string) string {
		path = filepath.Join(dir, path)
		check(t, os.MkdirAll(path, 0o700))
		return path
	}
	real, other, links := mk("real"), mk("other/deep"), mk("links")
	check(t, os.WriteFile(filepath.Join(real, "f"), []byte("old"), 0o640))
	for name, to := range map[string]string{
		"a":        "../real/f",                      // one relative hop
		"b":        "a",                              // a chain
		"c":        filepath.Join(dir, "links", "b"), // an absolute hop into the chain
		"deep":     other,                            // a folder
		"physical": "deep/../g",                      // other/g, not links/g
		"dangling": "../real/new",
		"loop":     "loop2", "loop2": "loop",
		"folder": "../real",
		"gone":   "../none/f",
	} {
		check(t, os.Symlink(to, filepath.Join(links, name)))
	}
	for _, c := range []struct{ link, lands string }{
		{"a", "real/f"}, {"b", "real/f"}, {"c", "real/f"}, {"physical", "other/g"}, {"dangling", "real/new"}, {"deep/h", "other/deep/h"},
	} {
		before, _ := os.Readlink(filepath.Join(links, c.link))
		check(t, Write(filepath.Join(links, c.link), []byte(c.link), 0o666))
		content(t, filepath.Join(dir, c.lands), c.link)
		if after, _ := os.Readlink(filepath.Join(links, c.link)); after != before {
			t.Errorf("link %s became %q", c.link, after)
		}
	}
	fi, err := os.Stat(filepath.Join(real, "f"))
	check(t, err)
	if fi.Mode() != 0o640 {
		t.Errorf("mode became %v", fi.Mode())
	}
	for _, c := range []struct{ link, want string }{
		{"loop", "more than 40 symbolic links"}, {"folder", "it is not a regular file"}, {"gone", "no such file or directory"},
	} {
		if err := Write(filepath.Join(links, c.link), nil, 0o600); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("Write(%s): %v, want …%s", c.link, err, c.want)
		}
	}
	only(t, real, "f", "new")
}
