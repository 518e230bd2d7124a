package mount

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"skald-connectors/internal/lazyre"
)

// Engine is the id of the engine's own catalogue among the clients.
const Engine = "engine"

// EngineFile is where the engine with the configuration folder dir has its catalogue.
func (m *Mounter) EngineFile(dir string) string { return filepath.Join(dir, "config.d", "mcp.json") }

// engineName is what the engine accepts: lower-case words of letters and digits,
// joined by hyphens.
var engineName = lazyre.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// reservedNames are those that the engine keeps for itself, the one list of them.
func reservedNames() []string { return []string{ourProgram, Engine} }

// engineKey is where a new catalogue has its servers. A catalogue that is a plain
// list, or has them under a name of engineKeys, is taken as it is.
const engineKey = "servers"

func engineKeys() []string { return []string{engineKey, "mcpServers", "mcp"} }

// engineTarget is DIR/config.d/mcp.json. The command is the plain name: the engine
// has a PATH of its own.
func (m *Mounter) engineTarget(r Request) (*target, error) {
	if r.ConfigDir == "" {
		return nil, refusef(ConfigDir, "", "the engine's configuration folder is not given")
	}
	if !filepath.IsAbs(r.ConfigDir) {
		return nil, refusef(ConfigDir, "", "the engine's configuration folder is not an absolute path")
	}
	if fi, err := os.Stat(r.ConfigDir); err != nil || !fi.IsDir() {
		return nil, refusef(ConfigDir, "", "there is no folder %q", r.ConfigDir)
	}
	if !engineName.MatchString(r.Name) {
		return nil, refusef(InvalidName, "", "a name is lower-case letters and digits in words joined by hyphens, not %q", r.Name)
	}
	if slices.Contains(reservedNames(), r.Name) {
		return nil, refusef(ReservedName, "", "the engine keeps the name %q for itself", r.Name)
	}
	t := &target{client: Engine, file: m.EngineFile(r.ConfigDir), ed: jsonEditor{},
		shape: engineShape, home: m.o.Home, settle: m.settle, strict: true, restart: true, command: ourProgram, adapt: adaptEngine}
	t.args = []string{"run", r.Name, "--mode", "standalone", "--transport", "stdio", "--config-dir", r.ConfigDir}
	if m.o.Home != "" {
		t.args = append(t.args, "--home", m.o.Home)
	}
	t.lock = filepath.Join(r.ConfigDir, "config.d", "."+ourProgram+".lock")
	adaptEngine(t, nil)
	return t, m.resolve(t, r.ConfigDir)
}

func adaptEngine(t *target, tree any) {
	t.place = place{path: []string{engineKey}, list: true}
	switch c := tree.(type) {
	case []any:
		t.place.path = nil
	case map[string]any:
		for _, key := range engineKeys() {
			if _, ok := c[key].([]any); ok {
				t.place.path = []string{key}
				return
			}
		}
	}
}

// mountLocked is Mount for a caller that holds the lock of the engine's file.
func (m *Mounter) mountLocked(ctx context.Context, r Request) (Result, error) {
	t, err := m.engineTarget(r)
	if err != nil {
		return Result{}, err
	}
	return m.attempt(ctx, t, r, t.mounting)
}
