//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// signedPlace is a home beside a provider of its own; its browser goes wherever it is sent.
func signedPlace(t *testing.T) (*place, *testProvider) {
	t.Helper()
	needPython(t)
	dir := t.TempDir()
	provider := newTestProvider()
	t.Cleanup(provider.Close)
	market := filepath.Join(dir, "market")
	if err := signInMarket(market, provider.URL); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: filepath.Join(dir, "home")}
	p.env = append(os.Environ(), "SKALD_CONNECTORS_HOME="+p.home, "SKALD_CONNECTORS_INDEX="+market, "SKALD_CONNECTORS_KEYSTORE=keyfile", "BROWSER=browser",
		"CLIENT_SECRET=c4n4ry-client", "SKALD_TEST_WINDOWS="+filepath.Join(dir, "windows"))
	p.do("auth", "provider", "add", "testid", "--issuer", provider.URL, "--client-id", "skald", "--secret-env", "CLIENT_SECRET")
	return p, provider
}

func (p *testProvider) steer(t *testing.T, query string) {
	t.Helper()
	resp, err := http.Get(p.URL + "/set?" + query)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func (p *testProvider) logged(t *testing.T, line string) (many int) {
	t.Helper()
	resp, err := http.Get(p.URL + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		if strings.TrimSpace(l) == line {
			many++
		}
	}
	return many
}

// until asks again until the answer has the text.
func (s *serving) until(text, method, params string) {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		answer := s.ask(method, params)
		if strings.Contains(answer, text) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no %s in %s; stderr: %s", text, answer, s.errs.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const (
	whoami    = `{"name":"whoami","arguments":{}}`
	signedURI = `{"uri":"connector://signed/status"}`
)

// A session whose person signs out, in again, and whose access is revoked at the provider.
func TestSignedSession(t *testing.T) {
	p, provider := signedPlace(t)
	p.do("install", "signed", "--yes", "--browser")
	s := p.run("signed")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"whoami","arguments":{}}`), "ada@example.org")

	p.do("logout", "signed")
	s.until("connector.auth_required", "tools/call", whoami)
	if n := provider.logged(t, "revoked"); n != 1 {
		t.Errorf("revoked %d times", n)
	}
	p.do("auth", "signed", "--browser")
	s.until("ada@example.org", "tools/call", whoami)

	// From here on access tokens are over at once, so the next look finds out that the grant is gone.
	provider.steer(t, "life=1")
	p.do("auth", "signed", "--browser")
	provider.steer(t, "revoke=1")
	_ = s.in.Close()
	s.end()
	time.Sleep(time.Second) // the life of the token
	s = p.run("signed")
	s.greet()
	s.expect(s.ask("tools/call", whoami), `"connector.auth_expired"`, "the credentials of connector signed have expired; run: skald-connectors auth signed")
	s.expect(s.ask("resources/read", signedURI), `\"state\":\"expired\"`, "skald-connectors auth signed")
	provider.steer(t, "life=3600")
	p.do("auth", "signed", "--browser")
	s.until("ada@example.org", "tools/call", whoami)
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	for _, text := range []string{s.all.String(), s.errs.String()} {
		if strings.Contains(text, "c4n4ry") {
			t.Errorf("a secret is in the output: %s", text)
		}
	}
}

// A running local server whose grant is revoked: the session notices when the credential is looked after.
func TestRevokedMeanwhile(t *testing.T) {
	p, provider := signedPlace(t)
	p.do("install", "signed", "--yes", "--browser")
	provider.steer(t, "life=4")
	p.do("auth", "signed", "--browser")
	s := p.run("signed")
	s.greet()
	s.expect(s.ask("tools/call", whoami), "ada@example.org")
	provider.steer(t, "revoke=1")
	s.until("connector.auth_expired", "tools/call", whoami)
	_ = s.in.Close()
	s.end()
}

