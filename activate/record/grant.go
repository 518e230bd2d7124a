package record

import (
	"slices"

	"skald-connectors/internal/tooldef"
)

// Grant is what the user said about tools: an empty Allow allows all that Deny
// does not name.
type Grant struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Allows tells whether the user lets this tool through.
func (g Grant) Allows(tool string) bool {
	return !slices.Contains(g.Deny, tool) && (len(g.Allow) == 0 || slices.Contains(g.Allow, tool))
}

// Unknown names tools of the grant that the connector does not have: a misspelt
// --deny would otherwise protect nothing.
func (g Grant) Unknown(tools []tooldef.Tool) []string {
	var out []string
	for _, name := range slices.Concat(g.Allow, g.Deny) {
		if !slices.ContainsFunc(tools, func(t tooldef.Tool) bool { return t.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}
