package activate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/tooldef"
	"skald-connectors/manifest"
)

const (
	toolsSchema = 1
	// toolsLimit bounds HOME/tools/NAME.json: the definitions of two versions
	// of a connector, each of at most probeLine bytes a page.
	toolsLimit = 64 << 20
)

// toolsFile holds accepted tool definitions whole, by digest. A record names
// the digests, so the file may be written before the record: definitions that
// no record names are left out at the next writing.
type toolsFile struct {
	Schema      int                        `json:"schema"`
	Definitions map[string]json.RawMessage `json:"definitions"`
}

func (a *Activator) toolsPath(name string) string {
	return filepath.Join(a.Home, "tools", name+".json")
}

// writeTools stores the definitions of the probe beside those that the present
// record still names.
func (a *Activator) writeTools(name string, now []tooldef.Tool, present *Record) error {
	file := toolsFile{Schema: toolsSchema, Definitions: map[string]json.RawMessage{}}
	if present != nil {
		old, err := a.readTools(name)
		if err != nil {
			return err
		}
		for _, t := range present.Tools {
			if def, ok := old.Definitions[t.Digest]; ok {
				file.Definitions[t.Digest] = def
			}
		}
	}
	for _, t := range now {
		file.Definitions[t.Digest] = t.Raw
	}
	data, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return fmt.Errorf("writing tools of %q: %w", name, err)
	}
	if err := atomicfile.PrivateDir(filepath.Dir(a.toolsPath(name))); err != nil {
		return fmt.Errorf("writing tools of %q: %w", name, err)
	}
	if err := atomicfile.Write(a.toolsPath(name), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing tools of %q: %w", name, err)
	}
	return nil
}

// readTools returns the stored definitions; an absent file has none.
func (a *Activator) readTools(name string) (toolsFile, error) {
	what := fmt.Sprintf("tools of %q", name)
	data, err := atomicfile.Read(a.toolsPath(name), toolsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return toolsFile{}, nil
	}
	damaged := func(err error) (toolsFile, error) {
		return toolsFile{}, &DamagedError{What: what, Path: a.toolsPath(name), Err: err}
	}
	if err != nil {
		return damaged(err)
	}
	doc, err := parseExact(data, tooldef.Depth)
	if err != nil {
		return damaged(err)
	}
	if err := checkSchema(doc, what, toolsSchema); err != nil {
		return toolsFile{}, err
	}
	var file toolsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return damaged(err)
	}
	return file, nil
}

func (a *Activator) removeTools(name string) (bool, error) {
	err := os.Remove(a.toolsPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("removing tools of %q: %w", name, err)
	}
	return true, nil
}

// toolRefs turns probed tools into what the record says of them. Titles follow
// the order of launcher.md section 3: the manifest's display name, the
// server's title, the name made readable.
func toolRefs(m *manifest.Manifest, tools []tooldef.Tool, g Grant) []ToolRef {
	out := make([]ToolRef, 0, len(tools))
	for _, t := range tools {
		ref := ToolRef{Name: t.Name, Title: t.Title, Digest: t.Digest, Granted: g.Allows(t.Name)}
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
func changedTools(accepted []ToolRef, now []tooldef.Tool) []string {
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

// toolNames lists the activations that have a file of tool definitions.
func (a *Activator) toolNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(a.Home, "tools"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the tools: %w", err)
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && manifest.ValidID(name) == nil {
			out = append(out, name)
		}
	}
	return out, nil
}

// Allows tells whether the user lets this tool through.
func (g Grant) Allows(tool string) bool {
	for _, d := range g.Deny {
		if d == tool {
			return false
		}
	}
	if len(g.Allow) == 0 {
		return true
	}
	for _, n := range g.Allow {
		if n == tool {
			return true
		}
	}
	return false
}

// unknownGrants names tools of the grant that the connector does not have: a
// misspelt --deny would otherwise protect nothing.
func unknownGrants(g Grant, tools []tooldef.Tool) []string {
	var out []string
	for _, list := range [][]string{g.Allow, g.Deny} {
		for _, name := range list {
			found := false
			for _, t := range tools {
				found = found || t.Name == name
			}
			if !found {
				out = append(out, name)
			}
		}
	}
	return out
}
