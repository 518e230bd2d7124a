package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skald-connectors/internal/atomicfile"
)

// facts is what was found out about this machine, once after each boot.
type facts struct {
	Key      string // what the facts hold for: boot, user, helper program
	Bwrap    string // why bubblewrap does not work here, "" when it does
	Landlock int    // version of the interface, 0 for none
	Alone    string // why Landlock alone does not work here, "" when it does
	Watch    string // why connects cannot be judged one by one, "" when they can
}

const (
	// probeWait bounds one trial; it takes some 50 ms.
	probeWait = 10 * time.Second
	// factsLimit is far above what we write.
	factsLimit = 64 << 10
)

// choose finds the back end for mode and sets it.
func (s *Sandbox) choose(mode Mode) error {
	if !mainCalled() {
		return &UnenforceableError{What: "mode " + quote(string(mode)), Why: "this program does not call sandbox.Main first, so it cannot be its own helper"}
	}
	bwrap, _, err := LookPath("bwrap", s.path)
	if err == nil {
		s.bwrap = bwrap
	}
	if err := s.learn(); err != nil {
		return err
	}
	s.mode = s.strongest()
	if mode == Auto && s.mode != "" || mode == s.mode {
		return nil
	}
	why := s.whyNot(mode)
	if why == "" {
		s.mode = mode
		return nil
	}
	return &UnenforceableError{What: "mode " + quote(string(mode)), Why: why}
}

// strongest is the back end that Auto takes, "" for none.
func (s *Sandbox) strongest() Mode {
	for _, m := range []Mode{Combined, Bubblewrap, Landlock} {
		if s.whyNot(m) == "" {
			return m
		}
	}
	return ""
}

// whyNot says why m does not work here, "" when it does.
func (s *Sandbox) whyNot(m Mode) string {
	f := s.facts
	switch m {
	case Combined:
		if f.Bwrap == "" && f.Landlock == 0 {
			return "this kernel has no Landlock"
		}
		return f.Bwrap
	case Bubblewrap:
		return f.Bwrap
	case Landlock:
		return f.Alone
	case Auto:
		return fmt.Sprintf("bubblewrap: %s; Landlock: %s", f.Bwrap, f.Alone)
	}
	return "it does not exist on Linux"
}

// learn reads what is known since this boot, or tries the back ends and keeps
// the outcome.
func (s *Sandbox) learn() error {
	key := s.factsKey()
	file := filepath.Join(s.dir, "machine.json")
	if s.dir != "" {
		var known facts
		if text, err := atomicfile.Read(file, factsLimit); err == nil && json.Unmarshal(text, &known) == nil && known.Key == key && s.believes(known) {
			s.facts = known
			return nil
		}
	}
	s.facts = s.try()
	s.facts.Key = key
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(s.facts)
	if err != nil {
		return err
	}
	err = os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = atomicfile.Write(file, text, 0o600)
	}
	if err != nil && !atomicfile.Unwritable(err) { // then it is tried again at the next start
		return fmt.Errorf("keeping what this machine enforces: %w", err)
	}
	return nil
}

// believes tells whether what is kept may be taken without a new trial. That something
// works shows itself at the next start; that it does not would weaken what is
// enforced, and who can write the file could say so.
func (s *Sandbox) believes(known facts) bool {
	return known.Landlock == landlockVersion() && (known.Bwrap == "" || s.bwrap == "") && known.Watch == ""
}

// factsKey changes with all that can change the facts: the boot, the user, the
// helper and this program.
func (s *Sandbox) factsKey() string {
	boot := strings.TrimSpace(string(firstBytes("/proc/sys/kernel/random/boot_id", 64)))
	key := fmt.Sprintf("1 %s %d", boot, os.Geteuid())
	for _, path := range []string{s.bwrap, s.self} {
		if fi, err := os.Stat(path); err == nil {
			key += fmt.Sprintf(" %s %d %d", path, fi.Size(), fi.ModTime().UnixNano())
		}
	}
	for _, path := range []string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/user/max_user_namespaces"} {
		key += " " + strings.TrimSpace(string(firstBytes(path, 32)))
	}
	return key
}

// try runs a program that does nothing under each back end, with all that a
// real one is given.
func (s *Sandbox) try() facts {
	f := facts{Landlock: landlockVersion()}
	trial := *s
	trial.facts = f
	trial.facts.Watch = "not tried yet"
	switch {
	case s.bwrap == "":
		f.Bwrap = "bubblewrap is not installed"
	case native.audit == 0:
		f.Bwrap = "no filter for system calls is written for this kind of machine"
	default:
		trial.mode = Bubblewrap
		if f.Landlock > 0 {
			trial.mode = Combined
		}
		f.Bwrap = trial.trial(Policy{}, Policy{Network: Network{All: true}})
	}
	switch {
	case f.Landlock == 0:
		f.Alone = "this kernel has no Landlock"
	case f.Landlock < leastLandlock:
		f.Alone = fmt.Sprintf("this kernel has Landlock %d, files are protected from %d on", f.Landlock, leastLandlock)
	case native.audit == 0:
		f.Alone = "no filter for system calls is written for this kind of machine"
	default:
		trial.mode = Landlock
		f.Alone = trial.trial(Policy{})
	}
	f.Watch = s.tryWatch(f)
	return f
}

// tryWatch lets the stage connect to where it must not.
func (s *Sandbox) tryWatch(f facts) string {
	trial := *s
	trial.facts = f
	if trial.mode = trial.strongest(); trial.mode == "" {
		return "nothing is enforced here at all"
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	r, err := trial.Run(ctx, Policy{Network: Network{All: true}}, Command{Argv: []string{s.self, stageWord, tryConnect}, Dir: "/usr"}, nil)
	switch {
	case err != nil:
		return "this kernel does not let connections be judged one by one: " + err.Error()
	case r.Code != 0 || len(r.Denied) != 1:
		return "this kernel does not let connections be judged one by one"
	}
	return ""
}

// trial returns why one of the policies does not work, "" when all do.
func (s *Sandbox) trial(policies ...Policy) string {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	program := "/bin/true"
	if unix.Access(program, unix.X_OK) != nil {
		program = "/bin/sh" // with an empty input it does nothing
	}
	for _, p := range policies {
		r, err := s.Run(ctx, p, Command{Argv: []string{program}, Dir: "/usr"}, nil)
		if e, ok := errors.AsType[*UnenforceableError](err); ok {
			return e.Why
		}
		if err != nil {
			return err.Error()
		}
		if r.Code != 0 {
			return fmt.Sprintf("a program that does nothing ended with %d %s", r.Code, r.Signal)
		}
	}
	return ""
}
