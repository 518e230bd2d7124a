package mount

// row is what is known about one client (spec/clients.md, which has the sources).
// Places are written with a base: ~ home, CFG the configuration folder of the
// desktop, XDG the same on every platform, ASUP and APPDATA and LOCALAPPDATA those
// of macOS and Windows, $NAME a variable of the client, which decides when it is
// set. A "|" ends the part whose existence shows that the client is here; without
// one it is the folder of the file. "+" marks a place that is written beside others
// whenever that part exists, "?" one that is the only one when the file exists.
type row struct {
	id, name string
	grade    byte // A, B, C: how sure the facts are; C is never created
	format   format
	key      []string
	list     bool
	shape    shape
	all      []string // the places on every platform, or
	linux    []string
	darwin   []string
	windows  []string
	every    bool     // each existing file is written, not the first one only
	here     []string // further signs of the client
	programs []string // names of its program in PATH
	noSpace  bool     // cannot start a program whose path has a space
	restart  bool     // reads its file at its start only
	mkdirLck bool     // locks its file by making the folder FILE.lock
}

func (r *row) place() place { return place{path: r.key, list: r.list} }

func rowOf(id string) *row {
	rows := table()
	for i := range rows {
		if rows[i].id == id {
			return &rows[i]
		}
	}
	return nil
}

// desktop gives the places of an application that follows each platform's habit.
func desktop(r row, rest string) row {
	r.linux, r.darwin, r.windows = []string{"CFG/" + rest}, []string{"ASUP/" + rest}, []string{"APPDATA/" + rest}
	return r
}

// extension gives the places of an extension of VS Code.
func extension(r row, id, file string, first ...string) row {
	rest := "/Code/User/globalStorage/" + id + "|/settings/" + file
	r.linux, r.darwin, r.windows = append(first, "CFG"+rest), append(first, "ASUP"+rest), append(first, "APPDATA"+rest)
	return r
}

var (
	mcpServers = []string{"mcpServers"}
	servers    = []string{"servers"}
)

