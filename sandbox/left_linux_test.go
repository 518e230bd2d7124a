package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLeftOfBubblewrap: bubblewrap's inner process stays when the outer one is killed before it has said that the inner
// one may go on; the next sweep ends it. The outer one is held there by a pipe.
func TestLeftOfBubblewrap(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bwrap here")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	block, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer release.Close()
	info, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--info-fd", "3", "--userns-block-fd", "4",
		"--ro-bind", "/", "/", "--bind", filepath.Join(dir, "home"), "/tmp", "true")
	cmd.ExtraFiles = []*os.File{told, block}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told.Close()
	block.Close()
	text := make([]byte, 256)
	n, err := info.Read(text) // {"child-pid": N, …
	_, number, _ := strings.Cut(string(text[:n]), `"child-pid": `)
	end := strings.IndexFunc(number, func(r rune) bool { return r < '0' || r > '9' })
	if err != nil || end < 1 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Skipf("bubblewrap makes no sandbox on this platform: %q %v", text[:n], err)
	}
	inner, err := strconv.Atoi(number[:end])
	if err != nil {
		t.Fatal(err)
	}
	if leftBelow(inner, dir) {
		t.Error("one that has its outer process is taken for one that was left")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !leftBelow(inner, dir) {
		t.Skip("bubblewrap leaves nothing behind on this platform")
	}
	if leftBelow(inner, dir+"d") || leftBelow(os.Getpid(), dir) {
		t.Error("another folder's, or another program, is taken for it")
	}
	EndLeft(dir)
	if _, err := io.ReadAll(info); err != nil { // open in the inner process until it is gone
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); leftBelow(inner, dir); {
		if time.Now().After(deadline) {
			t.Fatal("it is still there")
		}
	}
}
