//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRunEqualsDirect holds what comes through run against what the servers of
// the built-in catalogue say without it: the same bytes, but for what launcher.md
// section 3 adds.
func TestRunEqualsDirect(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX=builtin")
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"<&> \u2028","method":"ping"}`,
		`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"no/such","params":{"b":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}`,
	}
	for _, id := range []string{"http-fetch", "weather", "wikipedia"} {
		p.do("install", id, "--yes", "--no-verify")
		want := answersOf(t, p.direct(id), lines)
		got := answersOf(t, p.through(id), lines)
		if !strings.Contains(got[0], `"resources"`) {
			t.Errorf("%s: initialize: %s", id, got[0])
		}
		for i := range lines[1:3] {
			if got[i+1] != want[i+1] {
				t.Errorf("%s: %s:\n%s, direct\n%s", id, lines[i+1], got[i+1], want[i+1])
			}
		}
		if g, w := withoutTitles(t, got[3]), withoutTitles(t, want[3]); g != w {
			t.Errorf("%s: tools:\n%s, direct\n%s", id, g, w)
		}
	}
}

// TestEverything holds the answers of the reference server with all features,
// through run, against its own.
func TestEverything(t *testing.T) {
	server := peerCommand(t, "mcp-server-everything", "@modelcontextprotocol/server-everything")
	p := newPlace(t)
	p.installCommand("everything", server)
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a/<&>","method":"ping"}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/templates/list","params":{}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"message":"h\u00e9 \u2028"},"_meta":{"progressToken":9}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"no-such-tool","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"simple-prompt"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"error"}}`,
		`{"jsonrpc":"2.0","id":9,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}}`,
		`{"jsonrpc":"2.0","id":10,"method":"no/such"}`,
	}
	want := answersOf(t, exec.Command(server[0], server[1:]...), lines)
	got := answersOf(t, p.through("everything"), lines)
	for i, line := range lines {
		switch {
		case strings.Contains(line, `"no-such-tool"`):
			if !strings.Contains(got[i], `"connector.changed"`) {
				t.Errorf("a tool that was never accepted: %s", got[i])
			}
		case strings.Contains(line, `"tools/list"`):
			if g, w := withoutTitles(t, got[i]), withoutTitles(t, want[i]); g != w {
				t.Errorf("tools:\n%s, direct\n%s", g, w)
			}
		case got[i] != want[i]:
			t.Errorf("%s:\n%s, direct\n%s", line, got[i], want[i])
		}
	}
}

// answersOf sends lines and returns the answer to each; then the program ends.
func answersOf(t *testing.T, cmd *exec.Cmd, lines []string) []string {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	r := bufio.NewReader(out)
	answers := make([]string, len(lines))
	for i, line := range lines {
		_, _ = io.WriteString(in, line+"\n")
		for { // past what the server says on its own
			if answers[i], err = r.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			var msg struct{ Method string }
			if err := json.Unmarshal([]byte(answers[i]), &msg); err != nil {
				t.Fatalf("not a message: %q", answers[i])
			}
			if msg.Method == "" {
				break
			}
		}
		if i == 0 {
			_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	return answers
}

func withoutTitles(t *testing.T, list string) string {
	t.Helper()
	var msg struct {
		Result struct {
			Tools []map[string]any `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(list), &msg); err != nil {
		t.Fatal(err)
	}
	for _, tool := range msg.Result.Tools {
		delete(tool, "title")
	}
	text, err := json.Marshal(msg.Result.Tools)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
