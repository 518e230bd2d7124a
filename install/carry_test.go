package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skald-connectors/manifest"
)

func shipped(paths ...string) (files []manifest.File) {
	for _, p := range paths {
		files = append(files, manifest.File{Path: p})
	}
	return files
}

// carried runs carry on two folders.
func carried(t *testing.T, dst, src string, oldShipped, newShipped []manifest.File) ([]string, error) {
	t.Helper()
	d, err := os.OpenRoot(dst)
	check(t, err)
	defer d.Close()
	s, err := os.OpenRoot(src)
	check(t, err)
	defer s.Close()
	return carry(d, s, oldShipped, newShipped, func(string) {})
}

func TestCarry(t *testing.T) {
	src, dst := tempDir(t), tempDir(t)
	for _, p := range []string{
		"session.json", "db/main.sqlite", "db/deep/er/x.bin", "pre-key-1.json", ".hidden", // data
		"index.py", "gone.py", // shipped by the old version
		"config.json", "Data/x", "lib", "conf", // the new one ships config.json, data/x, lib/y and the file conf…
		"conf/inner.json",                                                                          // (made below instead of conf)
		"evil.py", "lib2/z.js", "PACKAGE.JSON", "a.PTH", ".npmrc", "sub/.yarnrc.yml", ".git/hooks", // code and steering
		"node_modules/m/a.json", ".pydeps/x.json", "__pycache__/a.json", "sub/__pycache__/b", "auth/creds.json", "state/s.json", ".stage-abc", ".trash-x/y", ".skald-temp-z",
	} {
		if p != "conf" {
			write(t, filepath.Join(src, filepath.FromSlash(p)), p)
		}
	}
	write(t, filepath.Join(dst, "index.py"), "new")
	odd := "session-1:2@s.host.json"
	want := []string{".hidden", "db/deep/er/x.bin", "db/main.sqlite", "index.py", "pre-key-1.json", "session.json"}
	if runtime.GOOS != "windows" {
		write(t, filepath.Join(src, odd), odd)
		want = append(want, odd)
		check(t, os.Symlink("/etc/passwd", filepath.Join(src, "link")))
	}
	slices.Sort(want)
	left, err := carried(t, dst, src, shipped("index.py", "gone.py"), shipped("index.py", "config.json", "data/x", "lib/y", "conf"))
	check(t, err)
	var got []string
	check(t, filepath.WalkDir(dst, func(p string, d os.DirEntry, err error) error {
		check(t, err)
		if !d.IsDir() {
			rel, _ := filepath.Rel(dst, p)
			got = append(got, filepath.ToSlash(rel))
			if rel != "index.py" {
				content(t, p, filepath.ToSlash(rel))
			}
		}
		return nil
	}))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("carried %q, want %q", got, want)
	}
	content(t, filepath.Join(dst, "index.py"), "new")
	wantLeft := []string{
		`".git/hooks": its name is reserved`, `".npmrc": its name is reserved`, `"Data/x": the new version has its own`, `"PACKAGE.JSON": it looks like code`,
		`"a.PTH": it looks like code`, `"conf/inner.json": the new version has a file in place of its folder`, `"config.json": the new version has its own`,
		`"evil.py": it looks like code`, `"lib": the new version has its own`, `"lib2/z.js": it looks like code`,
		`"link": it is not a regular file`, `"sub/.yarnrc.yml": its name is reserved`,
	}
	if runtime.GOOS == "windows" {
		wantLeft = slices.DeleteFunc(wantLeft, func(s string) bool { return strings.HasPrefix(s, `"link"`) })
	}
	if !slices.Equal(left, wantLeft) {
		t.Errorf("left\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(wantLeft, "\n"))
	}
}

// The younger file wins, and a repeated carry changes nothing.
func TestCarryAgain(t *testing.T) {
	src, dst := tempDir(t), tempDir(t)
	f, g := filepath.Join(src, "f"), filepath.Join(dst, "f")
	write(t, f, "one")
	older(t, f)
	older(t, f)
	for range 2 {
		_, err := carried(t, dst, src, nil, nil)
		check(t, err)
		content(t, g, "one")
	}
	a, err := os.Stat(f)
	check(t, err)
	b, err := os.Stat(g)
	check(t, err)
	if !a.ModTime().Equal(b.ModTime()) {
		t.Errorf("time %v became %v", a.ModTime(), b.ModTime())
	}
	write(t, g, "younger")
	older(t, g)
	_, err = carried(t, dst, src, nil, nil)
	check(t, err)
	content(t, g, "younger")
	write(t, f, "youngest")
	_, err = carried(t, dst, src, nil, nil)
	check(t, err)
	content(t, g, "youngest")
}

func TestCarryTooMuch(t *testing.T) {
	src, dst := tempDir(t), tempDir(t)
	big := filepath.Join(src, "big")
	write(t, big, "")
	if err := os.Truncate(big, carryBytes+1); err != nil { // sparse where the system can
		t.Skip(err)
	}
	_, err := carried(t, dst, src, nil, nil)
	want := "copying the connector's own files: the connector keeps more than 20000 files or 1073741824 bytes in its own folder"
	if err == nil || err.Error() != want || !errors.Is(err, errTooMuch) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Commit takes what a running session of the old version wrote after Carry.
func TestCarryLate(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	session := filepath.Join(s.WorkDir("work", v1().ref()), "session.json")
	write(t, session, "early")
	older(t, session)
	st, err := s.stage(context.Background(), v2(), nil)
	check(t, err)
	if _, err := st.Carry(v1().ref(), v1().Files()); err == nil {
		t.Error("carried before Work")
	}
	work, err := st.Work("work")
	check(t, err)
	if _, err := st.Carry(v1().ref(), v1().Files()); err != nil {
		t.Error(err)
	}
	if _, err := st.Carry(Ref{Connector: "mail", Version: 9, Digest: strings.Repeat("0", 16)}, nil); err != nil {
		t.Errorf("a version that is gone: %v", err)
	}
	content(t, filepath.Join(work, "session.json"), "early")
	write(t, session, "late")
	_, err = st.Commit("work")
	check(t, err)
	content(t, filepath.Join(s.WorkDir("work", v2().ref()), "session.json"), "late")
	clean(t, s, v2(), "work")
}
