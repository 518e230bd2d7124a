package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a full disk, wherever it becomes full, the old version stays as it is, the error
// says so, and nothing is left.
func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	home := filepath.Join(dir, "home")
	s := Open(home)
	withV1(t, home)
	before := snapshot(t, home)
	big := v2()
	big.content["data.bin"] = strings.Repeat("x", 64<<10)
	from := v1()
	full, free := 0, 0
	for ; free < 512; free += 8 {
		fill := filepath.Join(dir, "fill")
		fillAllBut(t, fill, free<<10)
		err := put(s, big, "work", &from, nil, nil)
		check(t, os.Remove(fill))
		if err == nil {
			break
		}
		full++
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), ": no space left on device") {
			t.Errorf("%d KiB free: %v", free, err)
		}
		clean(t, s, v1(), "work")
		_, err = s.Sweep(context.Background(), map[string][]Ref{"work": {v1().ref()}})
		check(t, err)
		same(t, fmt.Sprintf("%d KiB free", free), snapshot(t, home), before)
		noStageLocks(t, home)
	}
	if full < 10 {
		t.Errorf("full only %d times", full)
	}
	clean(t, s, big, "work")
}

// fillAllBut fills the disk and then gives back some room.
func fillAllBut(t *testing.T, path string, room int) {
	t.Helper()
	f, err := os.Create(path)
	check(t, err)
	size := 0
	for buf := make([]byte, 4096); ; {
		n, err := f.Write(buf)
		if size += n; err != nil {
			break
		}
	}
	check(t, f.Truncate(int64(max(size-room, 0))))
	check(t, f.Close())
}
