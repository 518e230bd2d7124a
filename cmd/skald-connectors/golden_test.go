package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoldenHomes opens a home of every earlier format of our state and works with it.
// testdata/homes/N.tar.gz is one home each: mail and plain, and plain once more as second,
// with a tool denied, installed by the program of that time; plain keeps a session in
// state/plain/state and paired.json in its own folder. In the records @MARKET@ stands for
// the marketplace. Whoever changes what is on disk, adds one that was made before the
// change: install the three, leave out cache, locks and sandbox, and put @MARKET@ in place
// of the folder.
func TestGoldenHomes(t *testing.T) {
	homes, err := filepath.Glob("testdata/homes/*.tar.gz")
	if err != nil || len(homes) == 0 {
		t.Fatal("there are no homes", err)
	}
	for _, home := range homes {
		t.Run(filepath.Base(home), func(t *testing.T) { t.Parallel(); openGolden(t, home) })
	}
}

func openGolden(t *testing.T, archive string) {
	b := newBench(t)
	unpack(t, archive, b.dir, "@MARKET@", filepath.Join(b.dir, "market"))
	if out := b.must("list"); strings.Count(out, "ready") != 3 || strings.Contains(out, "broken") {
		t.Errorf("list:\n%s", out)
	}
	b.must("verify", "mail")
	b.must("call", "plain", "echo", `{"text":"on"}`)
	b.bump("mail")
	b.bump("plain")
	b.must("upgrade", "--all", "--yes")
	b.must("verify", "mail")
	if code, _, _ := b.run(nil, "call", "second", "echo", "{}"); code != exitUsage {
		t.Errorf("a tool that was denied is called: exit %d", code)
	}
	for _, file := range []string{"state/plain/state/session", "work/plain/2-*/paired.json"} {
		if found, _ := filepath.Glob(filepath.Join(b.dir, "home", file)); len(found) != 1 {
			t.Errorf("%s is lost", file)
		}
	}
	b.must("rollback", "mail")
	if out := b.must("verify", "mail"); !strings.Contains(out, "h:143") {
		t.Errorf("the settings are lost: %s", out)
	}
	for _, name := range []string{"mail", "plain", "second"} {
		b.must("uninstall", name)
	}
	if left := b.withoutTops(); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// unpack puts the files of an archive below dir, with words of names and texts replaced.
func unpack(t *testing.T, archive, dir string, words ...string) {
	t.Helper()
	swap := strings.NewReplacer(words...)
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var folders []*tar.Header
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Name = swap.Replace(h.Name)
		path := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
			folders = append(folders, h)
		case tar.TypeSymlink:
			err = os.Symlink(swap.Replace(h.Linkname), path)
		default:
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, []byte(swap.Replace(string(data))), h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range folders { // only now: some are read-only
		if err := os.Chmod(filepath.Join(dir, h.Name), h.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}
