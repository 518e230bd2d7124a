package activate

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"skald-connectors/activate/record"
	"skald-connectors/install/deps"
	"skald-connectors/manifest"
)

// diffLimit bounds a file whose lines are compared; a longer one is only said to
// differ.
const diffLimit = 1 << 20

// Change is one thing that a new version has otherwise than the installed one. Kind is
// file, command, url, test, auth, scope, network, loopback, read, write, browser,
// agent, field, package or tool. Was and Now are "" where there is none; those of a
// file are its SHA-256. Every text comes from the feed: whoever shows it cleans it.
type Change struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Was  string `json:"was,omitempty"`
	Now  string `json:"now,omitempty"`
	// Wider says that it lets the connector do more than was agreed to.
	Wider bool `json:"wider"`
	// Added and Removed count lines of a text file that changed; -1 = not counted.
	Added   int `json:"lines_added,omitempty"`
	Removed int `json:"lines_removed,omitempty"`
}

// side is one version of a connector for comparison.
type side struct {
	manifest *manifest.Manifest
	files    []manifest.File
	open     func(string) (io.ReadCloser, error)
	packages []deps.Set
	auth     record.AuthRef // the index may say it in place of the manifest
	tools    []string       // that its server has, where that is known
}

// changesOf compares two versions.
func changesOf(was, now side) []Change {
	out := fileChanges(was, now)
	out = append(out, serverChanges(was, now)...)
	out = append(out, listChanges("scope", was.auth.Scopes, now.auth.Scopes, true)...)
	out = append(out, accessChanges(asked(was.manifest), asked(now.manifest))...)
	out = append(out, pairChanges("field", fieldTexts(was.manifest), fieldTexts(now.manifest))...)
	out = append(out, pairChanges("package", packageTexts(was.packages), packageTexts(now.packages))...)
	return append(out, toolChanges(was.manifest, now.manifest, was.tools)...)
}

func fileChanges(was, now side) (out []Change) {
	old := map[string]manifest.File{}
	for _, f := range was.files {
		old[f.Path] = f
	}
	for _, f := range now.files {
		before, had := old[f.Path]
		delete(old, f.Path)
		if had && before.SHA256 == f.SHA256 {
			continue
		}
		c := Change{Kind: "file", Name: f.Path, Was: before.SHA256, Now: f.SHA256}
		var text []byte
		counted := true
		if had {
			text, counted = textOf(was.open, before)
		}
		c.count(text, counted, now.open, f)
		out = append(out, c)
	}
	for _, f := range was.files {
		if _, gone := old[f.Path]; gone {
			out = append(out, Change{Kind: "file", Name: f.Path, Was: f.SHA256})
		}
	}
	return out
}

// count fills in the lines that were added and removed.
func (c *Change) count(was []byte, counted bool, open func(string) (io.ReadCloser, error), f manifest.File) {
	now, ok := textOf(open, f)
	if !counted || !ok {
		c.Added, c.Removed = -1, -1
		return
	}
	body := false
	for line := range bytes.Lines(diff.Diff("a", was, "b", now)) {
		switch {
		case bytes.HasPrefix(line, []byte("@@")):
			body = true
		case body && line[0] == '+':
			c.Added++
		case body && line[0] == '-':
			c.Removed++
		}
	}
}

// textOf reads a file whose lines can be compared.
func textOf(open func(string) (io.ReadCloser, error), f manifest.File) (text []byte, ok bool) {
	if f.Size > diffLimit {
		return nil, false
	}
	r, err := open(f.Path)
	if err != nil {
		return nil, false
	}
	defer r.Close()
	text, err = io.ReadAll(io.LimitReader(r, diffLimit+1))
	return text, err == nil && len(text) <= diffLimit && utf8.Valid(text) && bytes.IndexByte(text, 0) < 0
}

// serverChanges are those of what runs or is connected to, of the test, and of how the
// connector signs in. Another host is sent the credentials, so that is agreed to anew.
func serverChanges(from, to side) (out []Change) {
	was, now := from.manifest, to.manifest
	add := func(kind, before, after string, wider bool) {
		if before != after {
			out = append(out, Change{Kind: kind, Was: before, Now: after, Wider: wider})
		}
	}
	add("command", commandText(was), commandText(now), was.Remote() != now.Remote())
	add("url", was.Server.URL, now.Server.URL, now.Remote() && hostOf(was.Server.URL) != hostOf(now.Server.URL))
	add("test", verifyText(was), verifyText(now), false)
	add("auth", strings.TrimSpace(from.auth.Type+" "+from.auth.Provider), strings.TrimSpace(to.auth.Type+" "+to.auth.Provider), true)
	return out
}

