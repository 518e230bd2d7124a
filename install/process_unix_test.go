//go:build unix

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func play(role string, args []string) error {
	switch role {
	case "die": // scenario, home, the number of the step to die at
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return scenarioNamed(args[0]).run(args[1], func(string) {
			if n--; n < 0 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})
	case "many": // home, activation name, rounds: install and take away again
		return installMany(args[0], args[1], args[2])
	case "umask": // home, umask
		mask, err := strconv.ParseUint(args[1], 8, 32)
		if err != nil {
			return err
		}
		unix.Umask(int(mask))
		return put(Open(args[0]), v1(), "work", nil, nil, nil)
	case "limit": // home: no file may grow above 8 bytes
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8, Max: 8}); err != nil {
			return err
		}
		return put(Open(args[0]), v2(), "work", nil, nil, nil)
	case "cycle": // home: everything, as a user who may not write read-only folders
		return cycle(args[0])
	}
	return fmt.Errorf("no role %q", role)
}

func installMany(home, name, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	s := Open(home)
	for i := range n {
		b := v1()
		if i%2 == 1 {
			b = v2()
		}
		if err := put(s, b, name, nil, nil, nil); err != nil {
			return err
		}
		if err := errors.Join(s.Check(b.ref(), b.Files()), s.CheckWork(name, b.ref(), b.Files())); err != nil {
			return err
		}
	}
	return nil
}

// Two processes install the same connector while a third party sweeps.
func TestConcurrentProcesses(t *testing.T) {
	home := tempDir(t)
	refs := []Ref{v1().ref(), v2().ref()}
	inUse := map[string][]Ref{"one": refs, "two": refs}
	done := make(chan error)
	for _, name := range []string{"one", "two"} {
		cmd := helper(t, "many", home, name, "8")
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", name, err, out)
			}
			done <- err
		}()
	}
	s := Open(home)
	for left := 2; left > 0; {
		select {
		case err := <-done:
			if left--; err != nil {
				t.Error(err)
			}
		default:
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			removed, err := s.Sweep(ctx, inUse)
			cancel()
			if err != nil {
				t.Error(err)
			}
			for _, r := range removed { // its own rubbish is gone when a process ends a stage
				if !strings.Contains(r, trashPrefix) && !strings.Contains(r, stagePrefix) {
					t.Errorf("swept %s", r)
				}
			}
		}
	}
	for _, name := range []string{"one", "two"} {
		clean(t, s, v1(), name)
		clean(t, s, v2(), name)
	}
	_, err := s.Sweep(context.Background(), inUse)
	check(t, err)
	noLeftovers(t, home)
	noStageLocks(t, home)
	if r, err := s.Receipts(); err != nil || len(r) != 1 || !slices.Equal(r[0].Versions, refs) {
		t.Errorf("receipts %v %v", r, err)
	}
}

func TestModes(t *testing.T) {
	for _, mask := range []string{"000", "022", "077", "777"} {
		home := filepath.Join(tempDir(t), "home")
		out, err := helper(t, "umask", home, mask).CombinedOutput()
		if err != nil {
			t.Errorf("umask %s: %v %s", mask, err, out)
			continue
		}
		check(t, filepath.WalkDir(home, func(p string, d os.DirEntry, err error) error {
			check(t, err)
			fi, err := d.Info()
			check(t, err)
			rel, _ := filepath.Rel(home, p)
			want := os.FileMode(0o600)
			switch inVersion := strings.HasPrefix(rel, "connectors/mail/"); {
			case fi.Mode()&os.ModeSymlink != 0:
				return nil
			case inVersion && d.IsDir():
				want = 0o555
			case inVersion:
				want = 0o444
			case d.IsDir():
				want = 0o700
			}
			if fi.Mode().Perm() != want {
				t.Errorf("umask %s: %s has mode %v, want %v", mask, rel, fi.Mode().Perm(), want)
			}
			return nil
		}))
	}
}

func TestSizeLimit(t *testing.T) {
	home := tempDir(t)
	withV1(t, home)
	before := snapshot(t, home)
	out, err := helper(t, "limit", home).CombinedOutput()
	if want := "staging \"mail\": writing \"connector.json\": file too large\n"; err == nil || string(out) != want {
		t.Errorf("%v %q, want %q", err, out, want)
	}
	same(t, "after the error", snapshot(t, home), before)
	noStageLocks(t, home)
}

// cycle is the life of a connector; in it read-only folders are renamed and removed.
func cycle(home string) error {
	s := Open(home)
	from := v1()
	if err := put(s, v1(), "work", nil, trial, nil); err != nil {
		return err
	}
	if err := put(s, v2(), "work", &from, nil, nil); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.WorkDir("work", v2().ref()), "shut", "in"), 0o700); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(s.WorkDir("work", v2().ref()), "shut"), 0); err != nil {
		return err
	}
	if _, err := s.Sweep(context.Background(), map[string][]Ref{"work": {v2().ref()}}); err != nil {
		return err
	}
	if _, err := s.Remove(context.Background(), "work", ""); err != nil {
		return err
	}
	_, err := s.Sweep(context.Background(), nil)
	return err
}

func TestAsOrdinaryUser(t *testing.T) {
	dir, err := os.MkdirTemp("", "install")
	check(t, err)
	defer os.RemoveAll(dir)
	cmd := helper(t, "cycle", filepath.Join(dir, "home"))
	if os.Geteuid() == 0 { // root may write anywhere: become nobody
		bin, err := os.ReadFile(cmd.Path)
		check(t, err)
		cmd.Path = filepath.Join(dir, "test")
		check(t, os.WriteFile(cmd.Path, bin, 0o700))
		check(t, os.Chown(cmd.Path, 65534, 65534))
		check(t, os.Chown(dir, 65534, 65534))
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	empty(t, filepath.Join(dir, "home"))
}
