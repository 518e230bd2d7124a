//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skald-connectors/connectors"
)

// canary is the password of the test connector.
const canary = "correct horse"

// place is one home with the test marketplace and what it is steered by.
type place struct {
	t    *testing.T
	home string
	env  []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	needPython(t)
	dir := t.TempDir()
	market := filepath.Join(dir, "market")
	if err := copyMarket("testdata/market", market); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: filepath.Join(dir, "home")}
	p.env = append(os.Environ(), "SKALD_CONNECTORS_HOME="+p.home, "SKALD_CONNECTORS_INDEX="+market, "SKALD_CONNECTORS_KEYSTORE=keyfile", "THE_PASSWORD="+canary,
		"CLIENT_TOKEN=of-another-program")
	return p
}

// do runs a command in this process, as another terminal would.
func (p *place) do(args ...string) {
	p.t.Helper()
	var out, errs bytes.Buffer
	code := runWith(context.Background(), args, p.env, strings.NewReader(""), &out, &errs, hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}})
	if code != exitDone {
		p.t.Fatalf("%q: exit %d: %s", args, code, errs.String())
	}
}

func (p *place) installMail() {
	p.t.Helper()
	p.do("install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
}

// serving is a running `run`.
type serving struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  lockedText
	all   strings.Builder // what came on stdout
	id    int
}

type lockedText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (p *place) run(args ...string) *serving {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	s := &serving{t: p.t, lines: make(chan string, 1000)}
	s.cmd = &exec.Cmd{Path: self, Args: append([]string{program, "run"}, args...), Env: p.env, Stderr: &s.errs, Dir: p.t.TempDir()}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	go func() {
		defer close(s.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// next is the next line on stdout; "" at its end.
func (s *serving) next() string {
	s.t.Helper()
	select {
	case line := <-s.lines:
		s.all.WriteString(line)
		if line != "" && !json.Valid([]byte(line)) {
			s.t.Fatalf("not a message on stdout: %q", line)
		}
		return line
	case <-time.After(20 * time.Second):
		s.t.Fatalf("no line on stdout; stderr: %s", s.errs.String())
		return ""
	}
}

func (s *serving) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request and returns its answer, whole, past notifications.
func (s *serving) ask(method, params string) string {
	s.t.Helper()
	s.id++
	id, err := json.Marshal(s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(`{"jsonrpc":"2.0","id":` + string(id) + `,"method":"` + method + `","params":` + params + `}`)
	for {
		line := s.next()
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if line == "" {
			s.t.Fatalf("stdout ended; stderr: %s", s.errs.String())
		}
		if err := json.Unmarshal([]byte(line), &msg); err != nil {
			s.t.Fatal(err)
		}
		if msg.Method == "" && string(msg.ID) == string(id) {
			return line
		}
	}
}

func (s *serving) greet() string {
	s.t.Helper()
	answer := s.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return answer
}

func (s *serving) expect(answer string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			s.t.Errorf("no %s in %s", part, answer)
		}
	}
}

// end waits for the exit code.
func (s *serving) end() int {
	s.t.Helper()
	ended := make(chan struct{})
	go func() {
		for line := range s.lines {
			s.all.WriteString(line)
		}
		_ = s.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		s.t.Fatalf("it does not end; stderr: %s", s.errs.String())
		return -1
	}
}

// noCanary holds that no output and no file of the home but the vault's input
// has the password.
func (p *place) noCanary(s *serving) {
	p.t.Helper()
	texts := map[string]string{"stdout": s.all.String(), "stderr": s.errs.String()}
	for _, pattern := range []string{"logs/*", "calls/*", "activations/*"} {
		files, err := filepath.Glob(filepath.Join(p.home, filepath.FromSlash(pattern)))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				p.t.Fatal(err)
			}
			texts[f] = string(data)
		}
	}
	for where, text := range texts {
		for _, needle := range encodings(canary) {
			if strings.Contains(text, needle) {
				p.t.Errorf("%s holds the secret", where)
			}
		}
	}
}

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

func TestNothingOutlivesRun(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("processes are found by /proc")
	}
	p := newPlace(t)
	p.installMail()
	for _, c := range []struct {
		name string
		end  func(*serving)
		code int
	}{
		{"end of input", func(s *serving) { _ = s.in.Close() }, exitDone},
		{"TERM", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }, exitDone},
		{"INT", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGINT) }, exitDone},
		{"HUP", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGHUP) }, exitDone},
		{"KILL", func(s *serving) { _ = s.cmd.Process.Kill() }, -1},
	} {
		s := p.run("mail")
		s.greet()
		s.ask("tools/list", "{}")
		if left := p.processes(); len(left) == 0 {
			t.Fatal("the connector's process is not found while it runs")
		}
		c.end(s)
		if code := s.end(); code != c.code {
			t.Errorf("%s: exit %d: %s", c.name, code, s.errs.String())
		}
		for began := time.Now(); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("%s: left: %q", c.name, p.processes())
			}
		}
	}
}

// processes lists the processes that name this place's home.
func (p *place) processes() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []string
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(p.home)) {
			out = append(out, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return out
}