func commandText(m *manifest.Manifest) string {
	if m.Remote() {
		return ""
	}
	return strings.Join(append([]string{m.Server.Command}, m.Server.Args...), " ")
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

func verifyText(m *manifest.Manifest) string {
	if m.Verify == nil {
		return ""
	}
	return m.Verify.Command
}

// asked is what a manifest asks for beyond its own folder, as accesses.
func asked(m *manifest.Manifest) (out []Access) {
	p := m.Permissions
	if p == nil || !p.HostsDeclared {
		out = append(out, Access{Kind: "network", Value: "all"})
	}
	if p == nil {
		return out
	}
	for kind, values := range map[string][]string{"network": p.Hosts, "read": p.Read, "write": p.Write} {
		for _, v := range values {
			out = append(out, Access{Kind: kind, Value: v})
		}
	}
	for kind, wants := range map[string]bool{"loopback": p.Loopback, "browser": p.Browser, "agent": p.Agent} {
		if wants {
			out = append(out, Access{Kind: kind})
		}
	}
	slices.SortFunc(out, func(a, b Access) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// accessChanges tells what is asked for besides as wider; a host is nothing new to a
// connector that could reach all of them.
func accessChanges(was, now []Access) (out []Change) {
	everywhere := slices.Contains(was, Access{Kind: "network", Value: "all"})
	for _, x := range now {
		if !slices.Contains(was, x) {
			out = append(out, Change{Kind: x.Kind, Now: orYes(x.Value), Wider: x.Kind != "network" || !everywhere})
		}
	}
	for _, x := range was {
		if !slices.Contains(now, x) {
			out = append(out, Change{Kind: x.Kind, Was: orYes(x.Value)})
		}
	}
	return out
}

func orYes(s string) string {
	if s == "" {
		return "yes"
	}
	return s
}

// listChanges compares two lists of names.
func listChanges(kind string, was, now []string, wider bool) (out []Change) {
	for _, s := range now {
		if !slices.Contains(was, s) {
			out = append(out, Change{Kind: kind, Now: s, Wider: wider})
		}
	}
	for _, s := range was {
		if !slices.Contains(now, s) {
			out = append(out, Change{Kind: kind, Was: s})
		}
	}
	return out
}

// pair is a name and what is said of it.
type pair struct{ name, text string }

// pairChanges compares two lists of named things.
func pairChanges(kind string, was, now []pair) (out []Change) {
	find := func(list []pair, name string) (string, bool) {
		i := slices.IndexFunc(list, func(p pair) bool { return p.name == name })
		if i < 0 {
			return "", false
		}
		return list[i].text, true
	}
	for _, p := range now {
		if before, had := find(was, p.name); !had || before != p.text {
			out = append(out, Change{Kind: kind, Name: p.name, Was: before, Now: p.text})
		}
	}
	for _, p := range was {
		if _, has := find(now, p.name); !has {
			out = append(out, Change{Kind: kind, Name: p.name, Was: p.text})
		}
	}
	return out
}

func fieldTexts(m *manifest.Manifest) (out []pair) {
	for _, f := range m.Fields() {
		text := "optional"
		if f.Required {
			text = "required"
		}
		if f.Secret {
			text += ", secret"
		}
		out = append(out, pair{f.Name, text})
	}
	return out
}

// packageTexts lists packages by ecosystem: what comes, where that is fixed, else what
// is asked for.
func packageTexts(sets []deps.Set) (out []pair) {
	for _, s := range sets {
		for _, p := range s.Packages {
			text := p.Version
			if p.Scripts {
				text += ", wants to run a script"
			}
			out = append(out, pair{string(s.Ecosystem) + " " + p.Name, text})
		}
		if len(s.Packages) > 0 {
			continue
		}
		for _, ask := range s.Asked {
			name, version, _ := strings.Cut(ask, " ")
			out = append(out, pair{string(s.Ecosystem) + " " + name, orAny(version)})
		}
	}
	return out
}

func orAny(version string) string {
	if version == "" {
		return "any version"
	}
	return version
}

// toolChanges compares the tools that the manifests announce; known are those that the
// server of the installed version has. What the new server really has is compared
// when it was started, by definitions.
func toolChanges(was, now *manifest.Manifest, known []string) (out []Change) {
	if len(now.Tools) == 0 {
		return nil
	}
	before := append(toolsOf(was), known...)
	for _, c := range listChanges("tool", before, toolsOf(now), false) {
		if c.Now != "" || slices.Contains(toolsOf(was), c.Was) {
			out = append(out, c)
		}
	}
	return out
}

func toolsOf(m *manifest.Manifest) (out []string) {
	for _, t := range m.Tools {
		out = append(out, t.Name)
	}
	return out
}

// installedSide is the version that a record names, after its files were checked.
func (a *Activator) installedSide(rec *record.Record) (side, error) {
	m, err := a.Manifest(rec)
	if err != nil {
		return side{}, err
	}
	dir := a.Store.VersionDir(rec.Ref())
	s := side{manifest: m, files: rec.Pins(), auth: rec.Auth, tools: toolNamesOf(rec.Tools), open: func(name string) (io.ReadCloser, error) {
		if !slices.ContainsFunc(rec.Files, func(f record.FilePin) bool { return f.Path == name }) {
			return nil, os.ErrNotExist
		}
		return os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	}}
	s.packages, err = deps.Load(m, s.open)
	return s, err
}
