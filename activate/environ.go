package activate

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/install/deps"
	"skald-connectors/manifest"
)

// passed are the variables of our own environment that every connector gets
// (format.md section 6, launcher.md section 1). Nothing else leaks through:
// a client's environment is full of other programs' tokens.
var passed = [...]string{
	"USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// passedWindows are what programs cannot start without on Windows.
var passedWindows = [...]string{"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "TEMP", "TMP", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "ProgramFiles", "ProgramData"}

// environ is an environment under construction: ordered, one value a name.
type environ struct {
	names  []string
	values map[string]string
}

func (e *environ) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environ) list() []string {
	out := make([]string, len(e.names))
	for i, n := range e.names {
		out[i] = n + "=" + e.values[n]
	}
	return out
}

// baseEnviron takes the passed variables out of ours, puts the interpreters'
// folders in front of PATH and gives the connector a home of its own.
func baseEnviron(ours []string, home string, runtimes []record.Runtime) *environ {
	e := &environ{values: map[string]string{}}
	path := ""
	for _, kv := range ours {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "":
		case name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH"):
			path = value
		case slices.Contains(passed[:], name), strings.HasPrefix(name, "LC_"):
			e.set(name, value)
		case runtime.GOOS == "windows" && containsFold(passedWindows[:], name):
			e.set(name, value)
		}
	}
	e.set("PATH", withFolders(runtimes, path))
	e.set("HOME", home)
	if runtime.GOOS == "windows" {
		e.set("USERPROFILE", home)
	}
	return e
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
}

// withFolders puts the folder of each interpreter in front, so that a
// connector started from a desktop with a poor PATH finds what it was
// activated with. Relative and empty parts are dropped: they name whatever
// folder the connector happens to be in.
func withFolders(runtimes []record.Runtime, path string) string {
	var parts []string
	add := func(dir string) {
		if filepath.IsAbs(dir) && !slices.Contains(parts, dir) {
			parts = append(parts, dir)
		}
	}
	for _, r := range runtimes {
		add(filepath.Dir(r.Path))
	}
	for _, dir := range filepath.SplitList(path) {
		add(dir)
	}
	return strings.Join(parts, string(filepath.ListSeparator))
}

// pythonDeps is where Python dependencies of a connector are (format.md
// sections 2 and 6).
const pythonDeps = ".pydeps"

// connectorEnviron builds the environment of the server and of verify:
// base ← form values ← mcp_config.env ← the key's own variable ← deliver.env ← PYTHONPATH
// (format.md section 6). It returns what a token named and nothing declared.
func connectorEnviron(base *environ, m *manifest.Manifest, v *values, dir string) (env []string, undeclared []string) {
	formValues := map[string]bool{}
	for _, f := range v.fields {
		if value, ok := v.filled[f.Name]; ok {
			base.set(f.Name, value.Reveal())
			formValues[f.Name] = true
		}
	}
	for _, kv := range m.Server.Env {
		// A literal value never replaces what the person typed under that name.
		if formValues[kv.Name] && len(manifest.Tokens(kv.Value)) == 0 {
			continue
		}
		value, unknown := manifest.Expand(kv.Value, v.lookup, manifest.Plain)
		undeclared = append(undeclared, unknown...)
		if v.folder != "" {
			value = strings.ReplaceAll(value, secretsToken, v.folder)
		}
		base.set(kv.Name, value)
	}
	if place, name := m.KeyPlace(); place == "env" {
		if key, ok := m.KeyField(); ok && !v.filled[key.Name].IsZero() {
			base.set(name, v.filled[key.Name].Reveal())
		}
	}
	v.deliver(base, m)
	if usesPython(m) {
		own := filepath.Join(dir, pythonDeps)
		if declared := base.values["PYTHONPATH"]; declared != "" {
			own += string(filepath.ListSeparator) + declared
		}
		base.set("PYTHONPATH", own)
	}
	return base.list(), undeclared
}

// usesPython tells whether Python runs the server or the verify command.
func usesPython(m *manifest.Manifest) bool {
	if isPython(m.Server.Command) || m.Verify == nil {
		return isPython(m.Server.Command)
	}
	words, err := manifest.SplitCommand(m.Verify.Command)
	return err == nil && len(words) > 0 && isPython(words[0])
}

// SecretArgumentError says that a manifest would put a secret into an argument
// list, which every user of the machine can read.
type SecretArgumentError struct{ Connector, Token string }

func (e *SecretArgumentError) Error() string {
	return fmt.Sprintf("starting %q: the token %s stands in mcp_config.args, where its value would be visible to every user of the machine", e.Connector, e.Token)
}

// secretArguments refuses a manifest that would put a secret into an argument
// list (format.md section 5).
func secretArguments(m *manifest.Manifest) error {
	for _, arg := range m.Server.Args {
		for _, t := range manifest.Tokens(arg) {
			secret := slices.ContainsFunc(m.Fields(), func(f manifest.Field) bool { return f.Name == t.Name && f.Secret })
			if t.Kind == "SECRET" || secret {
				return &SecretArgumentError{Connector: m.ID, Token: "{" + t.Kind + ":" + t.Name + "}"}
			}
		}
	}
	return nil
}

// serverArgv builds the argument list of a local server: the interpreter as it
// was found, shipped files as absolute paths, everything else verbatim
// (format.md section 3). What npx would fetch is started from where it was
// installed.
func serverArgv(t *trial) ([]string, error) {
	m, files, v, runtimes, dir := t.manifest, t.files, t.values, t.runtimes, t.dir
	if err := secretArguments(m); err != nil {
		return nil, err
	}
	argv, args := []string{commandPath(m.Server.Command, files, runtimes, dir)}, m.Server.Args
	if start := t.start(); start != nil {
		argv = []string{commandPath("node", files, runtimes, dir), filepath.Join(dir, deps.NPM.Folder(), filepath.FromSlash(start.Script))}
		args = start.Args
	}
	for _, arg := range args {
		value, _ := manifest.Expand(arg, v.lookup, manifest.Plain)
		argv = append(argv, shippedPath(value, files, dir))
	}
	return argv, nil
}

func commandPath(command string, files []manifest.File, runtimes []record.Runtime, dir string) string {
	for _, r := range runtimes {
		if r.Program == command {
			return r.Path
		}
	}
	return shippedPath(command, files, dir)
}

// shippedPath turns an argument that is a shipped file into its absolute path.
func shippedPath(arg string, files []manifest.File, dir string) string {
	if name, ok := manifest.Shipped(files, arg); ok {
		return filepath.Join(dir, filepath.FromSlash(name))
	}
	return arg
}
