//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// shippedServer is the test server with other lines before and after it.
func shippedServer(t *testing.T, id, before, after string) shipped {
	t.Helper()
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	return shipped{id: id, files: map[string]string{"server.py": before + string(server) + after}, change: func(m map[string]any) {
		m["env"] = []any{map[string]any{"name": "MAIL_PASSWORD", "label": "Password", "required": true, "secret": true}}
	}}
}

// TestWhatAServerIsGiven looks at the environment and the arguments of a real server (launcher.md section 1): its
// own values and the documented ones, nothing else of the client's, and no secret as an argument.
func TestWhatAServerIsGiven(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shippedServer(t, "seen",
		"import json, os\njson.dump([dict(os.environ), open('/proc/self/cmdline').read()], open(os.path.join(os.environ['HOME'], 'seen'), 'w'))\n", "")),
		"AWS_SECRET_ACCESS_KEY=of-another-program", "NODE_OPTIONS=--inspect", "PYTHONSTARTUP=/x", "HTTPS_PROXY=http://127.0.0.1:9", "LANG=C.UTF-8", "TZ=UTC")
	p.do("install", "seen", "--yes", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
	s := p.run("seen")
	s.greet()
	data, err := os.ReadFile(filepath.Join(p.home, "state", "seen", "home", "seen"))
	if err != nil {
		t.Fatal(err)
	}
	var args string
	env := map[string]string{}
	if err := json.Unmarshal(data, &[]any{&env, &args}); err != nil {
		t.Fatal(err)
	}
	for name, value := range env {
		if strings.HasPrefix(name, "SKALD_") || value == "of-another-program" || name == "NODE_OPTIONS" || name == "PYTHONSTARTUP" || name == "THE_PASSWORD" {
			t.Errorf("it is given %s", name)
		}
	}
	if env["MAIL_PASSWORD"] != canary || env["LANG"] != "C.UTF-8" || env["TZ"] != "UTC" || env["HTTPS_PROXY"] == "" || env["PATH"] == "" || !strings.HasPrefix(env["HOME"], p.home) {
		t.Error("it is not given what it needs")
	}
	all := []string{args}
	for _, id := range marked(p.home) { // the launcher, the sandbox, the server
		pid, _, _ := strings.Cut(id, " ")
		words, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		all = append(all, string(words))
	}
	if len(all) < 3 {
		t.Errorf("only %d processes are found while it runs", len(all)-1)
	}
	for _, words := range all {
		if strings.Contains(words, canary) {
			t.Errorf("the secret is an argument: %q", words)
		}
	}
	_ = s.in.Close()
	s.end()
}

// TestServerIsKilled has the server end by a signal: what is in flight is answered, exit 5, and the line says why.
func TestServerIsKilled(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shippedServer(t, "killed",
		"", "")))
	p.do("install", "killed", "--yes", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
	marker := p.home + "/marked"
	p.env = append(p.env, "TZ=:"+marker)
	s := p.run("killed")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
	killed := 0
	for _, id := range marked(marker) {
		pid, _, _ := strings.Cut(id, " ")
		number, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := os.ReadFile("/proc/" + pid + "/comm"); strings.HasPrefix(string(name), "python") && syscall.Kill(number, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("the server is not found")
	}
	if code := s.end(); code != exitConnector || !strings.Contains(s.errs.String(), "skald-connectors: connector.internal: killed: the connector ended (") {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
}

// TestServerCannotStart takes the program of a connector away: exit 5, and the one line names it.
func TestServerCannotStart(t *testing.T) {
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	file := filepath.Join(t.TempDir(), "server")
	writeFile(t, file, "#!"+needPython(t)+"\n"+string(server))
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	p.installCommand("gone", []string{file})
	s := p.run("gone")
	s.expect(s.greet(), `"name": "test"`)
	if code := s.endInput(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.refused(exitConnector, "skald-connectors: connector.internal: ", "gone")
	p.refused(exitConnector, file, "gone")
}

// TestWakesAfterASlowEnd signs out and in again while the connector, which does not care about the end of its input, is still being
// ended: the session wakes when that is over.
func TestWakesAfterASlowEnd(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shippedServer(t, "slow", "", "\nimport time\nwhile True: time.sleep(60)\n")))
	p.do("install", "slow", "--yes", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
	s := p.run("slow")
	s.greet()
	const call = `{"name":"echo","arguments":{"text":"hi"}}`
	s.expect(s.ask("tools/call", call), `"text": "hi"`)
	p.do("secrets", "remove", "slow", "MAIL_PASSWORD")
	s.until("connector.auth_required", "tools/call", call)
	p.do("configure", "slow", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD", "--no-verify")
	s.until(`"text": "hi"`, "tools/call", call)
	_ = s.cmd.Process.Kill() // its end is the same as before, five seconds long
	s.end()
}
