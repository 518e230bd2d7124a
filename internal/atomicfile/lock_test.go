package atomicfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// heldByOther starts another process that holds the lock.
func heldByOther(t *testing.T, path string) (pid int, release, kill func()) {
	cmd := helper(t, "hold", path)
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	cmd.Stderr = os.Stderr
	check(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("%q %v", line, err)
	}
	return cmd.Process.Pid, func() { in.Close(); cmd.Wait() }, func() { cmd.Process.Kill(); cmd.Wait() }
}

func TestLockAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	for _, end := range []string{"release", "kill"} {
		pid, release, kill := heldByOther(t, path)
		if _, ok, err := TryLock(path); ok || err != nil {
			t.Fatalf("taken twice: %v %v", ok, err)
		}
		told := ""
		unlock, err := Lock(context.Background(), path, func(holder string) {
			if told += holder; end == "kill" {
				kill()
			} else {
				release()
			}
		})
		check(t, err)
		if told != fmt.Sprintf("process %d", pid) {
			t.Errorf("%s: told %q, holder is %d", end, told, pid)
		}
		unlock()
		unlock()
	}
}

func TestLockGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	synctest.Test(t, func(t *testing.T) {
		unlock, ok, err := TryLock(path)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		defer unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		_, err = Lock(ctx, path, func(string) { calls++ })
		want := fmt.Sprintf("waiting for the lock %q: context deadline exceeded", path)
		if err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) || calls != 1 {
			t.Errorf("%v (%d calls), want %s", err, calls, want)
		}
	})
}

func TestLockErrors(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := TryLock(filepath.Join(dir, "none", "l")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	check(t, os.Symlink("elsewhere", filepath.Join(dir, "link")))
	if _, _, err := TryLock(filepath.Join(dir, "link")); err == nil || !strings.HasPrefix(err.Error(), "locking ") {
		t.Errorf("a planted link gives %v", err)
	}
	only(t, dir, "link")
}

// Three processes and two goroutines, with the lock file removed by holders all
// the time: no update is lost.
func TestLockExcludes(t *testing.T) {
	dir := t.TempDir()
	lock, counter := filepath.Join(dir, "l"), filepath.Join(dir, "n")
	check(t, os.WriteFile(counter, []byte("0"), 0o600))
	const each = 20
	done := make(chan error)
	for range 3 {
		cmd := helper(t, "count", lock, counter, fmt.Sprint(each))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
	}
	for range 2 {
		go func() { done <- countUp(lock, counter, each) }()
	}
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	content(t, counter, fmt.Sprint(5*each))
}
