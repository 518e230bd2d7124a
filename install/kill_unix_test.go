//go:build unix

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// A scenario is a command that is killed at every step.
type scenario struct {
	name  string
	setUp func(t *testing.T, home string)
	run   func(home string, step func(string)) error
	inUse map[string][]Ref // what the records say until the command is over
	check func(t *testing.T, home string)
}

// trial is what a connector does while it is tried out: it writes its session, and to
// its code.
func trial(work string) error {
	for _, d := range durable { // some remove the folder and make it again
		if err := os.Remove(filepath.Join(work, d)); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(work, d), 0o700); err != nil {
			return err
		}
	}
	for file, data := range map[string]string{"session.json": "new", "auth/creds.json": "new", "index.py": "evil"} {
		if err := os.WriteFile(filepath.Join(work, filepath.FromSlash(file)), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// withV1 is a home in which version 1 runs and has files of its own.
func withV1(t *testing.T, home string) {
	s := Open(home)
	mustPut(t, s, v1(), "work")
	work := s.WorkDir("work", v1().ref())
	for _, f := range []string{"session.json", "cache/a.db", "auth/creds.json"} {
		write(t, filepath.Join(work, f), "old")
		older(t, filepath.Join(work, f))
	}
}

// oneOf checks that a file is whole: the old text or the new one.
func oneOf(t *testing.T, path string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" && string(data) != "new" {
		t.Errorf("%s holds %q (%v)", path, data, err)
	}
}

// allOrNothing checks that a version is whole or not there.
func allOrNothing(t *testing.T, s *Store, b fakeBundle) {
	t.Helper()
	if _, err := os.Lstat(s.VersionDir(b.ref())); err == nil {
		if err := s.Check(b.ref(), b.Files()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(s.WorkDir("work", b.ref())); err == nil {
		if err := s.CheckWork("work", b.ref(), b.Files()); err != nil {
			t.Error(err)
		}
	}
}

func scenarioNamed(name string) scenario {
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc
		}
	}
	return scenario{run: func(string, func(string)) error { return errors.New("no such scenario") }}
}

func scenarios() []scenario {
	mine := func(t *testing.T, home, where string) string { return filepath.Join(home, filepath.FromSlash(where)) }
	old := map[string][]Ref{"work": {v1().ref()}}
	return []scenario{
		{"first install", func(*testing.T, string) {}, func(home string, step func(string)) error {
			return put(Open(home), v1(), "work", nil, trial, step)
		}, nil, func(t *testing.T, home string) { allOrNothing(t, Open(home), v1()) }},

		{"upgrade", withV1, func(home string, step func(string)) error {
			from := v1()
			return put(Open(home), v2(), "work", &from, nil, step)
		}, old, func(t *testing.T, home string) {
			s := Open(home)
			clean(t, s, v1(), "work")
			allOrNothing(t, s, v2())
			work := s.WorkDir("work", v1().ref())
			content(t, filepath.Join(work, "session.json"), "old")
			content(t, filepath.Join(work, "cache/a.db"), "old")
			content(t, mine(t, home, "state/work/auth/creds.json"), "old")
			if now := s.WorkDir("work", v2().ref()); exists(now) {
				content(t, filepath.Join(now, "session.json"), "old")
			}
		}},

		{"same version again", withV1, func(home string, step func(string)) error {
			return put(Open(home), v1(), "work", nil, trial, step)
		}, old, func(t *testing.T, home string) {
			s := Open(home)
			clean(t, s, v1(), "work")
			oneOf(t, filepath.Join(s.WorkDir("work", v1().ref()), "session.json"))
			oneOf(t, mine(t, home, "state/work/auth/creds.json"))
		}},

		{"tampered version", func(t *testing.T, home string) {
			withV1(t, home)
			dir := Open(home).VersionDir(v1().ref())
			check(t, os.Chmod(dir, 0o700))
			write(t, filepath.Join(dir, "evil.py"), "evil")
			write(t, filepath.Join(Open(home).WorkDir("work", v1().ref()), "index.py"), "evil")
		}, func(home string, step func(string)) error {
			return put(Open(home), v1(), "work", nil, nil, step)
		}, old, func(t *testing.T, home string) {
			s := Open(home)
			var changed *ChangedError // as before, or mended; never something else
			if err := s.Check(v1().ref(), v1().Files()); err != nil && !errors.As(err, &changed) {
				t.Error(err)
			}
			if err := s.CheckWork("work", v1().ref(), v1().Files()); err != nil && !errors.As(err, &changed) {
				t.Error(err)
			}
			content(t, filepath.Join(s.WorkDir("work", v1().ref()), "session.json"), "old")
		}},

		{"giving up", withV1, func(home string, step func(string)) error {
			st, err := Open(home).stage(context.Background(), v2(), step)
			if err != nil {
				return err
			}
			if _, err := st.Work("work"); err != nil {
				return err
			}
			return st.Discard()
		}, old, func(t *testing.T, home string) { clean(t, Open(home), v1(), "work") }},
	}
}

// quickDir is a temporary folder in memory where there is one: killing a process is
// the same there, and hundreds of homes are synced in no time.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "install")
	if err != nil {
		return tempDir(t)
	}
	t.Cleanup(func() {
		writable(dir)
		os.RemoveAll(dir)
	})
	return dir
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// steps runs a scenario to its end and lists its steps.
func steps(t *testing.T, sc scenario) (all []string) {
	t.Helper()
	home := quickDir(t)
	sc.setUp(t, home)
	check(t, sc.run(home, func(s string) { all = append(all, s) }))
	return all
}

// Kill -9 before each step of each scenario: the old state or the new one is there,
// a sweep brings back what the records say, and the command then works.
func TestKilled(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range scenarios() {
		all := steps(t, sc)
		t.Logf("%s: %d steps: %s", sc.name, len(all), strings.Join(all, ", "))
		for i, step := range all {
			kind, _, _ := strings.Cut(step, " ")
			seen[kind] = true
			killAt(t, sc, i, step)
		}
	}
	for _, step := range []string{"stage-lock", "stage-folder", "stage-file", "stage-sync", "stage-seal", "work-folder", "work-state", "work-file", "work-sync",
		"work-links", "carry", "place", "adopt-auth", "repair", "commit-clear", "commit-version", "commit-work", "commit-merge", "receipt", "trash", "trash-remove", "end"} {
		if !seen[step] {
			t.Errorf("no scenario has the step %q", step)
		}
	}
}

func killAt(t *testing.T, sc scenario, i int, step string) {
	t.Run(fmt.Sprintf("%s/%02d %s", sc.name, i, step), func(t *testing.T) {
		t.Parallel()
		home := quickDir(t)
		sc.setUp(t, home)
		before := snapshot(t, home)
		out, err := helper(t, "die", sc.name, home, strconv.Itoa(i)).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("%v %s", err, out)
		}
		sc.check(t, home)
		s := Open(home)
		if _, err := s.Receipts(); err != nil {
			t.Error(err)
		}
		if i%2 == 0 { // every second time the next command finds the rubbish
			if _, err := s.Sweep(context.Background(), sc.inUse); err != nil {
				t.Error(err)
			}
			noStageLocks(t, home)
			sc.check(t, home)
			if sc.name == "upgrade" || sc.name == "giving up" {
				same(t, "after the sweep", snapshot(t, home), before)
			}
			if sc.name == "first install" {
				leftOnly(t, home, "state/work/auth/creds.json")
			}
		}
		check(t, sc.run(home, func(string) {}))
		clean(t, s, v1Or2(sc), "work")
		_, err = s.Sweep(context.Background(), map[string][]Ref{"work": {v1Or2(sc).ref(), v1().ref()}})
		check(t, err)
		clean(t, s, v1Or2(sc), "work")
		noStageLocks(t, home)
		noLeftovers(t, home)
	})
}

