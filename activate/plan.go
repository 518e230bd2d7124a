package activate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/install/deps"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// Plan is what an install would do, shown before anything is downloaded or
// run. Every text in it comes from the feed: whoever shows it cleans it.
type Plan struct {
	Name        string // of the activation
	Pending     bool   // the sign-in comes later
	Brief       bool   // nothing is asked for that can stay open
	Index       *fetch.Index
	Entry       manifest.Entry
	Manifest    *manifest.Manifest
	Diagnostics []manifest.Diagnostic
	// ManifestDigest is the SHA-256 of the manifest that the plan was made from.
	ManifestDigest string

	Files int
	Bytes int64 // -1 when the index leaves out a size

	Command  []string // as it will be started, shipped files by their names
	Runtimes []record.Runtime
	// Deps is what is installed from npm and pip, with the tools that do it.
	Deps []Dependency
	// Loud says why the command needs an explicit yes of its own, "" = it does not.
	Loud     string
	Fields   []manifest.Field
	Enforced sandbox.Enforcement
	// NoClient says that its sign-in needs a client of the person's own, and none is
	// set up; nil = it does not.
	NoClient *login.NoClientError
	// Store says where secrets would go; zero when no field is secret.
	Store    keystore.Description
	Warnings []string
}

// NeedsConsent tells whether a person has to agree: the plan runs code here, or
// follows a manifest that nothing pins.
func (p *Plan) NeedsConsent() bool {
	_, pinned := p.Entry.Pin("connector.json")
	return !pinned || p.RunsHere()
}

// RunsHere tells whether anything of the connector is started on this machine.
func (p *Plan) RunsHere() bool {
	return !p.Manifest.Remote() || p.Manifest.Verify != nil
}

// UnsupportedError says that a connector needs something that this program
// does not do; installing it would leave a tool that cannot work (exit 2).
type UnsupportedError struct{ Connector, What string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("installing %q: %s", e.Connector, e.What)
}

// PlanOptions are what the user said on the command line.
type PlanOptions struct {
	NoDeps           bool   // they install dependencies by hand
	Pending          bool   // they sign in later
	Brief            bool   // they are not asked for what can stay open
	Mode             string // of the sandbox
	Grants, Withheld []Access
	Given            map[string]Given
}

// TakenError says that the activation name is in use.
type TakenError struct{ Name string }

func (e *TakenError) Error() string { return fmt.Sprintf("%q is already installed", e.Name) }

// Plan works out what installing e as name would do. It downloads only the
// manifest, which is checked against its pin, and starts only the interpreters
// it finds, to ask for their version. Errors also: *deps.RefusedError, *deps.ToolError.
func (a *Activator) Plan(ctx context.Context, m *fetch.Marketplace, ix *fetch.Index, e manifest.Entry, name string, o PlanOptions) (*Plan, error) {
	if err := manifest.ValidID(name); err != nil {
		return nil, &NameError{Name: name, Err: err}
	}
	if a.Records().Taken(name) {
		return nil, &TakenError{Name: name}
	}
	pre, err := m.Preview(ctx, ix, e, deps.FileNames()...)
	if err != nil {
		return nil, err
	}
	p := &Plan{Name: name, Pending: o.Pending, Brief: o.Brief, Index: pre.Index, Entry: pre.Entry, Manifest: pre.Manifest, Diagnostics: pre.Diagnostics, ManifestDigest: pre.ManifestDigest}
	v := newValues(p.Manifest)
	if _, err := v.take(o.Given); err != nil {
		return nil, err
	}
	if err := a.checkGrants(o.Mode, o.Grants); err != nil {
		return nil, err
	}
	if err := a.complete(ctx, p, v, pre.Open, o); err != nil {
		return nil, err
	}
	if kept, err := a.keptData(p); err != nil {
		return nil, err
	} else if kept {
		p.Warnings = append(p.Warnings, fmt.Sprintf("it finds the data that was kept when an earlier %q was uninstalled", p.Name))
	}
	return p, nil
}

