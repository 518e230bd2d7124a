package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnlockPassphrase opens a passphrase store in another terminal: the parked
// session, which cannot ask, wakes; a new one does not need the passphrase until
// it is forgotten.
func TestUnlockPassphrase(t *testing.T) {
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); err != nil {
		t.Skipf("this platform refuses the keyring of the user: %v", err)
	}
	p := newPlace(t)
	pass := filepath.Join(t.TempDir(), "passphrase")
	writeFile(t, pass, "a long enough passphrase\n")
	p.env = append(p.env, "SKALD_CONNECTORS_KEYSTORE=passphrase", "SKALD_CONNECTORS_PASSPHRASE_FILE="+pass)
	p.installMail()
	without := *p
	without.env = append(without.env, "SKALD_CONNECTORS_PASSPHRASE_FILE=")
	s := without.run("mail")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{}}`), "is locked; run: skald-connectors unlock")

	p.do("unlock")
	t.Cleanup(func() { p.do("unlock", "--forget") })
	for !strings.Contains(s.next(), "notifications/tools/list_changed") {
	}
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
	next := without.run("mail")
	next.greet()
	next.expect(next.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)

	p.do("unlock", "--forget")
	last := without.run("mail")
	last.greet()
	last.expect(last.ask("tools/call", `{"name":"echo","arguments":{}}`), "is locked")
	for _, open := range []*serving{s, next, last} {
		_ = open.in.Close()
		if code := open.end(); code != exitDone {
			t.Errorf("exit %d: %s", code, open.errs.String())
		}
		p.noCanary(open)
	}
}
