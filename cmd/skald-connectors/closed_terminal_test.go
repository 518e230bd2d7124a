//go:build unix

package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// hangUp closes the terminal, as a person does who closes its window or whose connection breaks.
func (s *seat) hangUp() { _ = s.tty.Close() }

// closings are the moments at which the terminal is closed while somebody signs in.
var closings = map[string]func(t *testing.T, b *bench, p *testProvider, args ...string) *seat{
	"while the browser is waited for": func(_ *testing.T, b *bench, _ *testProvider, args ...string) *seat {
		b.env = append(b.env, "BROWSER=true")
		s := b.sit(args...)
		s.wait("this waits for it")
		s.hangUp()
		return s
	},
	"while the code is exchanged": func(_ *testing.T, b *bench, p *testProvider, args ...string) *seat {
		return hangUpAt(b, p, "/token", false, args)
	},
	"while it is tested": func(_ *testing.T, b *bench, p *testProvider, args ...string) *seat {
		return hangUpAt(b, p, "/api", true, args)
	},
}

// hangUpAt closes the terminal when the provider is asked for a path; stuck waits there for the asker's end.
func hangUpAt(b *bench, p *testProvider, path string, stuck bool, args []string) *seat {
	seats := make(chan *seat, 1)
	var once sync.Once
	p.mu.Lock()
	p.asked = func(r *http.Request) {
		if r.URL.Path != path {
			return
		}
		once.Do(func() {
			(<-seats).hangUp()
			if stuck {
				<-r.Context().Done()
			}
		})
	}
	p.mu.Unlock()
	s := b.sit(args...)
	seats <- s
	return s
}

// TestTerminalClosedWhileSigningIn: what was in force stays, nothing is half stored, nothing runs on, and a new sign-in that came to
// nothing is not left at the provider, unless it may be one grant with the old one.
func TestTerminalClosedWhileSigningIn(t *testing.T) {
	for when, closeIt := range closings {
		t.Run("install/"+when, func(t *testing.T) {
			t.Parallel()
			b, p := signBench(t)
			before := b.withoutTops()
			s := closeIt(t, b, p, "install", "token", "--yes")
			checkClosed(t, s, b, before)
			if now := b.signIn(); now != "none" || len(p.others(now)) > 0 {
				t.Errorf("there is %s, and the provider knows %v", now, p.others(now))
			}
		})
		t.Run("auth/"+when, func(t *testing.T) {
			t.Parallel()
			b, p := signBench(t)
			b.must(installToken...)
			before, was := b.withoutTops(), b.signIn()
			s := closeIt(t, b, p, "auth", "token")
			checkClosed(t, s, b, before)
			if now := b.signIn(); now != was || !p.knows(now) {
				t.Errorf("there is %s in place of %s, which the provider knows: %v", now, was, p.knows(now))
			}
			b.must("call", "token", "whoami")
		})
	}
}

func checkClosed(t *testing.T, s *seat, b *bench, before string) {
	t.Helper()
	if code := s.ends(); code != exitInterrupted {
		t.Errorf("exit %d\n%s", code, s.seen())
	}
	if left := b.running(); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if now := withoutSession(b.withoutTops()); now != withoutSession(before) {
		t.Errorf("there is\n%s\n\nbefore it was\n%s", now, before)
	}
	if owed, _ := filepath.Glob(filepath.Join(b.home(), "keystore", "owed__*.age")); len(owed) > 0 {
		t.Errorf("left: %v", owed)
	}
}

// TestTerminalClosedWhilePairing is the same for a phone.
func TestTerminalClosedWhilePairing(t *testing.T) {
	for _, scanned := range []bool{false, true} {
		b := newBench(t)
		s := b.sit("install", "pair", "--yes")
		s.wait("Read this code with your phone")
		if scanned {
			phone(t, b.home(), "scan")
			s.wait("The code was read")
		}
		s.hangUp()
		checkClosed(t, s, b, "")
	}
	b := newBench(t)
	b.must("install", "pair", "--yes", "--pending")
	before := b.withoutTops()
	s := b.sit("auth", "pair")
	s.wait("Read this code with your phone")
	s.hangUp()
	checkClosed(t, s, b, before)
	if out := b.must("list"); !strings.Contains(out, "unauthorized") {
		t.Error(out)
	}
}
