package deps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"skald-connectors/sandbox"
)

const (
	// askTool bounds a question to npm or pip: a cold start takes some two seconds.
	askTool = 30 * time.Second
	// askOutput holds all settings that npm knows, some 30 KiB.
	askOutput = 1 << 20
)

// What an installer has to be. npm 7 reads the lock files that fix every package;
// pip 20.3 resolves as it is documented.
const (
	npmNeeds = ">=7.0.0"
	pipNeeds = ">=20.3.0"
	// pipReports is the first pip that says what it installed.
	pipReports = ">=22.2.0"
)

// Interpreter is a runtime as it was found.
type Interpreter struct{ Path, Version string }

// Tool is an interpreter with the program that installs packages for it, and the
// person's settings of that program.
type Tool struct {
	Interpreter
	Ecosystem Ecosystem
	Installer string // version of npm or pip
	Platform  string
	Hosts     []string // "host:port" that it will talk to
	Notes     []string // what a person should know of their settings

	argv  []string        // starts the installer
	knows map[string]bool // settings that this npm has
	dir   string          // npm's own folder, "" = unknown
	npm   npmSettings
	pip   pipSettings
}

// Finder is what a Tool is looked for with. Environ is this program's own environment;
// Base is what a process of ours is started with, made from nothing.
type Finder struct {
	Sandbox       *sandbox.Sandbox
	Environ, Base []string
	Home          string // of the person
}

// Find looks for the installer of an ecosystem beside its interpreter. Errors:
// *ToolError.
func (f Finder) Find(ctx context.Context, e Ecosystem, at Interpreter) (*Tool, error) {
	t := &Tool{Ecosystem: e, Interpreter: at}
	if e == Pip {
		return t, f.findPip(ctx, t)
	}
	return t, f.findNPM(ctx, t)
}

// ask runs one question and gives its standard output; ok is false when it could not
// be asked or did not end well.
func (f Finder) ask(ctx context.Context, dir string, argv ...string) (out []byte, ok bool, err error) {
	policy := sandbox.Policy{Read: []string{dir, filepath.Dir(filepath.Dir(argv[0])), filepath.Dir(dir)}, Limits: sandbox.Limits{Wall: askTool, Stdout: askOutput}}
	res, err := f.Sandbox.Run(ctx, policy, sandbox.Command{Argv: argv, Dir: dir, Env: f.Base}, nil)
	var start *sandbox.StartError
	if errors.As(err, &start) {
		return nil, false, nil
	}
	return res.Stdout, err == nil && res.Code == 0 && res.Signal == "" && !res.StdoutCut, err
}

// npmPaths are where npm lies beside node, by the ways in which node is packaged.
func npmPaths(node, npm string) []string {
	nodeDir := filepath.Dir(node)
	list := []string{filepath.Join(nodeDir, "node_modules", "npm"), filepath.Join(nodeDir, "..", "lib", "node_modules", "npm")}
	if npm != "" {
		list = append(list, filepath.Join(filepath.Dir(npm), "node_modules", "npm"), filepath.Join(filepath.Dir(npm), "..", "lib", "node_modules", "npm"))
	}
	return list
}

// locateNPM finds npm's script, so that it runs under the node that was found and no
// shell stands between. A wrapper of unknown kind is started as it is.
func (f Finder) locateNPM(t *Tool) bool {
	path := ""
	for _, kv := range f.Base {
		if name, value, _ := strings.Cut(kv, "="); name == "PATH" {
			path = value
		}
	}
	npm, _, err := sandbox.LookPath("npm", filepath.Dir(t.Path)+string(filepath.ListSeparator)+path)
	if err != nil {
		npm = ""
	}
	if real, err := filepath.EvalSymlinks(npm); err == nil && filepath.Base(real) == "npm-cli.js" {
		t.dir, t.argv = filepath.Dir(filepath.Dir(real)), []string{t.Path, real}
		return true
	}
	for _, dir := range npmPaths(t.Path, npm) {
		cli := filepath.Join(dir, "bin", "npm-cli.js")
		if info, err := os.Stat(cli); err == nil && info.Mode().IsRegular() {
			t.dir, t.argv = dir, []string{t.Path, cli}
			return true
		}
	}
	t.argv = []string{npm}
	return npm != ""
}

