//go:build unix

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

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

// steps runs a scenario to its end and lists its steps.
func steps(t *testing.T, sc scenario) (all []string) {
	t.Helper()
	home := tempDir(t)
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
		home := tempDir(t)
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
		if _, err := s.Remove(context.Background(), "work", ""); err != nil {
			return err
		}
		_, err := s.Sweep(context.Background(), nil)
		return err
	}
	var all []string
	home := tempDir(t)
	withV1(t, home)
	check(t, run(home, func(s string) { all = append(all, s) }))
	empty(t, home)
	t.Logf("%d steps: %s", len(all), strings.Join(all, ", "))
	for i := range all {
		home := tempDir(t)
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
