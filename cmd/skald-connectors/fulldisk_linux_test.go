package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestUpgradeOnAFullDisk lets the disk become full at one place after the other. The old
// version stays in force, the message says why, and with room again the upgrade works.
func TestUpgradeOnAFullDisk(t *testing.T) {
	b := newBench(t)
	fill := b.onSmallDisk()
	b.must(append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))...)
	b.bump("mail")
	if code, _, errs := b.run(nil, "upgrade", "mail", "--dry-run"); code != exitToDo { // fills the cache
		t.Fatalf("exit %d: %s", code, errs)
	}
	full, room := 0, 0
	for ; room < 512; room += 12 {
		fillAllBut(t, fill, room<<10)
		code, _, errs := b.run(nil, "upgrade", "mail", "--yes")
		if err := os.Remove(fill); err != nil {
			t.Fatal(err)
		}
		if code == exitDone {
			break
		}
		full++
		if !strings.Contains(errs, "no space left on device") {
			t.Errorf("%d KiB free: exit %d: %s", room, code, errs)
		}
		if now := b.mail(); now != "version 1, port 993" {
			t.Errorf("%d KiB free: there is %s", room, now)
		}
	}
	if full < 4 {
		t.Errorf("the disk was full %d times only", full)
	}
	if now := b.mail(); now != "version 2, port 993" {
		t.Errorf("there is %s", now)
	}
	b.must("call", "mail", "echo", `{"text":"on"}`)
	fillAllBut(t, fill, 0)
	code, _, errs := b.run(nil, "rollback", "mail")
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	if now := b.mail(); code != exitDone && now != "version 2, port 993" {
		t.Errorf("exit %d, and there is %s: %s", code, now, errs)
	}
	b.must("call", "mail", "echo", `{"text":"on"}`)
	if code != exitDone {
		b.must("rollback", "mail")
	}
	b.must("verify", "mail")
}

// onSmallDisk puts the home on a disk of its own, of 2 MiB, and names the file that fills it.
func (b *bench) onSmallDisk() (fill string) {
	b.t.Helper()
	disk := b.t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		b.t.Skipf("no small file system can be mounted here: %v", err)
	}
	b.t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	b.env = append(b.env, "SKALD_CONNECTORS_HOME="+filepath.Join(disk, "home"))
	if err := os.Symlink(filepath.Join(disk, "home"), b.home()); err != nil {
		b.t.Fatal(err)
	}
	return filepath.Join(disk, "fill")
}

// fillAllBut fills the disk and then gives back some room.
func fillAllBut(t *testing.T, path string, room int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for buf := make([]byte, 4096); ; {
		n, err := f.Write(buf)
		if size += n; err != nil {
			break
		}
	}
	if err := f.Truncate(int64(max(size-room, 0))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