// A remote server that knows nothing of us: installed, signed in to, renewed before each end, revoked, signed in again.
func TestFarSession(t *testing.T) {
	p, provider := signedPlace(t)
	provider.steer(t, "life=2&rotate=1")
	p.do("install", "far", "--yes", "--browser")
	if n := provider.logged(t, "registered"); n != 1 {
		t.Errorf("registered %d times", n)
	}
	s := p.run("far")
	s.greet()
	before := provider.logged(t, "mcp refused")
	for range 50 {
		s.expect(s.ask("tools/call", whoami), `"text":"ada"`)
		time.Sleep(100 * time.Millisecond) // five seconds: more than two lives of a token
	}
	if n := provider.logged(t, "refreshed"); n < 2 || n > 8 {
		t.Errorf("refreshed %d times", n)
	}
	if n := provider.logged(t, "mcp refused"); n != before {
		t.Errorf("%d calls were refused", n-before)
	}
	if n := provider.logged(t, "reuse"); n != 0 {
		t.Errorf("%d reuses", n)
	}
	provider.steer(t, "leak=1") // a token that the session did not begin with
	if answer := s.ask("tools/call", whoami); strings.Contains(answer, "c4n4ry") || !strings.Contains(answer, "withheld") {
		t.Errorf("the renewed token is in the answer: %s", answer)
	}
	provider.steer(t, "leak=0&revoke=1")
	s.until("connector.auth_expired", "tools/call", whoami)
	provider.steer(t, "life=3600")
	p.do("auth", "far", "--browser")
	s.until(`"text":"ada"`, "tools/call", whoami)
	p.do("logout", "far")
	s.until("connector.auth_required", "tools/call", whoami)
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
}

// The access is revoked, and the client sends a call and ends its input at once: the call is answered, with the reason.
func TestRevokedAtTheEnd(t *testing.T) {
	p, provider := signedPlace(t)
	p.do("install", "far", "--yes", "--browser")
	s := p.run("far")
	s.greet()
	s.expect(s.ask("tools/call", whoami), `"text":"ada"`)
	provider.steer(t, "revoke=1")
	s.send(`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":` + whoami + `}`)
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	s.expect(s.all.String(), `"id":"last","error":{"code":-32603,"message":"the credentials of connector far have expired; run: skald-connectors auth far","data":{"code":"connector.auth_expired"}}`)
	if n := strings.Count(s.all.String(), `"id":"last"`); n != 1 {
		t.Errorf("%d answers: %s", n, s.all.String())
	}
}

// The provider does not answer when a session begins: it waits, and goes on when the provider is back.
func TestProviderIsAway(t *testing.T) {
	p, provider := signedPlace(t)
	provider.steer(t, "life=1")
	p.do("install", "token", "--yes", "--browser", "--no-verify")
	time.Sleep(time.Second) // the life of the token
	provider.steer(t, "tokendown=1")
	s := p.run("token")
	s.greet()
	s.expect(s.ask("tools/call", whoami), `"connector.auth_required"`, "could not be renewed, and this is tried again")
	provider.steer(t, "tokendown=0&life=3600")
	s.until("ada@example.org", "tools/call", whoami)
	_ = s.in.Close()
	s.end()
}

// Four programs want the same sign-in: one browser. The one that has it is killed: another takes over.
func TestOneBrowser(t *testing.T) {
	p, provider := signedPlace(t)
	p.do("install", "signed", "--yes", "--browser")
	windows := func() int {
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(p.home), "windows"))
		return strings.Count(string(data), "\n")
	}
	four := func() (list []*exec.Cmd, said []*lockedText) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			errs := &lockedText{}
			c := &exec.Cmd{Path: self, Args: []string{program, "auth", "signed", "--browser"}, Env: p.env, Stderr: errs}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			list, said = append(list, c), append(said, errs)
		}
		return list, said
	}
	for _, kill := range []bool{false, true} {
		provider.steer(t, "show=1") // nobody agrees yet
		began := windows()
		list, said := four()
		owner := -1
		for deadline := time.Now().Add(20 * time.Second); owner < 0 || slices.IndexFunc(said, func(s *lockedText) bool { return strings.Contains(s.String(), "waiting for another") }) < 0; {
			owner = slices.IndexFunc(said, func(s *lockedText) bool { return strings.Contains(s.String(), "/authorize?") })
			if time.Now().After(deadline) {
				t.Fatal("nobody asks for a sign-in")
			}
			time.Sleep(10 * time.Millisecond)
		}
		provider.steer(t, "show=0")
		want := 1
		if kill {
			_ = list[owner].Process.Kill()
			want = 2
		} else { // the person agrees
			for line := range strings.Lines(said[owner].String()) {
				if strings.HasPrefix(line, provider.URL) {
					resp, err := http.Get(strings.TrimSpace(line))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
			}
		}
		for i, c := range list {
			if err := c.Wait(); err != nil && !(kill && i == owner) {
				t.Errorf("%v: %s", err, said[i].String())
			}
		}
		if n := windows() - began; n != want {
			t.Errorf("kill %v: %d windows, want %d", kill, n, want)
		}
	}
	p.do("verify", "signed")
}
