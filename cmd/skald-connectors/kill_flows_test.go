package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// killFlow is a command that is killed at every step, on a copy of a home.
type killFlow struct {
	name     string
	from     *bench
	args     []string
	old, new string // what mail says before and after
	again    []int  // exit codes of the same command after the kill

	after string // the step to begin with
	every string // from this step on also the second and further steps of a kind
	// For an upgrade that is taken back: its exit code, and what to do after a kill; the old version is there in the end, and
	// the new one does not run.
	code int
	redo []string
}

// end is what is there when everything came to its end.
func (f killFlow) end() string {
	if f.redo != nil {
		return f.old
	}
	return f.new
}

// diesInPlace is a server that comes up once only: in its stage.
const diesInPlace = "import os, sys\nwith open('state/starts', 'a') as f: f.write('x')\nif os.path.getsize('state/starts') > 1: sys.exit(7)\n"

// failing is a home with version 1 of mail, whose version 2 passes in its stage and does not start in its place.
func failing(t *testing.T, install []string) *bench {
	t.Helper()
	b := newBench(t)
	b.must(install...)
	server := filepath.Join(b.dir, "market", "mail", "server.py")
	code, err := os.ReadFile(server)
	if err == nil {
		err = os.WriteFile(server, append([]byte(diesInPlace), code...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.bump("mail")
	return b
}

// killFlows prepares the homes: empty, with version 1, with version 2 there, upgraded, with a version 2 that fails, with two connectors.
func killFlows(t *testing.T) []killFlow {
	empty, one := newBench(t), newBench(t)
	if err := os.Mkdir(filepath.Join(empty.dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	install := slices.Concat(installMail, []string{"MAIL_PASSWORD=" + filepath.Join(one.dir, "pw")})
	one.must(install...)
	session := filepath.Join(one.dir, "home", "state", "mail", "state", "session") // the connector's own data
	if err := os.WriteFile(session, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := newBench(t) // the records of one name the marketplace of one, so two gets its own
	two.must(install...)
	two.bump("mail")
	upgraded := two.clone(t)
	upgraded.must("upgrade", "mail", "--yes")
	both := one.clone(t)
	both.must("install", "plain", "--yes")
	const v1, v2 = "version 1, port 993", "version 2, port 993"
	return []killFlow{
		{name: "install", from: empty, args: install, old: "none", new: v1, again: []int{0, 2}},
		{name: "configure", from: one, args: []string{"configure", "mail", "--set", "MAIL_PORT=143"}, old: v1, new: "version 1, port 143", again: []int{0}},
		{name: "upgrade", from: two, args: []string{"upgrade", "mail", "--yes"}, old: v1, new: v2, again: []int{0}},
		{name: "upgrade that is taken back", from: failing(t, install), args: []string{"upgrade", "mail", "--yes"}, old: v1, new: v2, again: []int{0, 4},
			after: "start-once", code: exitConnector, redo: []string{"rollback", "mail"}},
		{name: "rollback", from: upgraded, args: []string{"rollback", "mail"}, old: v2, new: v1, again: []int{0, 4}},
		{name: "uninstall", from: one, args: []string{"uninstall", "mail"}, old: v1, new: "none", again: []int{0, 4}},
		{name: "uninstall --all --purge", from: both, args: []string{"uninstall", "--all", "--purge", "--yes"}, old: v1, new: "none", again: []int{0},
			after: "remove-record", every: "wipe"},
	}
}
