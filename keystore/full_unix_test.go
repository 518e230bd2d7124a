//go:build unix

package keystore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// childFull DIR has a limit on the size of files in the place of a full disk.
func childFull(args []string) error {
	signal.Ignore(syscall.SIGXFSZ) // the write then fails with EFBIG
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		return err
	}
	big := handles("A", strings.Repeat("x", 8192))
	s := fileStore(args[0])
	err1 := s.Put(context.Background(), "shared", 2, big)
	err2 := s.Update(context.Background(), "shared", 1, func([]Handle) ([]Handle, error) { return big, nil })
	if !isKind(err1, Unwritable) || !isKind(err2, Unwritable) || !errors.Is(err1, syscall.EFBIG) {
		return fmt.Errorf("put: %v; update: %v", err1, err2)
	}
	return nil
}

func TestFullDiskLeavesTheOldVault(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keystore")
	s := fileStore(dir)
	must(t, s.Put(t.Context(), "shared", 1, handles("A", "old")))
	before := snapshot(t, dir)
	cmd := child(t, "full", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	hs, err := fileStore(dir).Load(t.Context(), "shared", 1)
	if err != nil || !sameHandles(hs, handles("A", "old")) {
		t.Errorf("%v, %v", hs, err)
	}
}

// snapshot is a text of every file and its bytes, locks left out.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var b strings.Builder
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") || e.Type()&os.ModeNamedPipe != 0 { // a pipe would block us
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		fmt.Fprintf(&b, "%s %x\n", e.Name(), sha256Hex(data))
	}
	return b.String()
}

func TestUnsafeFilesAreRefused(t *testing.T) {
	rows := map[string]struct {
		change func(t *testing.T, dir string)
		kind   Kind
	}{
		"vault mode":     {func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/gmail.1.age", 0o640)) }, Unsafe},
		"key mode":       {func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/vault.key", 0o604)) }, Unsafe},
		"record mode":    {func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/keystore.json", 0o644)) }, Unsafe},
		"folder mode":    {func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o750)) }, Unsafe},
		"vault symlink":  {func(t *testing.T, dir string) { link(t, dir+"/gmail.1.age") }, Unsafe},
		"key symlink":    {func(t *testing.T, dir string) { link(t, dir+"/vault.key") }, Unsafe},
		"record symlink": {func(t *testing.T, dir string) { link(t, dir+"/keystore.json") }, Unsafe},
		"folder symlink": {func(t *testing.T, dir string) { link(t, dir) }, Unsafe},
		"vault folder":   {func(t *testing.T, dir string) { folder(t, dir+"/gmail.1.age") }, Unsafe},
		"key fifo": {func(t *testing.T, dir string) {
			must(t, os.Remove(dir+"/vault.key"))
			must(t, syscall.Mkfifo(dir+"/vault.key", 0o600))
		}, Unsafe},
		"key gone":     {func(t *testing.T, dir string) { must(t, os.Remove(dir+"/vault.key")) }, KeyMissing},
		"key empty":    {func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/vault.key", nil, 0o600)) }, Damaged},
		"record gone":  {func(t *testing.T, dir string) { must(t, os.Remove(dir+"/keystore.json")) }, KeyMissing},
		"record empty": {func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/keystore.json", nil, 0o600)) }, Damaged},
		"key huge":     {func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/vault.key", make([]byte, 5000), 0o600)) }, Unreadable},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keystore")
			must(t, fileStore(dir).Put(t.Context(), "gmail", 1, handles("A", "x")))
			row.change(t, dir)
			before := snapshot(t, dir)
			_, err := fileStore(dir).Load(t.Context(), "gmail", 1)
			wantKind(t, err, row.kind)
			wantKind(t, fileStore(dir).Put(t.Context(), "gmail", 1, handles("A", "y")), row.kind)
			if after := snapshot(t, dir); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
		})
	}
}

// link moves a thing away and leaves a symbolic link to it.
func link(t *testing.T, path string) {
	t.Helper()
	must(t, os.Rename(path, path+".moved"))
	must(t, os.Symlink(path+".moved", path))
}

func folder(t *testing.T, path string) {
	t.Helper()
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
}

func TestKeyFileFromOutside(t *testing.T) {
	dir := t.TempDir()
	k, err := newKey()
	must(t, err)
	o := Options{Dir: dir + "/keystore", Want: BackendKeyfile, KeyFile: dir + "/mine.key"}
	must(t, os.WriteFile(o.KeyFile, []byte(k.text()), 0o644))
	must(t, os.Chmod(o.KeyFile, 0o644))
	wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")), Unsafe)
	must(t, os.Chmod(o.KeyFile, 0o600))
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")))
	o.KeyFile = "" // the path is recorded
	s := open(t, o)
	if _, err := s.Load(t.Context(), "gmail", 1); err != nil || s.cached.text() != k.text() {
		t.Errorf("not adopted: %v", err)
	}
	must(t, s.Remove("gmail"))
	must(t, s.Forget(t.Context()))
	if _, err := os.Stat(dir + "/mine.key"); err != nil {
		t.Errorf("a key file that is not ours: %v", err)
	}
	o.KeyFile = "relative.key"
	wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")), Invalid)
}
