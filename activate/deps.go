package activate

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/install"
	"skald-connectors/install/deps"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// defaultDepsTimeout is the limit of npm and pip when nothing else is said (issue:
// "300 s limit").
const defaultDepsTimeout = 300 * time.Second

// Dependency is one set of packages that a plan installs, and what installs it.
type Dependency struct {
	deps.Set
	Tool *deps.Tool
	Here []deps.Package // those of Set.Packages that come on this machine
}

// ScriptsHere names the packages that come and want to run something when they are installed.
func (d Dependency) ScriptsHere() []string { return deps.Set{Packages: d.Here}.Scripts() }

// packageOptions are the user's words on dependencies.
type packageOptions struct {
	allowScripts bool
	timeout      time.Duration // 0 = 300 s
	cache        string        // where downloads are, of a bundle file; "" = ask the registries
}

// readDeps reads what the connector depends on from its checked bytes, and finds what
// installs it.
func (a *Activator) readDeps(ctx context.Context, m *manifest.Manifest, open func(string) (io.ReadCloser, error), runtimes []record.Runtime) ([]Dependency, error) {
	sets, err := deps.Load(m, open)
	if err != nil {
		return nil, err
	}
	var out []Dependency
	for _, s := range sets {
		tool, err := a.findTool(ctx, m, s, runtimes)
		if err != nil {
			return nil, err
		}
		out = append(out, Dependency{Set: s, Tool: tool, Here: s.Here(tool)})
	}
	return out, nil
}

// findTool finds the interpreter that the packages are for and its installer.
func (a *Activator) findTool(ctx context.Context, m *manifest.Manifest, s deps.Set, runtimes []record.Runtime) (*deps.Tool, error) {
	program := s.Ecosystem.Runtime()
	i := slices.IndexFunc(runtimes, func(r record.Runtime) bool {
		return r.Program == program || s.Ecosystem == deps.Pip && isPython(r.Program)
	})
	var r record.Runtime
	var err error
	if i >= 0 {
		r = runtimes[i]
	} else if r, err = a.findRuntime(ctx, program, manifest.RuntimeRange(m, program)); err != nil {
		return nil, err
	}
	if err := holdVersion(r, s.Engine); err != nil {
		return nil, err
	}
	plain, err := sandbox.New(sandbox.None) // npm and pip are the user's own, asked for their settings
	if err != nil {
		return nil, err
	}
	finder := deps.Finder{Sandbox: plain, Environ: a.Environ, Base: a.toolEnviron([]record.Runtime{r}), Home: a.UserHome}
	return finder.Find(ctx, s.Ecosystem, deps.Interpreter{Path: r.Path, Version: r.Version})
}

// toolEnviron is what npm and pip are started with: made from nothing, without a value
// of any connector.
func (a *Activator) toolEnviron(runtimes []record.Runtime) []string {
	return baseEnviron(a.Environ, a.UserHome, runtimes).list()
}

// installDeps builds or reuses the trees of the plan, for the trial and its record.
func (a *Activator) installDeps(ctx context.Context, t *trial, list []Dependency, o packageOptions) error {
	t.trees, t.treeDirs, t.deps = nil, nil, nil
	for _, d := range list {
		tree, err := a.tree(ctx, t, d, o)
		if err != nil {
			return err
		}
		t.trees = append(t.trees, tree)
		t.treeDirs = append(t.treeDirs, a.Store.TreeDir(tree.Hash))
		t.deps = append(t.deps, record.DepsRef{Ecosystem: string(d.Ecosystem), Hash: tree.Hash, When: tree.When, From: d.From, Locked: tree.Locked,
			Scripts: o.allowScripts, Ran: tree.Ran, Packages: tree.Packages, Start: tree.Start, Digest: tree.Digest})
	}
	return nil
}