// table is every client with a file of its own, in the order in which it is shown.
func table() []row {
	return []row{
		{id: "claude-desktop", name: "Claude Desktop", grade: 'A', key: mcpServers, restart: true,
			linux:  []string{"CFG/Claude/claude_desktop_config.json"},
			darwin: []string{"ASUP/Claude/claude_desktop_config.json"},
			windows: []string{"APPDATA/Claude/claude_desktop_config.json",
				"+LOCALAPPDATA/Packages/Claude_pzs8sxrjxfjjc|/LocalCache/Roaming/Claude/claude_desktop_config.json"}},
		{id: "claude-code", name: "Claude Code", grade: 'A', key: mcpServers, mkdirLck: true, programs: []string{"claude"},
			all: []string{"?$CLAUDE_CONFIG_DIR/.config.json", "$CLAUDE_CONFIG_DIR/.claude.json", "?~/.claude/.config.json", "~/.claude.json"}, here: []string{"~/.claude"}},
		{id: "cursor", name: "Cursor", grade: 'A', key: mcpServers, all: []string{"~/.cursor/mcp.json"}},
		desktop(row{id: "vscode", name: "VS Code", grade: 'A', format: commentJSON, key: servers, shape: typedStdio, programs: []string{"code"}}, "Code|/User/mcp.json"),
		desktop(row{id: "vscode-insiders", name: "VS Code Insiders", grade: 'B', format: commentJSON, key: servers, shape: typedStdio, programs: []string{"code-insiders"}}, "Code - Insiders|/User/mcp.json"),
		{id: "vscode-server", name: "VS Code Server", grade: 'C', format: commentJSON, key: servers, shape: typedStdio, all: []string{"~/.vscode-server/data/User/mcp.json"}},
		extension(row{id: "cline", name: "Cline", grade: 'A', key: mcpServers, shape: clineShape, every: true},
			"saoudrizwan.claude-dev", "cline_mcp_settings.json", "$CLINE_MCP_SETTINGS_PATH", "~/.cline|/data/settings/cline_mcp_settings.json"),
		extension(row{id: "roo", name: "Roo Code", grade: 'A', key: mcpServers, shape: rooShape}, "rooveterinaryinc.roo-cline", "mcp_settings.json"),
		{id: "continue", name: "Continue", grade: 'A', format: yamlFormat, key: mcpServers, list: true, shape: namedShape, all: []string{"~/.continue/config.yaml"}},
		{id: "gemini", name: "Gemini CLI", grade: 'A', format: commentJSON, key: mcpServers, all: []string{"$GEMINI_CLI_HOME/.gemini/settings.json", "~/.gemini/settings.json"}, programs: []string{"gemini"}},
		{id: "qwen", name: "Qwen Code", grade: 'C', format: commentJSON, key: mcpServers, all: []string{"~/.qwen/settings.json"}},
		{id: "codex", name: "Codex", grade: 'A', format: tomlFormat, key: []string{"mcp_servers"}, programs: []string{"codex"},
			all: []string{"$CODEX_HOME/config.toml", "~/.codex/config.toml"}},
		{id: "windsurf", name: "Windsurf", grade: 'A', key: mcpServers, all: []string{"~/.codeium/windsurf/mcp_config.json"}},
		{id: "windsurf-jetbrains", name: "Windsurf for JetBrains", grade: 'C', key: mcpServers, all: []string{"~/.codeium/mcp_config.json"}},
		{id: "jetbrains", name: "JetBrains (Junie)", grade: 'C', key: mcpServers, all: []string{"~/.junie|/mcp/mcp.json"}},
		{id: "goose", name: "Goose", grade: 'A', format: yamlFormat, key: []string{"extensions"}, shape: gooseShape, programs: []string{"goose"},
			linux: []string{"CFG/goose/config.yaml"}, darwin: []string{"~/.config/goose/config.yaml"}, windows: []string{"APPDATA/Block/goose/config/config.yaml"}},
		{id: "opencode", name: "OpenCode", grade: 'A', format: commentJSON, key: []string{"mcp"}, shape: opencodeV1, programs: []string{"opencode"},
			all: []string{"XDG/opencode/opencode.json", "XDG/opencode/opencode.jsonc"}},
		{id: "zed", name: "Zed", grade: 'A', format: commentJSON, key: []string{"context_servers"}, shape: zedShape, programs: []string{"zed"},
			linux: []string{"$FLATPAK_XDG_CONFIG_HOME/zed/settings.json", "CFG/zed/settings.json"}, darwin: []string{"~/.config/zed/settings.json"}, windows: []string{"APPDATA/Zed/settings.json"}},
		{id: "kiro", name: "Kiro", grade: 'A', key: mcpServers, shape: kiroShape, all: []string{"~/.kiro|/settings/mcp.json"}},
		{id: "lm-studio", name: "LM Studio", grade: 'B', key: mcpServers, all: []string{"~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"}},
		desktop(row{id: "trae", name: "Trae", grade: 'B', key: mcpServers, noSpace: true}, "Trae|/User/mcp.json"),
		{id: "antigravity", name: "Antigravity", grade: 'B', key: mcpServers,
			all: []string{"~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json"}},
		{id: "amp", name: "Amp", grade: 'B', format: commentJSON, key: []string{"amp.mcpServers"}, programs: []string{"amp"},
			linux: []string{"~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"}, darwin: []string{"~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"},
			windows: []string{"~/.config/amp/settings.json", "~/.config/amp/settings.jsonc", "APPDATA/amp/settings.json"}},
		{id: "vibe", name: "Mistral Vibe", grade: 'B', format: tomlFormat, key: []string{"mcp_servers"}, list: true, shape: vibeShape, programs: []string{"vibe"},
			all: []string{"$VIBE_HOME/config.toml", "~/.vibe/config.toml"}},
		{id: "kimi", name: "Kimi CLI", grade: 'B', key: mcpServers, all: []string{"~/.kimi/mcp.json"}, programs: []string{"kimi"}},
		{id: "factory", name: "Factory Droid", grade: 'B', key: mcpServers, shape: typedStdio, all: []string{"~/.factory/mcp.json"}, programs: []string{"droid"}},
		{id: "copilot", name: "GitHub Copilot CLI", grade: 'B', key: mcpServers, shape: copilotShape, all: []string{"~/.copilot/mcp-config.json"}, programs: []string{"copilot"}},
		{id: "qoder", name: "Qoder", grade: 'C', key: mcpServers, linux: []string{"~/.qoder/mcp.json"},
			darwin: []string{"~/.qoder/mcp.json", "ASUP/Qoder/SharedClientCache/mcp.json"}, windows: []string{"APPDATA/Qoder/SharedClientCache/mcp.json"}, every: true},
		{id: "crush", name: "Crush", grade: 'B', key: []string{"mcp"}, shape: typedStdio, programs: []string{"crush"},
			linux: []string{"CFG/crush/crush.json"}, darwin: []string{"~/.config/crush/crush.json"}, windows: []string{"~/.config/crush/crush.json", "LOCALAPPDATA/crush/crush.json"}},
		{id: "sema4ai", name: "Sema4.ai Studio", grade: 'C', key: mcpServers, shape: sema4Shape, linux: []string{"~/.sema4ai/sema4ai-studio/mcp_servers.json"},
			darwin: []string{"~/.sema4ai/sema4ai-studio/mcp_servers.json"}, windows: []string{"LOCALAPPDATA/sema4ai/sema4ai-studio/mcp_servers.json"}},
		desktop(row{id: "5ire", name: "5ire", grade: 'C', key: mcpServers, shape: fiveireShape}, "5ire/mcp.json"),
		desktop(row{id: "witsy", name: "Witsy", grade: 'C', key: mcpServers}, "Witsy/settings.json"),
		{id: "enconvo", name: "Enconvo", grade: 'C', key: mcpServers, all: []string{"~/.config/enconvo/mcp_config.json"}},
		{id: "boltai", name: "BoltAI", grade: 'C', key: mcpServers, all: []string{"~/.boltai/mcp.json"}},
		{id: "bedrock", name: "Amazon Bedrock Client", grade: 'C', key: mcpServers, all: []string{"~/Amazon Bedrock Client/mcp_config.json"}},
		{id: "amazon-q", name: "Amazon Q Developer", grade: 'B', key: mcpServers, all: []string{"~/.aws/amazonq/mcp.json"}},
		{id: "tome", name: "Tome", grade: 'C', key: mcpServers, all: []string{"~/.tome/mcp_config.json"}},
		{id: "librechat", name: "LibreChat", grade: 'C', format: yamlFormat, key: mcpServers,
			all: []string{"$LIBRECHAT_CONFIG_DIR/LibreChat/librechat.yaml", "~/LibreChat/librechat.yaml"}},
	}
}
