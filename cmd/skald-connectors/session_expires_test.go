//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCredentialExpires lets a typed credential stop working in an open session, of which somebody had
// said when that is: it parks, a new start parks at once, and another value wakes both.
func TestCredentialExpires(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	file := filepath.Join(t.TempDir(), "password")
	writeFile(t, file, canary)
	until := time.Now().Add(4 * time.Second)
	p.do("secrets", "put", "mail", "MAIL_PASSWORD", "--file", file, "--expires-at", until.UTC().Format(time.RFC3339))
	s := p.run("mail")
	s.greet()
	const call, read = `{"name":"echo","arguments":{"text":"hi"}}`, `{"uri":"connector://mail/status"}`
	if time.Now().Before(until.Add(-time.Second)) { // else this machine is too slow to see it alive
		s.expect(s.ask("tools/call", call), `"text": "hi"`)
	}
	s.until("connector.auth_expired", "tools/call", call)
	s.expect(s.ask("resources/read", read), `\"state\":\"expired\"`, "the credentials of connector mail have expired; run: skald-connectors auth mail")
	second := p.run("mail")
	second.greet()
	second.expect(second.ask("tools/call", call), `"connector.auth_expired"`)
	if out := p.output("list"); !strings.Contains(out, " expired") {
		t.Errorf("list: %s", out)
	}

	p.do("secrets", "put", "mail", "MAIL_PASSWORD", "--file", file)
	for _, s := range []*serving{s, second} {
		s.until(`"text": "hi"`, "tools/call", call)
		_ = s.in.Close()
		if code := s.end(); code != exitDone {
			t.Errorf("exit %d: %s", code, s.errs.String())
		}
		p.noCanary(s)
	}
}
