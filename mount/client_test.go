package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// at makes a place absolute in a world.
func (w *world) at(place string) string { return filepath.Join(w.home, filepath.FromSlash(place)) }

// Where the file of each client is, on each platform, without any override.
func TestPlaces(t *testing.T) {
	const roaming, local, asup = "AppData/Roaming/", "AppData/Local/", "Library/Application Support/"
	same := func(p string) [3]string { return [3]string{p, p, p} }
	desktop := func(p string) [3]string { return [3]string{".config/" + p, asup + p, roaming + p} }
	want := map[string][3]string{
		"claude-desktop": desktop("Claude/claude_desktop_config.json"), "claude-code": same(".claude.json"), "cursor": same(".cursor/mcp.json"),
		"vscode": desktop("Code/User/mcp.json"), "vscode-insiders": desktop("Code - Insiders/User/mcp.json"), "vscode-server": same(".vscode-server/data/User/mcp.json"),
		"cline": same(".cline/data/settings/cline_mcp_settings.json"), "roo": desktop("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
		"continue": same(".continue/config.yaml"), "gemini": same(".gemini/settings.json"), "qwen": same(".qwen/settings.json"), "codex": same(".codex/config.toml"),
		"windsurf": same(".codeium/windsurf/mcp_config.json"), "windsurf-jetbrains": same(".codeium/mcp_config.json"),
		"goose":    {".config/goose/config.yaml", ".config/goose/config.yaml", roaming + "Block/goose/config/config.yaml"},
		"opencode": same(".config/opencode/opencode.json"), "zed": {".config/zed/settings.json", ".config/zed/settings.json", roaming + "Zed/settings.json"},
		"kiro": same(".kiro/settings/mcp.json"), "lm-studio": same(".lmstudio/mcp.json"), "trae": desktop("Trae/User/mcp.json"), "antigravity": same(".gemini/config/mcp_config.json"),
		"amp": same(".config/amp/settings.json"), "vibe": same(".vibe/config.toml"), "kimi": same(".kimi/mcp.json"), "factory": same(".factory/mcp.json"), "copilot": same(".copilot/mcp-config.json"),
		"qoder": {".qoder/mcp.json", ".qoder/mcp.json", roaming + "Qoder/SharedClientCache/mcp.json"}, "crush": same(".config/crush/crush.json"),
		"sema4ai": {".sema4ai/sema4ai-studio/mcp_servers.json", ".sema4ai/sema4ai-studio/mcp_servers.json", local + "sema4ai/sema4ai-studio/mcp_servers.json"},
		"5ire":    desktop("5ire/mcp.json"), "witsy": desktop("Witsy/settings.json"), "enconvo": same(".config/enconvo/mcp_config.json"), "boltai": same(".boltai/mcp.json"),
		"bedrock": same("Amazon Bedrock Client/mcp_config.json"), "amazon-q": same(".aws/amazonq/mcp.json"), "tome": same(".tome/mcp_config.json"), "librechat": same("LibreChat/librechat.yaml"),
		"jetbrains": same(".junie/mcp/mcp.json"),
	}
	for i, platform := range []string{"linux", "darwin", "windows"} {
		w := newWorld(t, platform)
		for _, c := range w.m.Clients() {
			if c.Problem != "" || len(c.Files) != 1 || c.Files[0] != w.at(want[c.ID][i]) {
				t.Errorf("%s on %s: %v %s, want %s", c.ID, platform, c.Files, c.Problem, w.at(want[c.ID][i]))
			}
			if c.Detected {
				t.Errorf("%s on %s is detected in an empty home", c.ID, platform)
			}
		}
		if n := len(w.m.Clients()); n != len(want) {
			t.Errorf("%d clients, want %d", n, len(want))
		}
	}
}

// The variables of clients and platforms, and files that exist, in their order.
func TestOverrides(t *testing.T) {
	for _, c := range []struct {
		client, platform string
		env              string // NAME=place, below the home
		files            string // that exist
		want             string // places, "!" and a part of the problem, or "-" for not detected
	}{
		{"claude-code", "linux", "CLAUDE_CONFIG_DIR=c", "", "c/.claude.json"},
		{"claude-code", "linux", "CLAUDE_CONFIG_DIR=c", ".claude.json c/.config.json", "c/.config.json"},
		{"claude-code", "linux", "", ".claude.json .claude/.config.json", ".claude/.config.json"},
		{"claude-code", "linux", "", ".claude/x", ".claude.json"},
		{"claude-code", "linux", "", "bin/claude", ".claude.json"},
		{"claude-code", "linux", "CLAUDE_CONFIG_DIR==c", "", `!CLAUDE_CONFIG_DIR is set to "c", which is not an absolute path`},
		{"codex", "darwin", "CODEX_HOME=c", ".codex/config.toml", "c/config.toml"},
		{"codex", "windows", "", ".codex/auth.json", ".codex/config.toml"},
		{"vibe", "linux", "VIBE_HOME=v", "", "v/config.toml"},
		{"gemini", "linux", "GEMINI_CLI_HOME=g", ".gemini/settings.json", "g/.gemini/settings.json"},
		{"librechat", "linux", "LIBRECHAT_CONFIG_DIR=l", "", "l/LibreChat/librechat.yaml"},
		{"cline", "linux", "CLINE_MCP_SETTINGS_PATH=x.json", ".cline/data/settings/cline_mcp_settings.json", "x.json"},
		{"cline", "linux", "", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		{"cline", "linux", "", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json .cline/data/settings/cline_mcp_settings.json",
			".cline/data/settings/cline_mcp_settings.json .config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		{"zed", "linux", "XDG_CONFIG_HOME=x", "", "-x/zed/settings.json"},
		{"zed", "linux", "XDG_CONFIG_HOME==x", "", "-.config/zed/settings.json"},
		{"zed", "linux", "XDG_CONFIG_HOME=x FLATPAK_XDG_CONFIG_HOME=f", "", "f/zed/settings.json"},
		{"zed", "windows", "", "AppData/Roaming/Zed/x", "AppData/Roaming/Zed/settings.json"},
		{"zed", "windows", "APPDATA=moved", "", "-moved/Zed/settings.json"},
		{"zed", "windows", "APPDATA=", "", "!the folder for its file is not known"},
		{"cursor", "windows", "USERPROFILE=", "", "!USERPROFILE is not set to an absolute path"},
		{"cursor", "linux", "HOME==rel", "", "!HOME is not set to an absolute path"},
		{"opencode", "linux", "", ".config/opencode/opencode.jsonc", ".config/opencode/opencode.jsonc"},
		{"opencode", "linux", "", ".config/opencode/opencode.jsonc .config/opencode/opencode.json", ".config/opencode/opencode.json"},
		{"opencode", "darwin", "XDG_CONFIG_HOME=x", "", "-x/opencode/opencode.json"},
		{"goose", "darwin", "XDG_CONFIG_HOME=x", "", "-.config/goose/config.yaml"},
		{"claude-desktop", "windows", "", "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/x", "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"},
		{"claude-desktop", "windows", "", "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/x AppData/Roaming/Claude/claude_desktop_config.json",
			"AppData/Roaming/Claude/claude_desktop_config.json AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"},
		{"lm-studio", "linux", "", ".cache/lm-studio/mcp.json", ".cache/lm-studio/mcp.json"},
		{"lm-studio", "linux", "", ".cache/lm-studio/x", ".lmstudio/mcp.json"},
		{"antigravity", "linux", "", ".gemini/antigravity/mcp_config.json", ".gemini/antigravity/mcp_config.json"},
		{"amp", "windows", "", "AppData/Roaming/amp/settings.json", "AppData/Roaming/amp/settings.json"},
		{"crush", "windows", "", "AppData/Local/crush/crush.json", "AppData/Local/crush/crush.json"},
		{"qoder", "darwin", "", "Library/Application Support/Qoder/SharedClientCache/mcp.json .qoder/mcp.json", ".qoder/mcp.json Library/Application Support/Qoder/SharedClientCache/mcp.json"},
		{"vscode", "linux", "", ".config/Code/x", ".config/Code/User/mcp.json"},
	} {
		t.Run(c.client+" "+c.platform+" "+c.env+" "+c.files, func(t *testing.T) {
			w := newWorld(t, c.platform)
			w.env["PATH"] = w.at("bin")
			for _, pair := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				if relative, ok := strings.CutPrefix(value, "="); ok {
					w.env[name] = relative
				} else if w.env[name] = ""; value != "" {
					w.env[name] = w.at(value)
				}
			}
			for _, f := range placesOf(c.files) {
				w.write(w.at(f), []byte("{}"))
			}
			got := w.m.client(rowOf(c.client))
			if part, ok := strings.CutPrefix(c.want, "!"); ok {
				if !strings.Contains(got.Problem, part) || len(got.Files) > 0 {
					t.Errorf("%+v, want %s", got, part)
				}
				if _, err := w.m.Mount(t.Context(), Request{Client: c.client, Name: "mail"}); !isReason(err, UnknownFile) {
					t.Errorf("mount: %v", err)
				}
				return
			}
			places, absent := strings.CutPrefix(c.want, "-")
			var want []string
			for _, f := range placesOf(places) {
				want = append(want, w.at(f))
			}
			if got.Problem != "" || !slices.Equal(got.Files, want) || got.Detected == absent {
				t.Errorf("%+v, want %v", got, want)
			}
		})
	}
}

// placesOf splits at spaces, but not inside "Application Support".
func placesOf(s string) []string {
	out := strings.Fields(strings.ReplaceAll(s, "Application Support", "Application_Support"))
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "_Support", " Support")
	}
	return out
}

