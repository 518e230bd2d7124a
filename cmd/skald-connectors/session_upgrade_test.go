//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgradeUnderSessions: a session goes on with the version that it was started with,
// through two upgrades and what they sweep away, and a new one starts on the newest. When
// the last session of a version has ended, the next command takes its files away.
func TestUpgradeUnderSessions(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	market := filepath.Join(filepath.Dir(p.home), "market")
	server := filepath.Join(market, "mail", "server.py")
	publish := func(was, now string) {
		t.Helper()
		data, err := os.ReadFile(server)
		if err == nil {
			err = os.WriteFile(server, []byte(strings.Replace(string(data), was, now, 1)), 0o600)
		}
		if err := errors.Join(err, bump(market, "mail"), compileMarket(market)); err != nil {
			t.Fatal(err)
		}
		p.do("upgrade", "mail", "--yes", "--accept")
	}
	first := p.run("mail")
	first.expect(first.greet(), `"serverInfo"`)
	publish(`"Says it again."`, `"Says it twice."`)
	second := p.run("mail")
	second.expect(second.greet(), `"serverInfo"`)
	publish(`"Says it twice."`, `"Says it thrice."`)
	p.do("install", "plain", "--yes") // sweeps
	for _, s := range []struct {
		*serving
		says string
	}{{first, "again"}, {second, "twice"}} {
		s.expect(s.ask("tools/list", "{}"), `"echo"`, "Says it "+s.says)
		s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"on"}}`), `"text": "on"`)
	}
	versions := func() int {
		found, _ := filepath.Glob(filepath.Join(p.home, "work", "mail", "*", "server.py"))
		return len(found)
	}
	if n := versions(); n != 3 {
		t.Errorf("%d versions are there, not those of two sessions and the newest", n)
	}
	third := p.run("mail")
	third.expect(third.greet(), `"serverInfo"`)
	third.expect(third.ask("tools/list", "{}"), "Says it thrice")
	for _, s := range []*serving{first, second, third} {
		_ = s.in.Close()
		if code := s.end(); code != exitDone {
			t.Errorf("exit %d: %s", code, s.errs.String())
		}
	}
	p.do("install", "plain", "--as", "again", "--yes") // sweeps
	if n := versions(); n != 2 {
		t.Errorf("%d versions are left, not the newest and the one before", n)
	}
	if locks, _ := filepath.Glob(filepath.Join(p.home, "locks", ".use-*")); len(locks) != 0 {
		t.Errorf("left: %v", locks)
	}
}
