package main

import (
	"testing"
	"time"

	"skald-connectors/activate"
	"skald-connectors/catalog"
	"skald-connectors/fetch/trust"
	"skald-connectors/manifest"
)

// What an upgrade changes is named by the labels of fields, as a plan does, and not by their tokens.
func TestChangesNameFields(t *testing.T) {
	fields := []manifest.Field{{Name: "HOST", Label: "Mail host"}, {Name: "DIR", Label: "Folder"}}
	for want, c := range map[string]activate.Change{
		"the network to <Mail host>:993, new": {Kind: "network", Now: "{ENV:HOST}:993"},
		"reading <Folder>/in, no longer":      {Kind: "read", Was: "{ENV:DIR}/in"},
		"python3 {ENV:DIR} → node":            {Kind: "command", Was: "python3 {ENV:DIR}", Now: "node"},
		"servers of this machine, new":        {Kind: "loopback", Now: "yes"},
	} {
		if got := changeLabelled(c, fields); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What nobody has to do is not asked for.
func TestSignaturesWanted(t *testing.T) {
	now := &trust.Keys{}
	for want, s := range map[string]catalog.KeysState{
		"1 more signature of its root keys":          {NewMissing: 1},
		"2 more signatures of the present root keys": {Now: now, OldMissing: 2},
		"1 more signature of its own root keys":      {Now: now, NewMissing: 1},
		"1 more signature of the present root keys and 2 more signatures of its own root keys (a key that is both counts for both)": {Now: now, OldMissing: 1, NewMissing: 2},
	} {
		if got := signaturesWanted(&s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLasting(t *testing.T) {
	for d, want := range map[time.Duration]string{5 * time.Minute: "5 minutes", time.Minute: "1 minute", 90 * time.Second: "90 seconds", time.Second + time.Millisecond: "1 second"} {
		if got := lasting(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A server whose certificate nobody here believes is no marketplace that is merely out of reach: no key makes it one, and the advice is
// not to look at the network.
func TestCertificateOfAnotherAuthority(t *testing.T) {
	l := newLiar(t)
	l.must("catalog", "keygen", l.key("a"), "--no-password")
	l.ca = ""
	l.refused(exitFailed, "its certificate", "marketplace", "add", l.server.URL, "--key", l.key("a")+".pub", "--name", "liar")
	l.refused(exitFailed, "hint: where your company's own authority signs for servers, name its file with SSL_CERT_FILE", "info", "plain")
}