// complete works out the rest of a plan from its entry and its manifest, with the
// values that are known; open gives its checked lists of packages.
func (a *Activator) complete(ctx context.Context, p *Plan, v *values, open func(string) (io.ReadCloser, error), o PlanOptions) (err error) {
	e, man := p.Entry, p.Manifest
	if err := supported(e, man); err != nil {
		return err
	}
	p.Files, p.Fields = len(e.Files), man.Fields()
	for _, f := range e.Files {
		if f.Size < 0 || p.Bytes < 0 {
			p.Bytes = -1
			continue
		}
		p.Bytes += f.Size
	}
	if err := checkScript(man, e.Files); err != nil {
		return err
	}
	if p.Runtimes, err = a.findRuntimes(ctx, man, e.Files, o.NoDeps); err != nil {
		return err
	}
	if !o.NoDeps {
		if p.Deps, err = a.readDeps(ctx, man, open, p.Runtimes); err != nil {
			return err
		}
	}
	if !man.Remote() {
		p.Command = append([]string{man.Server.Command}, man.Server.Args...)
		p.Loud = loud(man, e.Files)
	}
	if signsIn(man) {
		_, err := a.Providers().Look(man.Auth.Provider)
		p.NoClient, _ = errors.AsType[*login.NoClientError](err)
	}
	box, err := a.OpenSandbox(o.Mode)
	if err != nil {
		return err
	}
	t := &trial{manifest: man, files: e.Files, values: v, box: box, grants: o.Grants, withheld: o.Withheld}
	t.values.applyDefaults()
	label := t.values.standIn()
	p.Enforced = box.Enforced(t.policy(a))
	p.Enforced.Sentence = label(p.Enforced.Sentence)
	if signsIn(man) || slices.ContainsFunc(p.Fields, func(f manifest.Field) bool { return f.Secret }) {
		if p.Store, err = a.Keys.Describe(); err != nil {
			return err
		}
	}
	p.Warnings = warnings(p)
	if why := t.noAgent(a); why != "" {
		p.Warnings = append(p.Warnings, "it asks for your SSH agent and runs without one: "+why)
	}
	return nil
}

// NameError says that an activation name breaks the rule for ids.
type NameError struct {
	Name string
	Err  error
}

func (e *NameError) Error() string { return fmt.Sprintf("naming the activation %q: %v", e.Name, e.Err) }

// supported refuses, before anything is fetched, what could not work.
func supported(e manifest.Entry, m *manifest.Manifest) error {
	refuse := func(format string, args ...any) error {
		return &UnsupportedError{Connector: e.ID, What: fmt.Sprintf(format, args...)}
	}
	switch {
	case e.Broken != "":
		return refuse("its index entry cannot be used: %s", e.Broken)
	case m.Broken != "":
		return refuse("its manifest cannot be used: %s", m.Broken)
	case m.Type == "script":
		return refuse("the type %q is reserved for later", m.Type)
	case m.Auth.Unsupported() != "":
		return refuse("%s", m.Auth.Unsupported())
	case signsInByQR(m) && m.Remote():
		return refuse("it signs in by a QR code and runs elsewhere; its session would have no place here")
	case signsIn(m) && supportedSignIn(m) != "":
		return refuse("%s", supportedSignIn(m))
	case m.Remote() && m.Server.URL == "":
		return refuse("its manifest has no mcp_config.url")
	case !m.Remote() && m.Server.Command == "":
		return refuse("its manifest has no command to start")
	case m.Remote() && m.Server.Transport == "sse":
		return refuse("it speaks the older SSE transport, which this version of the program cannot do yet")
	case m.Server.Command != "npx" && isFetcher(m.Server.Command):
		return refuse("it is started by %s, which fetches a package at each start; with npx that is done once, at install", m.Server.Command)
	}
	return secretArguments(m)
}

// loud says what about the server's command needs a yes of its own; "" when an
// interpreter runs a shipped file.
func loud(m *manifest.Manifest, files []manifest.File) string {
	var out []string
	for _, d := range m.Concerns(files) {
		if d.Severity == manifest.Error {
			out = append(out, d.Message)
		}
	}
	return strings.Join(out, "; ")
}

// isFetcher tells the programs that download and run packages at each start.
func isFetcher(command string) bool {
	return slices.Contains([]string{"npx", "uvx", "bunx", "pnpx", "pipx", "uv", "pnpm", "yarn"}, command)
}

// warnings are what a person should know and nothing refuses: what the reader
// found odd, what is unusual about the command, what is not pinned.
func warnings(p *Plan) []string {
	var out []string
	if _, pinned := p.Entry.Pin(manifestName); !pinned {
		out = append(out, "the index does not pin its manifest: it is what the marketplace's server says it is")
	}
	for _, d := range append(p.Manifest.Concerns(p.Entry.Files), p.Diagnostics...) {
		if d.Severity == manifest.Warning || d.Severity == manifest.Error && d.File != "" && !strings.Contains(p.Loud, d.Message) {
			out = append(out, d.Message)
		}
	}
	return out
}
