//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRunServes(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	s := p.run("mail")
	s.expect(s.greet(), `"serverInfo": {"name": "test"`, `"resources":{}`)
	s.expect(s.ask("tools/list", "{}"), `"echo"`, `"send_it"`, `"title":"Send It"`)
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"<&> \u2028"}}`), `"text": "<&> \u2028"`)
	s.expect(s.ask("resources/read", `{"uri":"connector://mail/status"}`), `\"state\":\"authorized\"`, `\"echo\"`)

	// Its own secret comes back withheld, and is nowhere.
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"leak"}}`), `"connector.internal"`, "withheld")

	// A denial in another terminal is in force in the open session.
	p.do("tools", "mail", "--deny", "echo")
	denied := time.Now()
	for !strings.Contains(s.ask("tools/call", `{"name":"echo","arguments":{}}`), "connector.forbidden_scope") {
		if time.Since(denied) > 2*time.Second {
			t.Fatal("the denial is not in force after 2 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if list := s.ask("tools/list", "{}"); strings.Contains(list, `"echo"`) {
		t.Errorf("the denied tool is listed: %s", list)
	}
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	p.noCanary(s)
	receipts, err := os.ReadFile(filepath.Join(p.home, "calls", "mail.jsonl"))
	if err != nil || !bytes.Contains(receipts, []byte(`"outcome":"ok"`)) || !bytes.Contains(receipts, []byte(`"outcome":"refused"`)) || bytes.Contains(receipts, []byte("2028")) {
		t.Errorf("receipts: %s %v", receipts, err)
	}
	if log := s.errs.String(); !strings.Contains(log, "mail: echo was called") || !strings.Contains(log, "MAIL_PASSWORD") {
		t.Errorf("stderr: %s", log)
	}
	info, err := os.Stat(filepath.Join(p.home, "logs", "mail.log"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v %v", info, err)
	}
}

func TestRunParkedWakes(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	p.do("secrets", "remove", "mail", "MAIL_PASSWORD")
	s := p.run("mail")
	s.expect(s.greet(), `"instructions":"Be kind."`, `"listChanged":true`, `"name":"skald-connectors"`)
	s.expect(s.ask("tools/list", "{}"), `"tools":[]`)
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{}}`), "-32603", `"connector.auth_required"`, "connector mail has no credentials; run: skald-connectors auth mail")
	s.expect(s.ask("resources/read", `{"uri":"connector://mail/status"}`), `\"state\":\"unauthorized\"`)

	p.do("auth", "mail", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
	set := time.Now()
	for !strings.Contains(s.next(), "notifications/tools/list_changed") {
	}
	if waited := time.Since(set); waited > 2*time.Second {
		t.Errorf("it woke after %s", waited)
	}
	s.expect(s.ask("tools/list", "{}"), `"echo"`)
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)

	// A credential that is taken away parks the open session again.
	p.do("secrets", "remove", "mail", "MAIL_PASSWORD")
	gone := time.Now()
	for !strings.Contains(s.ask("tools/call", `{"name":"echo","arguments":{}}`), "connector.auth_required") {
		if time.Since(gone) > 5*time.Second {
			t.Fatal("the session is not parked")
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	p.noCanary(s)
}

func TestRunRefusals(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	versions, err := filepath.Glob(filepath.Join(p.home, "connectors", "mail", "*", "server.py"))
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	works, err := filepath.Glob(filepath.Join(p.home, "work", "mail", "*", "server.py"))
	if err != nil || len(works) != 1 {
		t.Fatal(works, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"nope"}, exitNotFound, `skald-connectors: connector.not_installed: "nope" is not installed; see what is installed with skald-connectors list`},
		{[]string{}, exitUsage, "skald-connectors: connector.internal: run takes NAME; given: 0"},
		{[]string{"mail", "--mode", "hosted"}, exitUsage, `skald-connectors: connector.internal: --mode "hosted": this program serves standalone only`},
		{[]string{"mail", "--config-dir", "here"}, exitUsage, `skald-connectors: connector.internal: --config-dir "here" is not an absolute path`},
		{[]string{"mail", "--config-dir", ""}, exitUsage, `skald-connectors: connector.internal: --config-dir "" is not an absolute path`},
		{[]string{"mail", "--nope"}, exitUsage, "skald-connectors: connector.internal: unknown flag: --nope; see skald-connectors run --help"},
	} {
		p.refused(c.code, c.want, c.args...)
	}
	appendTo(t, works[0], "#")
	p.refused(exitUsage, `"server.py"`, "mail")
	p.do("verify", "mail") // repairs it
	appendTo(t, versions[0], "#")
	p.refused(exitUsage, `skald-connectors: connector.changed: `, "mail")
}

// TestRunOptionalKey: an API key that may be left out never parks.
func TestRunOptionalKey(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shipped{id: "free", change: func(m map[string]any) {
		m["auth"] = map[string]any{"type": "api_key", "delivery": "env", "param": "FREE_KEY"}
		m["env"] = []any{map[string]any{"name": "FREE_KEY", "label": "Key", "required": false, "secret": true}}
	}}))
	p.do("install", "free", "--yes")
	s := p.run("free")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
}

// TestStatusShowsLastWords: a connector that cannot start is named, with the last lines
// of its launcher (launcher.md section 6).
func TestStatusShowsLastWords(t *testing.T) {
	p := newPlace(t)
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	const dies = "import os, sys\nif os.path.exists(os.environ['HOME'] + '/die'):\n" +
		"    for i in range(9): print('line', i, file=sys.stderr)\n    sys.exit(3)\n"
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shipped{id: "frail", files: map[string]string{"server.py": dies + string(server)}}))
	p.do("install", "frail", "--yes")
	writeFile(t, filepath.Join(p.home, "state", "frail", "home", "die"), "")
	for _, args := range [][]string{{"status", "frail"}, {"call", "frail", "echo"}, {"status", "frail", "--json"}} {
		cmd := exec.Command(program, args...)
		cmd.Env = p.env
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitConnector {
			t.Errorf("%q: exit %d", args, code)
		}
		for _, want := range []string{"frail: the connector ended (exit code 3)", "line 5", "line 8"} {
			if !strings.Contains(string(out), want) || strings.Contains(string(out), "line 4") {
				t.Errorf("%q: no %q in %s", args, want, out)
			}
		}
	}
}

// refused runs until the end and wants its code and its one line.
func (p *place) refused(code int, want string, args ...string) {
	p.t.Helper()
	s := p.run(args...)
	got := s.end()
	errs := strings.TrimSuffix(s.errs.String(), "\n")
	if got != code || !strings.Contains(errs, want) || strings.Contains(errs, "\n") || s.all.Len() > 0 {
		p.t.Errorf("%q: exit %d, want %d; stdout %q; stderr %s", args, got, code, s.all.String(), errs)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunConnectorEnds(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	s := p.run("mail")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"die"}}`), `"connector.internal"`)
	if code := s.end(); code != exitConnector {
		t.Errorf("exit %d", code)
	}
	lines := strings.Split(strings.TrimSpace(s.errs.String()), "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "skald-connectors: connector.internal: mail: ") }) {
		t.Errorf("stderr: %s", s.errs.String())
	}
}
