package activate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"skald-connectors/activate/record"
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

// RuntimeError says that the program a connector runs with is not here, does
// not work, or is too old. Searched are the folders that were looked in.
type RuntimeError struct {
	Program, Range string
	Found, Path    string // the version that is here, "" = none
	Problem        string // what is wrong with the program that is here or with its name
	Searched       []string
}

func (e *RuntimeError) Error() string {
	switch {
	case e.Found != "":
		return fmt.Sprintf("%s %s at %s does not satisfy %q", e.Program, e.Found, e.Path, e.Range)
	case e.Path != "":
		return fmt.Sprintf("%s at %s does not work: %s", e.Program, e.Path, e.Problem)
	case e.Problem != "":
		return fmt.Sprintf("%q cannot be started: %s", e.Program, e.Problem)
	case len(e.Searched) == 0:
		return fmt.Sprintf("%q was not found: PATH names no absolute folder", e.Program)
	}
	return fmt.Sprintf("%q was not found (searched %s)", e.Program, strings.Join(e.Searched, string(filepath.ListSeparator)))
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

// known are the runtimes that a verify command may start with; other first
// words are the shell's business.
var known = []string{"node", "python3", "python", "npx", "uvx", "deno", "bun"}

// programs names what has to be found for a manifest: the server's command and
// the first word of its verify command, where they are not shipped files. What npx
// would start is started by node, unless the user keeps npx by leaving dependencies
// alone.
func programs(m *manifest.Manifest, files []manifest.File, noDeps bool) []string {
	var out []string
	add := func(p string) {
		_, shipped := manifest.Shipped(files, p)
		if p == "npx" && !noDeps && p == m.Server.Command {
			p = "node"
		}
		if p != "" && !shipped && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !m.Remote() {
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
func (a *Activator) findRuntimes(ctx context.Context, m *manifest.Manifest, files []manifest.File, noDeps bool) ([]record.Runtime, error) {
	var out []record.Runtime
	for _, p := range programs(m, files, noDeps) {
		r, err := a.findRuntime(ctx, p, manifest.RuntimeRange(m, p))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (a *Activator) findRuntime(ctx context.Context, program, want string) (record.Runtime, error) {
	path, searched, err := sandbox.LookPath(program, lookup(a.Environ, "PATH"))
	if err != nil {
		missing := &RuntimeError{Program: program, Range: want, Searched: searched}
		if !errors.Is(err, fs.ErrNotExist) {
			missing.Problem = problemOf(err)
		}
		return record.Runtime{}, missing
	}
	r := record.Runtime{Program: program, Path: path}
	ask := question(program)
	if ask == nil {
		return r, nil
	}
	if known, asked := a.asked.Load(path); asked && present([]record.Runtime{known.(record.Runtime)}) {
		r.Path, r.Version = known.(record.Runtime).Path, known.(record.Runtime).Version
		return r, holdVersion(r, want)
	}
	base := baseEnviron(a.Environ, lookup(a.Environ, "HOME"), nil)
	plain, err := sandbox.New(sandbox.None) // it is the user's own program, asked for what a sandbox has to show
	if err != nil {
		return record.Runtime{}, err
	}
	res, err := plain.Run(ctx, sandbox.Policy{Limits: sandbox.Limits{Wall: askRuntime, Stdout: askOutput, Stderr: askOutput}},
		sandbox.Command{Argv: append([]string{path}, ask...), Dir: filepath.Dir(path), Env: base.list()}, nil)
	if ctx.Err() != nil {
		return record.Runtime{}, context.Cause(ctx)
	}
	broken := &RuntimeError{Program: program, Range: want, Path: path}
	if err != nil {
		broken.Problem = problemOf(err)
		return record.Runtime{}, broken
	}
	lines := strings.Fields(strings.ReplaceAll(string(res.Stdout), " ", "\x00"))
	switch {
	case res.TimedOut:
		broken.Problem = fmt.Sprintf("it did not say its version within %d s", int(askRuntime.Seconds()))
	case res.Code != 0 || res.Signal != "":
		broken.Problem = "asked for its version, it ended with " + ending(res)
	case len(lines) != 2:
		broken.Problem = "it did not say its version"
	}
	if broken.Problem != "" {
		return record.Runtime{}, broken
	}
	if real := strings.ReplaceAll(lines[0], "\x00", " "); filepath.IsAbs(real) {
		r.Path = real
	}
	r.Version = lines[1]
	a.asked.Store(path, r)
	return r, holdVersion(r, want)
}

// problemOf is what keeps a program from being started, in plain words.
func problemOf(err error) string {
	var start *sandbox.StartError
	if errors.As(err, &start) {
		return start.Problem
	}
	return err.Error()
}

func holdVersion(r record.Runtime, want string) error {
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
