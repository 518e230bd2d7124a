package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	p := filepath.Join(dir, "f")
	check(t, Write(p, []byte("old"), 0o600))
	if err := Write(p, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk gives %v", err)
	}
	content(t, p, "old")
	only(t, dir, "f")

	// To the last byte: even the lock and its text must not need room.
	fill, err := os.Create(filepath.Join(dir, "z"))
	check(t, err)
	for buf := make([]byte, 4096); err == nil; {
		_, err = fill.Write(buf)
	}
	check(t, fill.Close())
	if err := Write(p, []byte("new"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk gives %v", err)
	}
	content(t, p, "old")
	only(t, dir, "f", "z")
	unlock, ok, err := TryLock(filepath.Join(dir, "l"))
	if err != nil || !ok {
		t.Fatalf("locking on a full disk: %v %v", ok, err)
	}
	unlock()
}