func (f Finder) findNPM(ctx context.Context, t *Tool) error {
	missing := &ToolError{Program: "npm", Range: npmNeeds, Path: t.Path}
	if !f.locateNPM(t) {
		return missing
	}
	dir := filepath.Dir(t.argv[len(t.argv)-1])
	none := filepath.Join(dir, "no-such-settings")
	out, ok, err := f.ask(ctx, dir, append(t.argv, "config", "list", "-l", "--json", "--logs-max=0", "--no-update-notifier",
		"--userconfig="+none+"-of-yours", "--globalconfig="+none)...)
	if err != nil {
		return fmt.Errorf("asking npm for its version: %w", err)
	}
	var all map[string]any
	if !ok || json.Unmarshal(out, &all) != nil {
		return missing
	}
	t.Installer, _ = all["npm-version"].(string)
	own, _ := all["registry"].(string)
	if err := satisfies("npm", t.Installer, t.argv[len(t.argv)-1], npmNeeds); err != nil {
		return err
	}
	t.knows = map[string]bool{}
	for key := range all {
		t.knows[key] = true
	}
	t.Platform = runtime.GOOS + "-" + runtime.GOARCH
	t.npm = readNPMSettings(f.Environ, f.Home, t.Path, t.dir, own)
	t.Hosts, t.Notes = t.npm.hosts(), t.npm.notes
	return nil
}

// pipQuestion asks an interpreter what pip needs to be known for, without any file
// of the connector in reach (-I).
const pipQuestion = `import json, sys, sysconfig
d = {"prefix": sys.prefix, "platform": sysconfig.get_platform(), "tag": sys.implementation.cache_tag}
try:
    import pip
    d["pip"] = pip.__version__
    from pip._internal.models.index import PyPI
    d["index"] = [PyPI.simple_url, "https://" + PyPI.file_storage_domain]
except Exception:
    pass
print(json.dumps(d))`

func (f Finder) findPip(ctx context.Context, t *Tool) error {
	t.argv = []string{t.Path, "-I", "-m", "pip"}
	out, ok, err := f.ask(ctx, filepath.Dir(t.Path), t.Path, "-I", "-c", pipQuestion)
	if err != nil {
		return fmt.Errorf("asking python3 for its pip: %w", err)
	}
	var answer struct {
		Prefix, Platform, Tag, Pip string
		Index                      []string
	}
	if !ok || json.Unmarshal(out, &answer) != nil || answer.Pip == "" {
		return &ToolError{Program: "pip", Range: pipNeeds, Path: t.Path}
	}
	t.Installer, t.Platform = answer.Pip, answer.Platform+" "+answer.Tag
	if err := satisfies("pip", t.Installer, t.Path, pipNeeds); err != nil {
		return err
	}
	t.pip = readPipSettings(f.Environ, f.Home, answer.Prefix)
	var own []string
	for _, address := range answer.Index {
		own = append(own, hostPort(address))
	}
	t.Hosts, t.Notes = t.pip.hosts(own), t.pip.notes
	return nil
}

func satisfies(program, version, path, want string) error {
	if !within(version, want) {
		return &ToolError{Program: program, Range: want, Found: or(version, "of an unknown version"), Path: path}
	}
	return nil
}

// within holds a version against a range; a pre-release counts as its release, since
// distributions number their builds so.
func within(version, want string) bool {
	v, err := semver.NewVersion(strings.TrimSpace(version))
	if err != nil {
		return false
	}
	c, err := semver.NewConstraint(want)
	if err != nil {
		return false
	}
	core := semver.New(v.Major(), v.Minor(), v.Patch(), "", "")
	return c.Check(core)
}
