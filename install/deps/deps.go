// Package deps reads what a connector depends on and fills one folder with it
// (format.md sections 3 and 6; security.md 3.2, H23 to H25).
//
// Its law:
//   - What a connector ships is data. Its lists and lock files are parsed here and
//     written anew from the parsed values; no line of them reaches npm or pip as it
//     was shipped. What has no place in the grammar is refused with its place and
//     never with its content.
//   - npm and pip are started through package sandbox, in a folder of our own, with
//     an environment that was built from nothing and no secret of a connector.
//   - The person's npm and pip settings are read here, outside the sandbox, and never
//     written. Of them, only registries, their credentials, certificate authorities,
//     proxies and limits on age are passed on; a registry's credential goes to npm in
//     a private file that is removed afterwards, and to nobody else.
//   - No code of a package runs, unless the person allowed install scripts; then it
//     runs after the downloads, without any credential.
//
// It never chooses where a tree is kept, never decides that it may be used, and never
// opens a connection itself.
package deps

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"skald-connectors/manifest"
)

// Ecosystem is where packages come from.
type Ecosystem string

const (
	NPM Ecosystem = "npm"
	Pip Ecosystem = "pip"
)

// Folder is the name under which a connector finds the packages in its own folder
// (format.md section 2 keeps shipped files out of both).
func (e Ecosystem) Folder() string {
	if e == Pip {
		return ".pydeps"
	}
	return "node_modules"
}

// Runtime is the interpreter that the packages are for.
func (e Ecosystem) Runtime() string {
	if e == Pip {
		return "python3"
	}
	return "node"
}

// Names of the files that are read.
const (
	packageFile    = "package.json"
	lockFile       = "package-lock.json"
	shrinkwrapFile = "npm-shrinkwrap.json"
	requiredFile   = "requirements.txt"
)

// FileNames are the shipped files that say what a connector depends on.
func FileNames() []string { return []string{packageFile, lockFile, shrinkwrapFile, requiredFile} }

// Input is what a connector says about its dependencies.
type Input struct {
	Files   map[string][]byte // those of FileNames that it ships, checked bytes
	Listed  []string          // dependencies[] of its manifest
	Command string            // of its server
	Args    []string
}

// Package is one package with what fixes its bytes.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Integrity is "sha512-<base64>" from npm, "sha256:<hex>" from pip; "" where
	// only the registry knows.
	Integrity string `json:"integrity,omitempty"`
	// Scripts tells that it has a script which wants to run when it is installed.
	Scripts bool `json:"scripts,omitempty"`
}

// Start says how a connector is started from its packages in place of npx.
type Start struct {
	Package string   `json:"package"`
	Bin     string   `json:"bin,omitempty"` // the command of the package, "" = its only one
	Args    []string `json:"args,omitempty"`
	// Script is the file to start, slash-separated, below the folder of the
	// packages. It is known after the build.
	Script string `json:"script,omitempty"`
}

// Set is what has to be installed from one ecosystem. It comes from Read.
type Set struct {
	Ecosystem Ecosystem
	From      string    // what it was read from, in words
	Asked     []string  // "name range" as the connector asks, sorted
	Packages  []Package // everything that comes, where a lock or a list fixes it
	Locked    bool      // each byte that comes is fixed by what was read
	Why       string    // why it is not locked
	Engine    string    // semver range of the runtime, "" = any
	Notes     []string  // what a person should know
	Start     *Start    // for npx

	files map[string][]byte // what npm or pip is given
	lock  *lock             // where npm has one that fits; else nil
}

// Scripts names the packages that want to run something when they are installed.
func (s Set) Scripts() []string {
	var out []string
	for _, p := range s.Packages {
		if p.Scripts {
			out = append(out, p.Name+"@"+p.Version)
		}
	}
	return out
}

// Key names the tree that the set gives with these tools: 64 hex digits over
// everything that its content hangs on.
func (s Set) Key(t *Tool, allowScripts bool) string {
	h := sha256.New()
	fmt.Fprintf(h, "skald dependencies 1\n%s\n%s %s\n%s\nscripts %t\n", s.Ecosystem, s.Ecosystem.Runtime(), t.Version, t.Platform, allowScripts)
	if s.Start != nil {
		fmt.Fprintf(h, "start %q %q\n", s.Start.Package, s.Start.Bin)
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(h, "%s %d\n%s\n", name, len(s.files[name]), s.files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Read works out what a connector depends on; nothing gives no set. The error is a
// *RefusedError.
func Read(in Input) ([]Set, error) {
	var sets []Set
	npm, err := readNPM(in)
	if err != nil {
		return nil, err
	}
	if npm != nil {
		sets = append(sets, *npm)
	}
	pip, err := readPip(in)
	if err != nil {
		return nil, err
	}
	if pip != nil {
		sets = append(sets, *pip)
	}
	if len(sets) == 0 && len(in.Listed) > 0 {
		return nil, &RefusedError{File: "connector.json", What: "it lists dependencies and its command is neither node nor python3, so nothing says what installs them"}
	}
	return sets, nil
}

// Load is Read on what a manifest and the shipped files say. open gives the checked
// bytes of a shipped file, or an fs.ErrNotExist.
func Load(m *manifest.Manifest, open func(path string) (io.ReadCloser, error)) ([]Set, error) {
	remote := m.Remote()
	if remote && m.Verify == nil {
		return nil, nil // nothing of it runs here
	}
	in := Input{Files: map[string][]byte{}, Command: m.Server.Command, Args: m.Server.Args}
	if !remote {
		in.Listed = m.Dependencies
	}
	for _, name := range FileNames() {
		data, err := readShipped(open, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the dependencies of %q: %w", m.ID, err)
		}
		in.Files[name] = data
	}
	return Read(in)
}

func readShipped(open func(string) (io.ReadCloser, error), name string) ([]byte, error) {
	r, err := open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, manifest.MaxFileBytes+1))
}

// base is a command without folder and ending.
func base(command string) string {
	if i := strings.LastIndexAny(command, `/\`); i >= 0 {
		command = command[i+1:]
	}
	return strings.TrimSuffix(command, ".exe")
}

// engine reads a runtime's range the way the manifest's own are read.
func engine(runtime, want string) string {
	return manifest.RuntimeRange(&manifest.Manifest{Engines: map[string]string{runtime: want}}, runtime)
}

func sortPackages(list []Package) {
	slices.SortFunc(list, func(a, b Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
}
