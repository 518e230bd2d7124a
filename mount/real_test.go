package mount

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clientsVariable names a folder with the programs of real clients, such as the
// node_modules/.bin that npm makes; .ci/run fills one.
const clientsVariable = "SKALD_TEST_CLIENTS"

// realClient gives the path of a client's program, or skips.
func realClient(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(clientsVariable), program)
	if os.Getenv(clientsVariable) == "" || !exists(path) {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is not in %s", program, clientsVariable)
		}
		t.Skipf("%s is not here; %s names a folder with it", program, clientsVariable)
	}
	return path
}

// realWorld has a throw-away home and this test program as the mounted one.
func realWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "linux")
	self, err := os.Executable()
	check(t, err)
	bin := filepath.Join(w.home, "a folder", ourProgram) // with a space in its path
	check(t, os.MkdirAll(filepath.Dir(bin), 0o755))
	check(t, os.Symlink(self, bin))
	w.m.o.Program = bin
	return w
}

// ask runs the client in the throw-away home.
func (w *world) ask(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join(w.home, "a folder")
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "GEMINI_CLI_TRUST_WORKSPACE=true", "DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v", filepath.Base(program), args, err)
	}
	return string(out)
}

// Each real client lists our entry, those that start servers have connected to it,
// and the entry that was there before is still listed.
func TestRealClients(t *testing.T) {
	for _, c := range []struct{ client, program, variable, before, want string }{
		{"claude-code", "claude", "CLAUDE_CONFIG_DIR", `{"mcpServers": {"theirs": {"type": "stdio", "command": "/none", "args": []}}}`, "Connected"},
		{"opencode", "opencode", "XDG_CONFIG_HOME", "{\n  // theirs\n  \"mcp\": {\"theirs\": {\"type\": \"local\", \"command\": [\"/none\"], \"enabled\": false}},\n}\n", "connected"},
		{"codex", "codex", "CODEX_HOME", "# theirs\n[mcp_servers.theirs]\ncommand = \"/none\"\n", "enabled"},
		{"gemini", "gemini", "GEMINI_CLI_HOME", "{\n  // theirs\n  \"mcpServers\": {\"theirs\": {\"command\": \"/none\"}}\n}\n", "mail"},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, moved %v", c.client, moved), func(t *testing.T) {
				program := realClient(t, c.program)
				w := realWorld(t)
				if moved {
					w.env[c.variable] = w.at("moved")
					check(t, os.Mkdir(w.at("moved"), 0o755))
				}
				w.t = t
				w.realRoundTrip(t, program, c.client, c.before, c.want)
			})
		}
	}
}

func (w *world) realRoundTrip(t *testing.T, program, client, before, want string) {
	file := w.file(client)
	w.write(file, []byte(before))
	w.mount(Request{Client: client, Name: "mail"})
	out := w.ask(t, program, "mcp", "list")
	found := ""
	for line := range strings.Lines(out) {
		if strings.Contains(line, "mail") {
			found += line
		}
	}
	if !strings.Contains(found, want) || !strings.Contains(out, "theirs") {
		t.Errorf("the client says:\n%s", out)
	}
	w.unmount(Request{Client: client, Name: "mail"})
	if out := w.ask(t, program, "mcp", "list"); strings.Contains(out, "mail") || !strings.Contains(out, "theirs") {
		t.Errorf("after unmount the client says:\n%s", out)
	}
}