func TestNotHere(t *testing.T) {
	w := newWorld(t, "linux")
	for _, c := range []struct {
		client string
		create bool
		here   string
		want   Reason
	}{
		{"cursor", false, "", NotHere}, {"cursor", true, "", ""}, {"windsurf", false, ".codeium/windsurf/x", ""}, {"kiro", false, ".kiro/x", ""},
		{"tome", true, "", NotHere}, {"boltai", false, ".boltai/x", ""}, {"none", true, "", UnknownClient},
	} {
		if c.here != "" {
			w.write(w.at(c.here), []byte{})
		}
		_, err := w.m.Mount(t.Context(), Request{Client: c.client, Name: "mail", Create: c.create})
		if c.want == "" && err != nil || c.want != "" && !isReason(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, name := range []string{"", "../x", "A", "a b", "a/b", "é", strings.Repeat("a", 200)} {
		if _, err := w.m.Mount(t.Context(), Request{Client: "cursor", Name: name, Create: true}); !isReason(err, InvalidName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestProgramWithASpace(t *testing.T) {
	w := newWorld(t, "linux")
	w.m.o.Program = `/opt/my "apps"\x/skald-connectors`
	w.refusal(Request{Client: "trae", Name: "mail", Create: true}, UnusableProgram)
	for _, r := range table() {
		if r.noSpace || r.grade == 'C' {
			continue
		}
		w.mount(Request{Client: r.id, Name: "mail", Create: true})
		readsBack(w, &r, w.file(r.id))
	}
}

// The entry of each shape, as its client wants it.
func TestShapes(t *testing.T) {
	for id, want := range map[string]string{
		"cursor":   `{"command": "/p", "args": ["run", "mail"]}`,
		"vscode":   `{"type": "stdio", "command": "/p", "args": ["run", "mail"]}`,
		"cline":    `{"command": "/p", "args": ["run", "mail"], "disabled": false, "autoApprove": []}`,
		"roo":      `{"command": "/p", "args": ["run", "mail"], "disabled": false, "alwaysAllow": []}`,
		"kiro":     `{"command": "/p", "args": ["run", "mail"], "disabled": false, "autoApprove": [], "disabledTools": []}`,
		"copilot":  `{"type": "local", "command": "/p", "args": ["run", "mail"], "env": {}, "tools": ["*"]}`,
		"zed":      `{"source": "custom", "enabled": true, "command": "/p", "args": ["run", "mail"], "env": {}}`,
		"opencode": `{"type": "local", "command": ["/p", "run", "mail"], "environment": {}, "enabled": true}`,
		"goose":    `{"type": "stdio", "name": "mail", "enabled": true, "cmd": "/p", "args": ["run", "mail"], "envs": {}, "env_keys": [], "timeout": 300}`,
		"continue": `{"name": "mail", "command": "/p", "args": ["run", "mail"]}`,
		"vibe":     `{"name": "mail", "transport": "stdio", "command": "/p", "args": ["run", "mail"]}`,
		"sema4ai":  `{"command": "/p", "args": ["run", "mail"], "transport": "stdio"}`,
		"5ire":     `{"type": "local", "key": "mail", "isActive": true, "command": "/p", "args": ["run", "mail"]}`,
	} {
		if got := jsonLine(rowOf(id).shape.entry("mail", "/p", []string{"run", "mail"}), false); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if slug("1-mail_box") != "key1mailbox" {
		t.Errorf("slug %q", slug("1-mail_box"))
	}
}

func TestOpenCodeLayouts(t *testing.T) {
	for src, want := range map[string]string{
		`{"mcp": {"servers": {}}}`:                                  `{"mcp": {"servers": {"mail": {"type": "local", "command": ["/opt/skald/bin/skald-connectors", "run", "mail"], "environment": {}, "disabled": false}}}}`,
		`{"mcp": {"servers": {"type": "local", "command": ["x"]}}}`: `{"mcp": {"servers": {"type": "local", "command": ["x"]}, "mail": {"type": "local", "command": ["/opt/skald/bin/skald-connectors", "run", "mail"], "environment": {}, "enabled": true}}}`,
	} {
		w := newWorld(t, "linux")
		file := w.file("opencode")
		w.write(file, []byte(src))
		w.mount(Request{Client: "opencode", Name: "mail"})
		w.same(file, []byte(want), "mounted")
		w.unmount(Request{Client: "opencode", Name: "mail"})
		w.same(file, []byte(src), "unmounted")
	}
}

func TestStableProgram(t *testing.T) {
	dir := memoryDir(t)
	if !strings.HasPrefix(dir, "/dev/shm") {
		t.Skip("the platform has temporary folders only")
	}
	real := filepath.Join(dir, "opt", "skald", "1.0", "bin", ourProgram)
	link := filepath.Join(dir, "my bin", ourProgram)
	for _, p := range []string{real, link} {
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	}
	check(t, os.WriteFile(real, []byte("x"), 0o755))
	check(t, os.Symlink(real, link))
	elsewhere := filepath.Join(dir, "other", ourProgram)
	check(t, os.MkdirAll(filepath.Dir(elsewhere), 0o755))
	check(t, os.WriteFile(elsewhere, []byte("y"), 0o755))
	check(t, os.WriteFile(filepath.Join(filepath.Dir(real), ourProgram+".exe"), []byte("z"), 0o755))
	for _, c := range []struct {
		self, path, platform, tmp string
		want                      string
		lasting                   bool
	}{
		{real, filepath.Dir(link), "linux", "", link, true},
		{real, "relative:" + filepath.Dir(elsewhere) + ":" + filepath.Dir(link), "linux", "", link, true},
		{real, filepath.Dir(elsewhere), "linux", "", real, true},
		{real, "", "linux", dir, real, false},
		{real + ".exe", filepath.Dir(real), "windows", "", real + ".exe", true},
		{real + "-gone", "", "linux", "", real + "-gone", false},
	} {
		env := map[string]string{"PATH": c.path, "TMPDIR": c.tmp}
		got, lasting := StableProgram(c.self, func(k string) string { return env[k] }, c.platform)
		if got != c.want || lasting != c.lasting {
			t.Errorf("%+v: %q %v", c, got, lasting)
		}
	}
}

func TestDrift(t *testing.T) {
	w := newWorld(t, "linux")
	bin := w.at("bin/" + ourProgram)
	w.write(bin, []byte("x"))
	w.m.o.Program = bin
	digests := map[string]string{}
	for _, name := range []string{"good", "edited", "absent", "gone", "dead", "stray"} {
		if name == "dead" {
			w.m.o.Program = w.at("bin/old/" + ourProgram)
		} else {
			w.m.o.Program = bin
		}
		digests[name] = w.mount(Request{Client: "cursor", Name: name, Create: true}).Digest
	}
	file := w.file("cursor")
	w.unmount(Request{Client: "cursor", Name: "absent"})
	src := strings.Replace(string(w.read(file)), `"run", "edited"`, `"run", "edited", "-v"`, 1)
	src = strings.Replace(src, "{\n", "{\n  \"mcpServers2\": 0,\n", 1)
	src = strings.Replace(src, `"mcpServers": {`, `"mcpServers": {"theirs": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_1", "REF": "${X}", "A_KEY": "${env:K}"}, "args": ["--api-key", "v", "--token=${T}"]},`, 1)
	w.write(file, []byte(src))
	w.write(w.file("codex"), []byte("x = \n"))
	var recorded []Request
	for _, name := range []string{"good", "edited", "absent", "gone", "dead"} {
		recorded = append(recorded, Request{Client: "cursor", Name: name, File: file, Digests: []string{digests[name]}})
	}
	recorded = append(recorded, Request{Client: "cursor", Name: "good", File: w.at("old.json")}, Request{Client: "codex", Name: "good", File: w.file("codex")})
	var got []string
	for _, f := range w.m.Drift(recorded, func(name string) bool { return name != "gone" }) {
		got = append(got, fmt.Sprintf("%s %s %s:%d %s", f.Client, f.Name, f.Kind, f.Line, strings.ReplaceAll(f.Detail, w.home, "~")))
	}
	want := []string{
		"cursor good ok:4 ", "cursor edited edited:8 ", "cursor absent absent:0 ", "cursor gone activation_gone:12 ", "cursor dead program_gone:16 ~/bin/old/skald-connectors",
		"cursor good file_moved:0 ~/.cursor/mcp.json", "codex good unreadable:0 ~/.codex/config.toml:1:5: expected value but found '\\n' instead",
		"cursor stray not_recorded:20 stray", "cursor theirs plain_secret:3 env GITHUB_TOKEN, argument 2", "codex  unreadable:0 ~/.codex/config.toml:1:5: expected value but found '\\n' instead",
	}
	slices.Sort(got)
	slices.Sort(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("findings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