func v1Or2(sc scenario) fakeBundle {
	if sc.name == "upgrade" {
		return v2()
	}
	return v1()
}

// leftOnly checks that there is no file but the given one: a session that was made
// in the trial is the person's, not ours to remove.
func leftOnly(t *testing.T, home, file string) {
	t.Helper()
	for _, l := range strings.Split(snapshot(t, home), "\n") {
		if f := strings.Fields(l); len(f) > 2 && f[1] != file {
			t.Errorf("left %s", l)
		}
	}
}

func noLeftovers(t *testing.T, home string) {
	t.Helper()
	for _, l := range strings.Split(snapshot(t, home), "\n") {
		if strings.Contains(l, stagePrefix) || strings.Contains(l, trashPrefix) || strings.Contains(l, tempPrefix) || strings.Contains(l, ".tmp-") {
			t.Errorf("left %s", l)
		}
	}
}

// Sweep and Remove can be killed and repeated as well.
func TestKilledWhileRemoving(t *testing.T) {
	run := func(home string, step func(string)) error {
		s := Open(home)
		s.step = step
		if _, err := s.Remove(context.Background(), "work", false); err != nil {
			return err
		}
		_, err := s.Sweep(context.Background(), nil)
		return err
	}
	var all []string
	home := quickDir(t)
	withV1(t, home)
	check(t, run(home, func(s string) { all = append(all, s) }))
	empty(t, home)
	t.Logf("%d steps: %s", len(all), strings.Join(all, ", "))
	for i := range all {
		home := quickDir(t)
		withV1(t, home)
		func() {
			defer func() { recover() }() // stands for the kill: these two keep nothing in memory
			n := i
			run(home, func(string) {
				if n--; n < 0 {
					panic("killed")
				}
			})
		}()
		check(t, run(home, func(string) {}))
		empty(t, home)
	}
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
	if _, err := s.Remove(context.Background(), "work", false); err != nil {
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
