//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestInspector lets the inspector of the protocol's authors be the client, of
// a connector with a secret and of the reference server.
func TestInspector(t *testing.T) {
	t.Parallel() // it waits for other programs most of the time
	inspector := peerCommand(t, "mcp-inspector", "@modelcontextprotocol/inspector")
	server := peerCommand(t, "mcp-server-everything", "@modelcontextprotocol/server-everything")
	p := newPlace(t)
	p.installMail()
	p.installCommand("everything", server)
	bin := filepath.Join(t.TempDir(), program)
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, bin)
	}
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"--cli", "-e", "SKALD_CONNECTORS_HOME=" + p.home, "-e", "SKALD_CONNECTORS_KEYSTORE=keyfile"}
	ask := func(target []string, words string) string {
		t.Helper()
		argv := slices.Concat(inspector, environ, target, strings.Fields(words))
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+p.t.TempDir(), "NO_COLOR=1")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v: %s%s", words, err, out, errs.String())
		}
		return string(out)
	}
	// It takes its time to end: all at once.
	var wait sync.WaitGroup
	for _, c := range []struct{ words, want string }{
		{"--method tools/list", `"name": "send_it"`},
		{"--method tools/call --tool-name echo --tool-arg text=hello", `"text": "hello"`},
		{"--method resources/list", `"uri": "connector://mail/status"`},
		{"--method resources/read --uri connector://mail/status", `authorized`},
	} {
		wait.Go(func() {
			if out := ask([]string{bin, "run", "mail"}, c.words); !strings.Contains(out, c.want) {
				t.Errorf("%s: no %s in %s", c.words, c.want, out)
			}
		})
	}
	for _, c := range []struct{ words, added string }{
		{"--method tools/list", "tools"},
		{"--method prompts/list", ""},
		{"--method prompts/get --prompt-name simple-prompt", ""},
		{"--method tools/call --tool-name get-structured-content --tool-arg location=Chicago", ""},
	} {
		wait.Go(func() {
			got, want := ask([]string{bin, "run", "everything"}, c.words), ask(server, c.words)
			if !json.Valid([]byte(want)) || withoutAdded(c.added, got) != withoutAdded(c.added, want) {
				t.Errorf("%s:\n%s, direct\n%s", c.words, got, want)
			}
		})
	}
	wait.Wait()
}
