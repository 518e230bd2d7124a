package activate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"skald-connectors/fetch"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// Plan is what an install would do, shown before anything is downloaded or
// run. Every text in it comes from the feed: whoever shows it cleans it.
type Plan struct {
	Name        string // of the activation
	Index       *fetch.Index
	Entry       manifest.Entry
	Manifest    *manifest.Manifest
	Diagnostics []manifest.Diagnostic

	Files int
	Bytes int64 // -1 when the index leaves out a size

	Command  []string // as it will be started, shipped files by their names
	Runtimes []Runtime
	// Loud says why the command needs an explicit yes of its own, "" = it does not.
	Loud     string
	Fields   []manifest.Field
	Enforced sandbox.Enforcement
	// Store says where secrets would go; zero when no field is secret.
	Store    keystore.Description
	Warnings []string
}

// NeedsConsent tells whether a person has to agree: the plan runs code here, or
// follows a manifest that nothing pins.
func (p *Plan) NeedsConsent() bool {
	_, pinned := p.Entry.Pin("connector.json")
	return !pinned || p.Manifest.Type != "mcp_remote" || p.Manifest.Verify != nil
}

// UnsupportedError says that a connector needs something that this program
// does not do; installing it would leave a tool that cannot work (exit 2).
type UnsupportedError struct {
	Connector, What string
	Dependencies    bool // that is what it needs, and the user may have installed them
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("installing %q: %s", e.Connector, e.What)
}

// TakenError says that the activation name is in use.
type TakenError struct{ Name string }

func (e *TakenError) Error() string { return fmt.Sprintf("%q is already installed", e.Name) }

// Plan works out what installing e as name would do. It downloads only the
// manifest, which is checked against its pin, and starts only the interpreters
// it finds, to ask for their version. noDeps says that the user installs
// dependencies by hand.
func (a *Activator) Plan(ctx context.Context, m *fetch.Marketplace, ix *fetch.Index, e manifest.Entry, name string, noDeps bool) (*Plan, error) {
	if err := manifest.ValidID(name); err != nil {
		return nil, &NameError{Name: name, Err: err}
	}
	if a.Records().Taken(name) {
		return nil, &TakenError{Name: name}
	}
	pre, err := m.Preview(ctx, ix, e)
	if err != nil {
		return nil, err
	}
	e, man := pre.Entry, pre.Manifest
	if err := supported(e, man, noDeps); err != nil {
		return nil, err
	}
	p := &Plan{Name: name, Index: pre.Index, Entry: e, Manifest: man, Diagnostics: pre.Diagnostics, Files: len(e.Files), Fields: man.Fields()}
	for _, f := range e.Files {
		if f.Size < 0 || p.Bytes < 0 {
			p.Bytes = -1
			continue
		}
		p.Bytes += f.Size
	}
	if err := checkScript(man, e.Files); err != nil {
		return nil, err
	}
	if err := secretArgument(man, newValues(man)); err != nil && man.Type != "mcp_remote" {
		return nil, err
	}
	if p.Runtimes, err = a.findRuntimes(ctx, man, e.Files); err != nil {
		return nil, err
	}
	if man.Type != "mcp_remote" {
		p.Command = append([]string{man.Server.Command}, man.Server.Args...)
		p.Loud = loud(man, e.Files)
	}
	t := &trial{manifest: man, files: e.Files, values: newValues(man)}
	p.Enforced = a.Sandbox.Enforced(t.policy())
	if slices.ContainsFunc(p.Fields, func(f manifest.Field) bool { return f.Secret }) {
		if p.Store, err = a.Keys.Describe(); err != nil {
			return nil, err
		}
	}
	p.Warnings = warnings(e, man)
	return p, nil
}

// NameError says that an activation name breaks the rule for ids.
type NameError struct {
	Name string
	Err  error
}

func (e *NameError) Error() string { return fmt.Sprintf("naming the activation %q: %v", e.Name, e.Err) }

// supported refuses, before anything is fetched, what could not work.
func supported(e manifest.Entry, m *manifest.Manifest, noDeps bool) error {
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
	case m.Auth.Type == "oauth2" || m.Auth.Type == "qr":
		return refuse("it signs in by %s, which this version of the program cannot do yet", m.Auth.Type)
	case m.Type == "mcp_remote" && m.Server.URL == "":
		return refuse("its manifest has no mcp_config.url")
	case m.Type != "mcp_remote" && m.Server.Command == "":
		return refuse("its manifest has no command to start")
	case slices.Contains([]string{"npx", "uvx"}, m.Server.Command):
		return refuse("it is started by %s from a package registry, which this version of the program cannot do yet", m.Server.Command)
	}
	if noDeps {
		return nil
	}
	for _, f := range e.Files {
		if f.Path == "package.json" || f.Path == "requirements.txt" {
			return refuseDeps(e.ID, f.Path)
		}
	}
	if len(m.Dependencies) > 0 {
		return refuseDeps(e.ID, strings.Join(m.Dependencies, ", "))
	}
	return nil
}

func refuseDeps(id, what string) error {
	return &UnsupportedError{Connector: id, What: fmt.Sprintf("it needs dependencies (%s), which this version of the program cannot install yet", what), Dependencies: true}
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

// warnings are what a person should know and nothing refuses.
func warnings(e manifest.Entry, m *manifest.Manifest) []string {
	var out []string
	for _, d := range m.Concerns(e.Files) {
		if d.Severity != manifest.Error {
			out = append(out, d.Message)
		}
	}
	for _, kv := range m.Server.Env {
		if err := manifest.ValidEnvName(kv.Name); err != nil {
			out = append(out, fmt.Sprintf("it sets the variable %s, which steers how programs start", kv.Name))
		}
	}
	if m.Verify != nil {
		for _, t := range manifest.Tokens(m.Verify.Command) {
			if t.Kind == "SECRET" {
				out = append(out, fmt.Sprintf("its verify command hands %s to a tool as an argument, which other users of this machine can see while it runs", t.Name))
			}
		}
	}
	for _, text := range []string{m.Server.URL, strings.Join(m.Server.Args, " ")} {
		for _, t := range manifest.Tokens(text) {
			if t.Deprecated {
				out = append(out, fmt.Sprintf("it uses the deprecated token %q, which is not filled in", text[t.Start:t.End]))
			}
		}
	}
	if e.Version == 0 {
		out = append(out, "its version is unknown, so updates of it cannot be told")
	}
	if len(e.Files) == 0 {
		out = append(out, "the index pins no files for it")
	}
	return out
}
