package activate

import (
	"maps"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/internal/tooldef"
	"skald-connectors/manifest"
)

// toolRefs turns probed tools into what the record says of them. Titles follow
// the order of launcher.md section 3: the manifest's display name, the
// server's title, the name made readable.
func toolRefs(m *manifest.Manifest, tools []tooldef.Tool, g record.Grant) []record.ToolRef {
	out := make([]record.ToolRef, 0, len(tools))
	for _, t := range tools {
		ref := record.ToolRef{Name: t.Name, Title: t.Title, Digest: t.Digest, Granted: g.Allows(t.Name)}
		for _, named := range m.Tools {
			if named.Name == t.Name && named.DisplayName != "" {
				ref.Title = named.DisplayName
			}
		}
		if ref.Title == "" {
			ref.Title = tooldef.Pretty(t.Name)
		}
		out = append(out, ref)
	}
	return out
}

// changedTools names the tools whose definitions are not the accepted ones: new,
// changed and gone.
func changedTools(accepted []record.ToolRef, now []tooldef.Tool) []string {
	was := map[string]string{}
	for _, t := range accepted {
		was[t.Name] = t.Digest
	}
	var out []string
	for _, t := range now {
		if was[t.Name] != t.Digest {
			out = append(out, t.Name)
		}
		delete(was, t.Name)
	}
	return append(out, slices.Sorted(maps.Keys(was))...)
}
