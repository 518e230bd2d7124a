//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStatusGivesUp asks connectors that never answer, beside one that does: each line says what it says, and
// nothing of the silent ones is left (launcher.md section 6, with a shorter limit than its ten seconds).
func TestStatusGivesUp(t *testing.T) {
	needPython(t)
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	// Only the first start, that of install, is answered.
	silent := func(last string) map[string]string {
		return map[string]string{"server.py": `import os, signal, sys, time
starts = os.path.join(os.environ["HOME"], "starts")
if os.path.exists(starts):
    for i in range(7): print("line", i, "of its own", file=sys.stderr, flush=True)
` + last + `
    sys.exit()
open(starts, "w").close()
` + string(server)}
	}
	p := newPlace(t)
	marker := p.home + "/marked"
	p.env = append(p.env, "TZ=:"+marker, "SKALD_TEST_ANSWER=2s", "SKALD_CONNECTORS_INDEX="+hostileMarket(t,
		shipped{id: "answers"}, shipped{id: "silent", files: silent("    sys.stdin.read()")},
		shipped{id: "stubborn", files: silent("    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: time.sleep(60)")}))
	for _, id := range []string{"answers", "silent", "stubborn"} {
		p.do("install", id, "--yes")
	}
	self, err := exec.LookPath(program) // status starts itself, by its path
	if err != nil {
		t.Fatal(err)
	}
	status := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		cmd := &exec.Cmd{Path: self, Args: append([]string{program, "status"}, args...), Env: p.env, Stdout: &out, Stderr: &errs}
		_ = cmd.Run() // the exit code says it
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	code, _, errs := status("silent")
	if code != exitConnector || !strings.Contains(errs, `asking "silent": it did not answer in time`) {
		t.Errorf("exit %d: %s", code, errs)
	}
	if strings.Contains(errs, "line 1") || !strings.Contains(errs, "the last lines that it wrote:\n") || !strings.Contains(errs, "silent: line 6 of its own") {
		t.Errorf("its last five lines: %s", errs)
	}
	code, out, errs := status("--json")
	var doc struct {
		Statuses []struct {
			Name, State, Message string
			Stderr               []string
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Statuses) != 3 || code != exitConnector {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	for i, want := range []string{"authorized", "failed", "failed"} {
		got := doc.Statuses[i]
		if got.State != want || want == "failed" && (got.Message != "it did not answer in time" || len(got.Stderr) != tailLines || !slices.Contains(got.Stderr, got.Name+": line 6 of its own")) {
			t.Errorf("%+v", got)
		}
	}
	for until := time.Now().Add(10 * time.Second); len(marked(marker)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("left: %v", marked(marker))
		}
	}
}
