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
	"strings"
	"sync"
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
func (p *place) do(args ...string) { p.t.Helper(); p.output(args...) }

// output is do, and gives what the command prints.
func (p *place) output(args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	code := runWith(context.Background(), args, p.env, strings.NewReader(""), &out, &errs, hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork})
	if code != exitDone {
		p.t.Fatalf("%q: exit %d: %s", args, code, errs.String())
	}
	return out.String()
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
