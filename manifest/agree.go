package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Agree holds a manifest to its index entry. A contradiction in id, type, scope
// or version is a *DisagreeError; one in the other shared fields is a
// Diagnostic. What the manifest leaves out is taken from the index and filled
// into m: id, name, scope, version, auth, tools; a silent type is local code,
// here as everywhere. A script of verify that the index does not pin is named.
func Agree(e Entry, m *Manifest) ([]Diagnostic, error) {
	a := &agreement{entry: e}
	if err := a.identity(m); err != nil {
		return nil, err
	}
	a.fill(m)
	a.differs("name", e.Name, m.Name)
	a.differsList("tags", e.Tags, m.Tags)
	a.differsList("requires", e.Requires, m.Requires)
	a.differs("version_string", e.VersionString, m.VersionString)
	a.differs("version_release_date", e.ReleaseDate, m.ReleaseDate)
	if e.Auth != nil && !reflect.DeepEqual(normalAuth(*e.Auth), normalAuth(m.Auth)) {
		a.say(Warning, "auth-differs", "auth", "the index and the manifest differ; the manifest counts")
	}
	if len(e.Tools) > 0 && !slices.Equal(e.Tools, m.Tools) {
		a.say(Info, "tools-differ", "tools", "the index and the manifest differ; the manifest counts")
	}
	a.verifyScript(m)
	return a.diags, nil
}

type agreement struct {
	entry Entry
	diags []Diagnostic
}

func (a *agreement) say(s Severity, rule, path, format string, args ...any) {
	a.diags = append(a.diags, Diagnostic{File: "connector.json", Path: path, Severity: s, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// identity compares what both documents state.
func (a *agreement) identity(m *Manifest) error {
	e := a.entry
	for _, f := range []struct {
		field, index, manifest string
		stated                 bool
	}{
		{"id", e.ID, m.ID, m.ID != ""},
		{"type", e.Type, m.Type, m.Type != ""},
		{"scope", e.Scope, m.Scope, m.given.scope},
	} {
		if f.stated && f.index != f.manifest {
			return &DisagreeError{Connector: e.ID, Field: f.field, Index: f.index, Manifest: f.manifest}
		}
	}
	switch {
	case e.Version == m.Version:
	case e.Version != 0 && m.Version != 0:
		return &DisagreeError{Connector: e.ID, Field: "version",
			Index: strconv.FormatInt(int64(e.Version), 10), Manifest: strconv.FormatInt(int64(m.Version), 10)}
	case m.Version == 0:
		a.say(Warning, "version-differs", "version", "the manifest has no version that can be read; the index says %d", e.Version)
	default:
		a.say(Warning, "version-differs", "version", "the index has no version that can be read; the manifest says %d", m.Version)
	}
	return nil
}

func (a *agreement) fill(m *Manifest) {
	e := a.entry
	if m.ID == "" {
		m.ID = e.ID
	}
	if m.Name == "" {
		m.Name = e.Name
	}
	if m.Type == "" { // of a manifest that was not parsed; a parsed one that is silent is local
		m.Type = e.Type
	}
	if !m.given.scope {
		m.Scope = e.Scope
	}
	if m.Version == 0 {
		m.Version = e.Version
	}
	if m.VersionString == "" && m.Version == e.Version { // of another version it would be a wrong word
		m.VersionString = e.VersionString
	}
	if m.ReleaseDate == "" && m.Version == e.Version {
		m.ReleaseDate = e.ReleaseDate
	}
	if !m.given.auth && e.Auth != nil {
		m.Auth = *e.Auth
		m.normalizeTokens()
	}
	if !m.given.tools {
		m.Tools = e.Tools
	}
}

func (a *agreement) differs(field, index, manifest string) {
	if index != manifest && manifest != "" && index != "" {
		a.say(Warning, strings.ReplaceAll(field, "_", "-")+"-differs", field, "%s: the index says %q, the manifest says %q", field, index, manifest)
	}
}

func (a *agreement) differsList(field string, index, manifest []string) {
	if !slices.Equal(slices.Sorted(slices.Values(index)), slices.Sorted(slices.Values(manifest))) {
		a.say(Warning, field+"-differs", field, "%s: the index says %s, the manifest says %s", field, words(index), words(manifest))
	}
}

// words is a list as a person reads it.
func words(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q", list)
}

// normalAuth makes two ways to write the same compare equal.
func normalAuth(a Auth) Auth {
	a.Scopes = slices.Sorted(slices.Values(a.Scopes))
	return a
}

// scriptEndings are those of files that an interpreter runs.
var scriptEndings = [...]string{".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl"}

func (a *agreement) verifyScript(m *Manifest) {
	if m.Verify == nil || len(a.entry.Files) == 0 {
		return
	}
	for _, word := range strings.FieldsFunc(m.Verify.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|<>()\"'", r) }) {
		word = strings.TrimPrefix(word, "./")
		isScript := slices.ContainsFunc(scriptEndings[:], func(end string) bool { return strings.HasSuffix(word, end) })
		if _, pinned := a.entry.Pin(word); isScript && !pinned && ValidPath(word) == nil {
			a.say(Error, "verify-script-unpinned", "verify.command", "it names %q, which the index does not pin", word)
		}
	}
}
