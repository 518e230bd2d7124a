//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realClient is a program of an MCP client that .ci/run installs: what its file holds
// before, and what its list says of a server that it has started, or read.
type realClient struct{ id, program, file, before, want string }

var realClients = [...]realClient{
	{"claude-code", "claude", ".claude.json", `{"mcpServers": {"theirs": {"type": "stdio", "command": "/none", "args": []}}}`, "Connected"},
	{"opencode", "opencode", ".config/opencode/opencode.json", "{\n  // theirs\n  \"mcp\": {\"theirs\": {\"type\": \"local\", \"command\": [\"/none\"], \"enabled\": false}},\n}\n", "connected"},
	{"codex", "codex", ".codex/config.toml", "# theirs\n[mcp_servers.theirs]\ncommand = \"/none\"\n", "enabled"},
	{"gemini", "gemini", ".gemini/settings.json", "{\n  // theirs\n  \"mcpServers\": {\"theirs\": {\"command\": \"/none\"}}\n}\n", "plain"},
}

// TestRealClients installs and mounts through the commands and asks each client what it has:
// those that start servers are connected, the foreign entry is still listed, and after
// unmount the file is what it was, apart from what the client wrote itself.
func TestRealClients(t *testing.T) {
	t.Parallel() // it waits for other programs most of the time
	if os.Getenv(peersVariable) == "" {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is not set and SKALD_TEST_REQUIRE is", peersVariable)
		}
		t.Skipf("%s names a folder with the clients", peersVariable)
	}
	b := newBench(t)
	b.env = append(b.env, "XDG_CONFIG_HOME=", "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "GEMINI_CLI_HOME=", "CONFIG_LOCAL_DIR=")
	for _, c := range realClients {
		b.write(map[string]string{c.file: c.before})
	}
	b.must("install", "plain", "--yes", "--mount", "claude-code,opencode,codex,gemini")
	for _, c := range realClients {
		t.Run(c.id, func(t *testing.T) {
			out := b.askClient(t, c)
			line := ""
			for l := range strings.Lines(out) {
				if strings.Contains(l, "plain") {
					line += l
				}
			}
			if !strings.Contains(line, c.want) || !strings.Contains(out, "theirs") {
				t.Errorf("the client says:\n%s\nits file:\n%s", out, b.read(c.file))
			}
		})
	}
	if out := b.must("doctor"); !strings.Contains(out, "4 entries in 4 clients") {
		t.Errorf("doctor says:\n%s", out)
	}
	b.inspect(t)
	b.must("unmount", "plain")
	for _, c := range []realClient{realClients[0], realClients[2]} { // package mount asks the slow ones
		if out := b.askClient(t, c); strings.Contains(out, "plain") || !strings.Contains(out, "theirs") {
			t.Errorf("after unmount %s says:\n%s", c.id, out)
		}
	}
}

// askClient runs the client's own list of servers in the throw-away home.
func (b *bench) askClient(t *testing.T, c realClient) string {
	t.Helper()
	path, err := exec.LookPath(filepath.Join(os.Getenv(peersVariable), c.program))
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "mcp", "list")
	cmd.Dir = b.dir
	cmd.Env = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "GEMINI_CLI_TRUST_WORKSPACE=true", "DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s mcp list: %v", c.program, err)
	}
	return string(out)
}

// inspect lets the inspector start the connector from a client's own file. It reads
// JSON without comments, so ours is mounted into such a one first.
func (b *bench) inspect(t *testing.T) {
	t.Helper()
	t.Run("inspector", func(t *testing.T) {
		inspector := peerCommand(t, "mcp-inspector", "@modelcontextprotocol/inspector")
		b.write(map[string]string{".cursor/mcp.json": "{}", ".lmstudio/mcp.json": "{}", ".kiro/settings/mcp.json": "{}", ".copilot/mcp-config.json": "{}"})
		b.must("mount", "plain", "--client", "cursor,lm-studio,kiro,copilot")
		for _, file := range []string{".claude.json", ".cursor/mcp.json", ".lmstudio/mcp.json", ".kiro/settings/mcp.json"} {
			argv := append(inspector, "--cli", "--config", filepath.Join(b.dir, file), "--server", "plain", "--method", "tools/list")
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "HOME="+b.dir)
			cmd.WaitDelay = 5 * time.Second
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"echo"`) {
				t.Errorf("from %s: %v\n%s", file, err, out)
			}
		}
	})
}
