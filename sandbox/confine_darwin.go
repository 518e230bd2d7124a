package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// On macOS a command runs under the system's own sandbox-exec, with a profile
// made for it (seatbelt.go). The system calls it deprecated and has nothing in
// its place.

const seatbeltProgram = "/usr/bin/sandbox-exec"

// systemFolders are granted by every profile.
var systemFolders = seatbeltRead

// shownFiles are among systemFolders here.
func shownFiles() []string { return nil }

// facts are found out anew each time: the trial is short.
type facts struct{}

// Main handles nothing here: there is no helper inside the sandbox.
func Main([]string) (code int, handled bool) { return 0, false }

// choose tries sandbox-exec with a program that does nothing.
func (s *Sandbox) choose(mode Mode) error {
	unenforceable := func(why string) error {
		return &UnenforceableError{What: "mode " + quote(string(mode)), Why: why}
	}
	if mode != Auto && mode != SandboxExec {
		return unenforceable("it does not exist on macOS")
	}
	s.mode = SandboxExec
	const trialWait = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), trialWait)
	defer cancel()
	r, err := s.Run(ctx, Policy{}, Command{Argv: []string{"/usr/bin/true"}, Dir: "/usr/bin"}, nil)
	if e, ok := errors.AsType[*UnenforceableError](err); ok {
		return unenforceable(e.Why)
	}
	if err != nil {
		return unenforceable(err.Error())
	}
	if r.Code != 0 {
		return unenforceable(fmt.Sprintf("sandbox-exec ended with %d: %s", r.Code, r.Stderr))
	}
	return nil
}

// begin starts c under a profile for p.
func (s *Sandbox) begin(p Policy, c Command, path string, pipes *pipes) (*child, func() []Denial, error) {
	if err := s.refuses(p); err != nil {
		return nil, nil, err
	}
	sp, err := s.spotsOf(p, c, path)
	if err != nil {
		return nil, nil, err
	}
	dir, remove, err := s.privateFolder()
	if err != nil {
		return nil, nil, err
	}
	profile := seatbelt(p, sp.read, append(slices.Clone(sp.write), dir))
	c.Env = private(c.Env, dir, sp.write)
	c.Argv = append([]string{seatbeltProgram, "-p", profile, path}, c.Argv[1:]...)
	ch, err := spawn(seatbeltProgram, c, pipes.theirs, p.Limits)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return ch, func() []Denial { remove(); return nil }, nil
}

func (s *Sandbox) refuses(p Policy) error {
	if err := p.reaches(); err != nil {
		return err
	}
	return seatbeltRefuses(p)
}

func (s *Sandbox) allText(p Policy) string {
	if p.Loopback {
		return "every host"
	}
	return "every host but this machine"
}

func (s *Sandbox) notHeld(p Policy) []string {
	return append(seatbeltNotHeld(p), limitsNotHeld(p.Limits)...)
}
