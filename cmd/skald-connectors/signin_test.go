//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skald-connectors/connectors"
)

// phone is what the phone of the connector pair does.
func phone(t *testing.T, home, does string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(home, "state", "pair", "state", "phone"), []byte(does), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sessionOf(home string) string {
	return filepath.Join(home, "state", "pair", "auth", "session.json")
}

// agreePair says yes to the plan and waits for the code.
func (s *seat) agreePair() {
	s.t.Helper()
	s.wait("Install pair?")
	s.wait("Cancel")
	s.keys(down)
	s.wait("> Install")
	s.keys(enter)
	s.wait("Sign in to pair with your phone")
	s.wait("█ ▄▄▄▄▄ █") // a corner, without colours
	s.wait("Read this code with your phone")
	s.wait("open the app")
}

func (b *bench) home() string { return filepath.Join(b.dir, "home") }

func TestSignInByQR(t *testing.T) {
	b := newBench(t)
	s := b.sit("install", "pair")
	s.agreePair()
	phone(t, b.home(), "scan")
	s.wait("pair is installed: 1.0.0 (version 1), ready.")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if _, err := os.Stat(sessionOf(b.home())); err != nil {
		t.Error(err)
	}
	if out := b.must("call", "pair", "echo", `{"text":"hello"}`); !strings.Contains(out, "hello") {
		t.Error(out)
	}

	// Another phone.
	b.must("logout", "pair")
	phone(t, b.home(), "")
	s = b.sit("auth", "pair")
	s.wait("Read this code with your phone")
	s.keys("s")
	s.wait(filepath.Join("home", "login", "pair.png"))
	phone(t, b.home(), "scan")
	s.wait("pair is signed in; it is ready.")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if _, err := os.Stat(filepath.Join(b.home(), "login", "pair.png")); err == nil {
		t.Error("the picture of the code is left")
	}
}

func TestLeavingTheSignIn(t *testing.T) {
	t.Run("escape, a new code, then later", func(t *testing.T) {
		b := newBench(t)
		s := b.sit("install", "pair")
		s.agreePair()
		s.keys("\x1b")
		s.wait(`"pair" is not signed in: you left before a phone had read the code`)
		s.wait("Show a new code")
		s.keys(enter)
		s.wait("Read this code with your phone")
		s.keys("\x1b")
		s.wait("What now?")
		s.keys(down)
		s.wait("> Save it without signing in")
		s.keys(enter)
		s.wait("pair is installed: 1.0.0 (version 1), unauthorized.")
		if code := s.ends(); code != 0 {
			t.Fatalf("exit %d", code)
		}
	})
	t.Run("ctrl-c leaves it for later", func(t *testing.T) {
		b := newBench(t)
		s := b.sit("install", "pair")
		s.agreePair()
		s.keys(ctrlC)
		s.wait("It stays parked until it is signed in: skald-connectors auth pair")
		if code := s.ends(); code != exitInterrupted {
			t.Fatalf("exit %d", code)
		}
		if out := b.must("list"); !strings.Contains(out, "unauthorized") {
			t.Error(out)
		}
		s = b.sit("auth", "pair")
		s.wait("Read this code with your phone")
		s.keys("\x1b")
		if code := s.ends(); code != exitInterrupted {
			t.Fatalf("exit %d", code)
		}
	})
	t.Run("giving up after it signs out again", func(t *testing.T) {
		b := newBench(t)
		s := b.sit("install", "pair", "--deny", "no_such_tool")
		s.agreePair()
		phone(t, b.home(), "scan")
		s.wait("signing out again")
		s.wait("it has no tool no_such_tool")
		if code := s.ends(); code != exitUsage {
			t.Fatalf("exit %d", code)
		}
		if left := b.withoutTops(); strings.Contains(left, "state") || strings.Contains(left, "session") {
			t.Errorf("it leaves\n%s", left)
		}
	})
}

// installPair installs the connector with a session, as if a phone had made it.
func (p *place) installPair() {
	p.t.Helper()
	p.do("install", "pair", "--yes", "--pending")
	if err := os.WriteFile(sessionOf(p.home), []byte("{}"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.do("auth", "pair")
}

// untilSays asks for the status until it says text.
func (s *serving) untilSays(text string) {
	s.t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer := s.ask("resources/read", `{"uri":"connector://pair/status"}`)
		if strings.Contains(answer, text) {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("the status never says %s: %s", text, answer)
		}
	}
}

func TestRunOfAConnectorWithOneSession(t *testing.T) {
	p := newPlace(t)
	p.installPair()
	first := p.run("pair")
	first.greet()
	first.expect(first.ask("tools/call", `{"name":"echo","arguments":{"text":"one"}}`), `"text": "one"`)
	first.expect(first.ask("tools/call", `{"name":"logout","arguments":{}}`), "connector.forbidden_scope")
	if list := first.ask("tools/list", "{}"); strings.Contains(list, "login_status") || strings.Contains(list, "logout") {
		t.Errorf("the tools for the sign-in are listed: %s", list)
	}

	// A second session waits for the first and takes over.
	second := p.run("pair")
	second.greet()
	second.untilSays("another one has it (process ")
	var errs bytes.Buffer
	code := runWith(context.Background(), []string{"verify", "pair"}, p.env, strings.NewReader(""), io.Discard, &errs, hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}})
	if code != exitUsage || !strings.Contains(errs.String(), `"pair" is in use by another session (process `) {
		t.Errorf("verify beside an open session: exit %d: %s", code, errs.String())
	}
	if code := first.endInput(); code != exitDone {
		t.Errorf("exit %d: %s", code, first.errs.String())
	}
	second.untilSays(`\"state\":\"authorized\"`)
	second.expect(second.ask("tools/call", `{"name":"echo","arguments":{"text":"two"}}`), `"text": "two"`)

	// logout parks it, and a session made again wakes it.
	p.do("logout", "pair")
	second.untilSays("has no credentials; run: skald-connectors auth pair")
	if err := os.WriteFile(sessionOf(p.home), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do("auth", "pair")
	second.untilSays(`\"state\":\"authorized\"`)
	second.endInput()
}

// endInput ends the client's input and waits for the end.
func (s *serving) endInput() int {
	s.t.Helper()
	_ = s.in.Close()
	return s.end()
}

// TestRunNoticesThatItIsLoggedOut: the launcher asks after initialize.
func TestRunNoticesThatItIsLoggedOut(t *testing.T) {
	p := newPlace(t)
	p.installPair()
	phone(t, p.home, "gone")
	s := p.run("pair")
	s.greet()
	s.untilSays("has no credentials; run: skald-connectors auth pair")
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(p.home, "activations", "pair.json"))
		if err == nil && strings.Contains(string(data), `"auth_state": "unauthorized"`) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the record does not say it: %s", data)
		}
	}
	s.endInput()
}
