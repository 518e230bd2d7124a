package activate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

const (
	// askRuntime bounds the question an interpreter is asked: a cold start of
	// node or of a version manager's shim takes under two seconds.
	askRuntime = 15 * time.Second
	// askOutput is far above the two lines of the answer.
	askOutput = 64 << 10
)

// RuntimeError says that the program a connector runs with is not here, or is
// too old. Searched are the folders that were looked in.
type RuntimeError struct {
	Program, Range string
	Found, Path    string // the version that is here, "" = none
	Searched       []string
}

func (e *RuntimeError) Error() string {
	if e.Found != "" {
		return fmt.Sprintf("%s %s at %s does not satisfy %q", e.Program, e.Found, e.Path, e.Range)
	}
	where := strings.Join(e.Searched, string(filepath.ListSeparator))
	if where == "" {
		where = "nowhere: PATH is empty"
	}
	return fmt.Sprintf("%s was not found (searched %s)", e.Program, where)
}

// question asks an interpreter for its real path, behind the shims of version
// managers, and its version: two lines.
func question(program string) []string {
	switch {
	case isPython(program):
		return []string{"-I", "-c", "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])"}
	case program == "node":
		return []string{"-p", "process.execPath + '\\n' + process.versions.node"}
	}
	return nil
}

func isPython(command string) bool {
	base := strings.TrimSuffix(filepath.Base(command), ".exe")
	return base == "python" || base == "python3"
}

// known are the programs a connector is expected to run with; others are legal
// and said loudly (security.md, decisions).
var known = []string{"node", "python3", "python", "npx", "uvx", "deno", "bun"}

// knownCommand tells whether the server's command is one of the known
// runtimes, started in the ordinary way: an option before the script (-e,
// --require, --inspect) makes it something else.
func knownCommand(s manifest.Server) bool {
	if !slices.Contains(known, s.Command) {
		return false
	}
	runsScript := s.Command == "node" || isPython(s.Command)
	return !runsScript || len(s.Args) > 0 && (!strings.HasPrefix(s.Args[0], "-") || s.Args[0] == "-m" || s.Args[0] == "-u" && len(s.Args) > 1)
}

// programs names what has to be found for a manifest: the server's command and
// the first word of its verify command, where they are not shipped files. What npx
// would start is started by node, unless the user keeps npx by leaving dependencies
// alone.
func programs(m *manifest.Manifest, files []manifest.File, noDeps bool) []string {
	var out []string
	add := func(p string) {
		shipped := slices.ContainsFunc(files, func(f manifest.File) bool { return f.Path == strings.TrimPrefix(p, "./") })
		if p == "npx" && !noDeps && p == m.Server.Command {
			p = "node"
		}
		if p != "" && !shipped && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if m.Type != "mcp_remote" {
		add(m.Server.Command)
	}
	if m.Verify != nil {
		if words, err := manifest.SplitCommand(m.Verify.Command); err == nil && len(words) > 0 && slices.Contains(known, words[0]) {
			add(words[0])
		}
	}
	return out
}

// findRuntimes looks every program of the manifest up on the given PATH and
// holds its version against what the manifest asks for. Errors: *RuntimeError.
func (a *Activator) findRuntimes(ctx context.Context, m *manifest.Manifest, files []manifest.File, noDeps bool) ([]Runtime, error) {
	var out []Runtime
	for _, p := range programs(m, files, noDeps) {
		r, err := a.findRuntime(ctx, p, manifest.RuntimeRange(m, p))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (a *Activator) findRuntime(ctx context.Context, program, want string) (Runtime, error) {
	path, searched, err := sandbox.LookPath(program, lookup(a.Environ, "PATH"))
	if err != nil {
		return Runtime{}, &RuntimeError{Program: program, Range: want, Searched: searched}
	}
	r := Runtime{Program: program, Path: path}
	ask := question(program)
	if ask == nil {
		return r, nil
	}
	base := baseEnviron(a.Environ, lookup(a.Environ, "HOME"), nil)
	res, err := a.Sandbox.Run(ctx, sandbox.Policy{Limits: sandbox.Limits{Wall: askRuntime, Stdout: askOutput, Stderr: askOutput}},
		sandbox.Command{Argv: append([]string{path}, ask...), Dir: filepath.Dir(path), Env: base.list()}, nil)
	if err != nil {
		return Runtime{}, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	lines := strings.Fields(strings.ReplaceAll(string(res.Stdout), " ", "\x00"))
	if res.Code != 0 || len(lines) != 2 {
		return Runtime{}, &RuntimeError{Program: program, Range: want, Searched: searched}
	}
	if real := strings.ReplaceAll(lines[0], "\x00", " "); filepath.IsAbs(real) {
		r.Path = real
	}
	r.Version = lines[1]
	return r, holdVersion(r, want)
}

func holdVersion(r Runtime, want string) error {
	if want == "" {
		return nil
	}
	c, err := semver.NewConstraint(want)
	if err != nil {
		return nil // lint names a range that cannot be read; it asks for nothing here
	}
	v, err := semver.NewVersion(r.Version)
	if err != nil || c.Check(v) {
		return nil
	}
	return &RuntimeError{Program: r.Program, Range: want, Found: r.Version, Path: r.Path}
}

// lookup returns a variable of an environment list, the last one winning as
// execve's callers do.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}
