package main

import (
	"strings"
	"testing"
)

// TestManifestThatCannotBeRead: its bytes are the pinned ones and no manifest; that is
// the publisher's to mend, and nothing was installed.
func TestManifestThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"not json", "[]", `{"id":"a","id":"b"}`, strings.Repeat("[", 5000), "\xff\xfe"} {
		run, _ := inHome(t, hostileMarket(t, shipped{id: "bad", files: map[string]string{"connector.json": text}}))
		if code, _, errs := run("install", "bad", "--yes"); code != exitIntegrity || !strings.Contains(errs, "connector.json") {
			t.Errorf("%.20q: exit %d: %s", text, code, errs)
		}
	}
}

// TestAgentThatIsNotThere: a manifest asks for the SSH agent where there is none, or
// where its socket is gone: the plan says so, and the connector runs without.
func TestAgentThatIsNotThere(t *testing.T) {
	for socket, want := range map[string]string{"": "SSH_AUTH_SOCK is not set", "/nowhere/agent": "no socket"} {
		t.Setenv("SSH_AUTH_SOCK", socket)
		run, _ := inHome(t, hostileMarket(t, shipped{id: "asks", change: func(m map[string]any) {
			m["permissions"] = map[string]any{"agent": true, "network": map[string]any{"hosts": []string{}}}
		}}))
		code, _, errs := run("install", "asks", "--yes")
		errs = strings.Join(strings.Fields(errs), " ") // it is wrapped
		if code != exitDone || !strings.Contains(errs, "it asks for your SSH agent and runs without one") || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d: %s", socket, code, errs)
		}
		if code, _, errs := run("install", "asks", "--as", "other", "--yes", "--withhold", "agent"); code != exitDone || strings.Contains(errs, "SSH agent and") {
			t.Errorf("%q, withheld: exit %d: %s", socket, code, errs)
		}
	}
}
