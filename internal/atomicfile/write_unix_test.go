//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dir and file stand for the folder and the target in these tests.
func target(t *testing.T) (dir, file string) {
	dir = t.TempDir()
	return dir, filepath.Join(dir, "f")
}

func playUnix(role string, args []string) error {
	switch role {
	case "modes": // umask, old mode or "-", perm, path
		return playModes(args[0], args[1], args[2], args[3])
	case "die": // die at the step args[1] while writing "new" to args[0]
		return write(args[0], []byte("new"), 0o600, func(step string) {
			if step == args[1] {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})
	case "limit": // write 1 MiB with a file size limit of 64 KiB
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
			return err
		}
		return Write(args[0], make([]byte, 1<<20), 0o600)
	}
	return fmt.Errorf("no role %q", role)
}

func playModes(umask, old, perm, path string) error {
	oct := func(s string) os.FileMode { v, _ := strconv.ParseUint(s, 8, 32); return os.FileMode(v) }
	if old != "-" {
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, oct(old)); err != nil {
			return err
		}
	}
	unix.Umask(int(oct(umask)))
	var loosest os.FileMode
	err := write(path, []byte("new"), oct(perm), func(string) {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		for _, f := range found {
			if fi, err := os.Lstat(f); err == nil {
				loosest |= fi.Mode().Perm()
			}
		}
	})
	if err != nil {
		return err
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%04o %04o", loosest&^fi.Mode().Perm(), fi.Mode().Perm())
	return nil
}

func TestWriteModes(t *testing.T) {
	for _, c := range []struct{ umask, old, perm, want string }{
		{"000", "-", "600", "0600"}, {"022", "-", "600", "0600"}, {"777", "-", "600", "0600"},
		{"000", "-", "644", "0644"}, {"022", "-", "666", "0644"}, {"077", "-", "644", "0600"},
		{"000", "600", "666", "0600"}, {"022", "664", "666", "0664"}, {"000", "644", "600", "0600"},
		{"022", "640", "600", "0600"}, {"077", "640", "644", "0640"}, {"000", "755", "700", "0700"},
	} {
		_, p := target(t)
		out, err := helper(t, "modes", c.umask, c.old, c.perm, p).CombinedOutput()
		if err != nil {
			t.Errorf("%+v: %v %s", c, err, out)
			continue
		}
		// The first number: rights that the temporary file had and the result has not.
		if want := "0000 " + c.want; string(out) != want {
			t.Errorf("umask %s, old %s, perm %s: %s, want %s", c.umask, c.old, c.perm, out, want)
		}
	}
}

func TestWriteKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can own files of others")
	}
	_, p := target(t)
	check(t, os.WriteFile(p, []byte("old"), 0o640))
	check(t, os.Chown(p, 65534, 12345))
	check(t, Write(p, []byte("new"), 0o666))
	fi, err := os.Stat(p)
	check(t, err)
	if st := fi.Sys().(*syscall.Stat_t); st.Uid != 65534 || st.Gid != 12345 || fi.Mode() != 0o640 {
		t.Errorf("owner %d:%d mode %v", st.Uid, st.Gid, fi.Mode())
	}
}

// After kill -9 at any step the target is old or new, and the next Write leaves no
// temporary file.
func TestWriteKilled(t *testing.T) {
	var steps []string
	_, p := target(t)
	check(t, write(p, nil, 0o600, func(s string) { steps = append(steps, s) }))
	if len(steps) < 6 {
		t.Fatalf("only %v", steps)
	}
	for _, step := range steps {
		dir, p := target(t)
		check(t, Write(p, []byte("old"), 0o600))
		err := helper(t, "die", p, step).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("%s: %v", step, err)
		}
		data, err := os.ReadFile(p)
		check(t, err)
		if s := string(data); s != "old" && s != "new" {
			t.Errorf("%s: left %q", step, s)
		}
		check(t, Write(p, []byte("again"), 0o600))
		content(t, p, "again")
		only(t, dir, "f")
	}
}

func TestWriteLeavesLiveTemp(t *testing.T) {
	dir, p := target(t)
	check(t, write(p, []byte("slow"), 0o600, func(step string) {
		if step == "rename" {
			check(t, Write(p, []byte("fast"), 0o600)) // must not sweep the other's file
		}
	}))
	content(t, p, "slow")
	only(t, dir, "f")
}

// What killed writers left goes, whatever it was for; what is being written, and what only
// looks like it, stays.
func TestSweepTemps(t *testing.T) {
	dir, p := target(t)
	check(t, Write(p, []byte("old"), 0o600))
	if err := helper(t, "die", p, "rename").Run(); err == nil {
		t.Fatal("it was not killed")
	}
	stays := []string{".f.tmp-", ".f.tmp-abcdefghijkl1", ".f.tmp-abcdefghijklmn", ".tmp-abcdefghijklm", "f", "f.tmp-abcdefghijklm"}
	for _, name := range stays {
		if name == "f" {
			continue
		}
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	other := filepath.Join(dir, "other")
	check(t, write(other, []byte("slow"), 0o600, func(step string) {
		if step == "rename" {
			SweepTemps(dir)
		}
	}))
	content(t, other, "slow")
	only(t, dir, append(stays, "other")...)
	SweepTemps(filepath.Join(dir, "missing"))
}

func TestWriteSizeLimit(t *testing.T) {
	dir, p := target(t)
	check(t, Write(p, []byte("old"), 0o600))
	out, err := helper(t, "limit", p).CombinedOutput()
	if want := fmt.Sprintf("writing %q: file too large\n", p); err == nil || string(out) != want {
		t.Errorf("%v %q, want %q", err, out, want)
	}
	content(t, p, "old")
	only(t, dir, "f")
}

func TestWriteOddTargets(t *testing.T) {
	dir, p := target(t)
	check(t, unix.Mkfifo(p, 0o600))
	if err := Write(p, nil, 0o600); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := Read(p, 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	only(t, dir, "f")
}