func (a *Activator) tree(ctx context.Context, t *trial, d Dependency, o packageOptions) (*install.Tree, error) {
	if o.timeout == 0 {
		o.timeout = defaultDepsTimeout
	}
	a.say("installing dependencies with %s %s (at most %d s)", d.Ecosystem, d.Tool.Installer, int(o.timeout.Seconds()))
	request := install.TreeRequest{
		Set: d.Set, Now: a.Now,
		Options: deps.Options{
			Sandbox: t.box, Tool: d.Tool, Timeout: o.timeout, AllowScripts: o.allowScripts, Step: a.Step, Say: a.Say,
			Base:  a.toolEnviron([]record.Runtime{{Path: d.Tool.Path}}),
			Cache: o.cache, Offline: o.cache != "",
		},
		Waiting: func(holder string) {
			a.say("waiting for another skald-connectors that installs the same packages (%s)", holder)
		},
	}
	if a.Packages != nil {
		request.Options.Progress = func(done, total int) { a.Packages(string(d.Ecosystem), done, total) }
	}
	tree, err := a.Store.Tree(ctx, request)
	if err != nil {
		return nil, err
	}
	for _, note := range tree.Notes {
		a.say("note: %s", note)
	}
	if tree.Reused {
		a.say("%s: %s, here already", d.Ecosystem, packages(len(tree.Packages)))
	} else {
		a.say("%s: %s", d.Ecosystem, packages(len(tree.Packages)))
	}
	return tree, nil
}

func packages(n int) string {
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}

// start is what is started in place of npx; nil for everything else.
func (t *trial) start() *deps.Start {
	for _, tree := range t.trees {
		if tree.Start != nil && t.manifest.Server.Command == "npx" {
			return tree.Start
		}
	}
	return nil
}

// resumeDeps makes sure that the dependencies of an installed activation are here and
// were made for the interpreter that is; else they are built again from the files that
// the record vouches for.
func (a *Activator) resumeDeps(ctx context.Context, t *trial, rec *record.Record) error {
	if len(rec.Deps) == 0 || a.adopt(t, rec) {
		return nil
	}
	dir := a.Store.VersionDir(rec.Ref())
	list, err := a.readDeps(ctx, t.manifest, func(name string) (io.ReadCloser, error) {
		if !slices.ContainsFunc(t.files, func(f manifest.File) bool { return f.Path == name }) {
			return nil, fs.ErrNotExist
		}
		return os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	}, t.runtimes)
	if err != nil {
		return err
	}
	if t.release, err = a.Store.Hold(ctx); err != nil {
		return err
	}
	a.say("the dependencies of %q are not here as they were installed; installing them again", rec.Name)
	if err := a.installDeps(ctx, t, list, packageOptions{allowScripts: rec.Deps[0].Scripts}); err != nil {
		return err
	}
	return a.Store.Relink(ctx, rec.Name, rec.Ref(), t.trees...)
}

// drop lets a sweep at what the trial held.
func (t *trial) drop() {
	if t.live != nil {
		t.live()
	}
	if t.release != nil {
		t.release()
	}
}

// adopt takes the trees that the record names; false when one is not usable.
func (a *Activator) adopt(t *trial, rec *record.Record) bool {
	var trees []*install.Tree
	var dirs []string
	for _, d := range rec.Deps {
		tree, err := a.Store.FindTree(d.Hash)
		if err != nil || !a.madeFor(tree, t.runtimes) {
			return false
		}
		if confines(modeOf(rec)) && d.Digest != "" && a.Store.CheckTree(d.Hash, d.Digest, a.Now()) != nil {
			return false
		}
		trees, dirs = append(trees, tree), append(dirs, a.Store.TreeDir(d.Hash))
	}
	t.trees, t.treeDirs, t.deps = trees, dirs, rec.Deps
	return true
}

// confines tells whether a connector under this mode cannot change its tree: without a
// sandbox Python writes its own files into it.
func confines(mode string) bool {
	return mode != string(sandbox.None) && mode != string(sandbox.Container)
}

// madeFor tells whether a tree fits the interpreter that was found: the same major
// version of node, the same minor version of Python, by which both name their binary
// interfaces. A tree for a runtime that is not among them is taken as it is.
func (a *Activator) madeFor(tree *install.Tree, runtimes []record.Runtime) bool {
	name, was, _ := strings.Cut(tree.Runtime, " ")
	for _, r := range runtimes {
		if r.Program == name || name == "python3" && isPython(r.Program) {
			return sameInterface(tree.Ecosystem, was, r.Version)
		}
	}
	return true
}

func sameInterface(e deps.Ecosystem, a, b string) bool {
	parts := 1
	if e == deps.Pip {
		parts = 2
	}
	cut := func(v string) string {
		list := strings.Split(v, ".")
		return strings.Join(list[:min(parts, len(list))], ".")
	}
	return cut(a) == cut(b)
}
