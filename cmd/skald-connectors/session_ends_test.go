//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRunWithoutReaders closes what a client may close: standard error, while
// the session goes on, and standard output, which ends it.
func TestRunWithoutReaders(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inRead, in, _ := os.Pipe()
	out, outWrite, _ := os.Pipe()
	errs, errsWrite, _ := os.Pipe()
	cmd := &exec.Cmd{Path: self, Args: []string{program, "run", "mail"}, Env: p.env, Stdin: inRead, Stdout: outWrite, Stderr: errsWrite}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for _, f := range []*os.File{inRead, outWrite, errsWrite, errs} {
		_ = f.Close()
	}
	const call = `{"jsonrpc":"2.0","id":%,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}` + "\n"
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	dec := json.NewDecoder(out)
	for _, id := range []string{"2", "3", "4"} { // each call writes to standard error
		var msg map[string]any
		if err := dec.Decode(&msg); err != nil {
			t.Fatalf("before %s: %v", id, err)
		}
		_, _ = io.WriteString(in, strings.Replace(call, "%", id, 1))
		time.Sleep(30 * time.Millisecond) // the log is written later than the answer
	}
	_ = out.Close()
	_, _ = io.WriteString(in, strings.Replace(call, "%", "5", 1))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("it does not end when nobody reads it")
	}
	if log, _ := os.ReadFile(filepath.Join(p.home, "logs", "mail.log")); !strings.Contains(string(log), "session ends: ") {
		t.Errorf("log: %s", log)
	}
}

// TestRunLockedKeyStore parks while the key store cannot be opened and wakes
// when it can.
func TestRunLockedKeyStore(t *testing.T) {
	p := newPlace(t)
	pass := filepath.Join(t.TempDir(), "passphrase")
	writeFile(t, pass, "a long enough passphrase\n")
	p.env = append(p.env, "SKALD_CONNECTORS_KEYSTORE=passphrase", "SKALD_CONNECTORS_PASSPHRASE_FILE="+pass)
	p.installMail()
	without := *p
	without.env = append(without.env, "SKALD_CONNECTORS_PASSPHRASE_FILE=")
	s := without.run("mail")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{}}`), `"connector.auth_required"`, "is locked; run: skald-connectors unlock")
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	with := p.run("mail")
	with.greet()
	with.expect(with.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
	_ = with.in.Close()
	if code := with.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, with.errs.String())
	}
}

// TestRunRemote serves a connector behind a URL: the key goes along in a header,
// and when it is no longer taken the session parks.
func TestRunRemote(t *testing.T) {
	var refuse, sessions atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() > 0 || r.Header.Get("X-Key") != canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&msg)
		if msg.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"tools":[{"name":"far","inputSchema":{"type":"object"}}]}`
		switch msg.Method {
		case "initialize":
			sessions.Add(1)
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"from afar"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":`+result+`}`)
	}))
	defer server.Close()
	p := newPlace(t)
	market := hostileMarket(t, shipped{id: "far", change: func(m map[string]any) {
		m["type"], m["transport"] = "mcp_remote", "streamable-http"
		m["auth"] = map[string]any{"type": "api_key", "delivery": "header", "param": "X-Key"}
		m["mcp_config"] = map[string]any{"url": server.URL + "/mcp", "transport": "streamable-http"}
	}})
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+market)
	p.do("install", "far", "--yes", "--secret-env", "X_Key=THE_PASSWORD")
	s := p.run("far")
	s.expect(s.greet(), `"name":"far"`)
	s.expect(s.ask("tools/list", "{}"), `"far"`)
	s.expect(s.ask("tools/call", `{"name":"far","arguments":{}}`), "from afar")
	refuse.Store(1)
	for began := time.Now(); !strings.Contains(s.ask("tools/call", `{"name":"far","arguments":{}}`), "connector.auth_required"); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the session is not parked")
		}
	}
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	p.noCanary(s)
}
