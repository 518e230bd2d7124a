package main

import (
	"fmt"
	"maps"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/manifest"
)

// document is the JSON of info (docs/json.md).
func (k *about) document() map[string]any {
	doc := map[string]any{"connector": nil, "installed": k.records}
	if k.records == nil {
		doc["installed"] = []any{}
	}
	if k.entry == nil {
		return doc
	}
	e := k.entry
	files := make([]map[string]any, len(e.Files))
	for i, f := range e.Files {
		files[i] = map[string]any{"path": f.Path, "sha256": f.SHA256, "size": f.Size}
	}
	c := map[string]any{
		"id": e.ID, "name": e.Name, "description": e.Description, "type": e.Type, "scope": e.Scope,
		"version": e.Version, "version_string": e.VersionString, "released": e.ReleaseDate, "publisher": k.from, "trust": k.trust, "revoked": k.revoked,
		"homepage": e.Homepage, "requires": list(e.Requires), "tags": list(e.Tags), "files": files,
	}
	if k.manifest != nil {
		addManifest(c, k.manifest)
		c["packages"] = packagesDocument(k.packages)
	}
	notes := make([]string, len(k.diags))
	for i, d := range k.diags {
		notes[i] = d.String()
	}
	c["notes"] = notes
	doc["connector"] = c
	return doc
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func addManifest(c map[string]any, m *manifest.Manifest) {
	fields := []map[string]any{}
	for _, f := range m.Fields() {
		fields = append(fields, map[string]any{"name": f.Name, "label": f.Label, "description": f.Description,
			"required": f.Required, "secret": f.Secret, "default": f.Default, "example": f.Example, "type": f.Type})
	}
	c["fields"] = fields
	c["auth"] = map[string]any{"type": orElse(m.Auth.Type, "none"), "provider": m.Auth.Provider, "scopes": list(m.Auth.Scopes)}
	if m.Remote() {
		c["url"] = m.Server.URL
	} else {
		c["command"] = append([]string{m.Server.Command}, m.Server.Args...)
	}
	if m.Verify != nil {
		c["verify"] = map[string]any{"command": m.Verify.Command, "timeout_secs": int(m.Verify.Timeout.Seconds())}
	}
	tools := []string{}
	for _, t := range m.Tools {
		tools = append(tools, t.Name)
	}
	c["tools"] = tools
}

func sortedEnv(rec *record.Record) [][2]string {
	out := make([][2]string, 0, len(rec.Env))
	for _, name := range slices.Sorted(maps.Keys(rec.Env)) {
		out = append(out, [2]string{name, rec.Env[name]})
	}
	return out
}

// changedFiles counts what an update would change.
func changedFiles(old, new []manifest.File) string {
	was := map[string]string{}
	for _, f := range old {
		was[f.Path] = f.SHA256
	}
	added, changed := 0, 0
	for _, f := range new {
		digest, ok := was[f.Path]
		switch {
		case !ok:
			added++
		case digest != f.SHA256:
			changed++
		}
		delete(was, f.Path)
	}
	return fmt.Sprintf("%s changed, %d new, %d gone", plural(changed, "file", "files"), added, len(was))
}
