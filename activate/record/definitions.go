package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/tooldef"
	"skald-connectors/manifest"
)

const (
	definitionsSchema = 1
	// definitionsLimit bounds HOME/tools/NAME.json: the definitions of two versions
	// of a connector, each of at most a probed line's bytes a page.
	definitionsLimit = 64 << 20
)

// Definitions is the folder HOME/tools: for each activation the accepted tool
// definitions whole, by digest. A record names the digests, so a file may be
// written before its record: definitions that no record names are left out at
// the next writing.
type Definitions struct{ dir string }

type definitionsFile struct {
	Schema      int                        `json:"schema"`
	Definitions map[string]json.RawMessage `json:"definitions"`
}

// OpenDefinitions gives access to the definitions of a home. It does no I/O.
func OpenDefinitions(home string) Definitions { return Definitions{dir: filepath.Join(home, "tools")} }

func (d Definitions) path(name string) string { return filepath.Join(d.dir, name+".json") }

// Write stores the given definitions beside those that the present record (nil =
// none) and its previous version still name. Errors: as Read; writing.
func (d Definitions) Write(name string, now []tooldef.Tool, present *Record) error {
	file := definitionsFile{Schema: definitionsSchema, Definitions: map[string]json.RawMessage{}}
	if present != nil {
		old, err := d.Read(name)
		if err != nil {
			return err
		}
		for _, r := range present.both() {
			for _, t := range r.Tools {
				if def, ok := old[t.Digest]; ok {
					file.Definitions[t.Digest] = def
				}
			}
		}
	}
	for _, t := range now {
		file.Definitions[t.Digest] = t.Raw
	}
	data, err := json.MarshalIndent(file, "", " ")
	if err == nil {
		err = atomicfile.PrivateDir(d.dir)
	}
	if err == nil {
		err = atomicfile.Write(d.path(name), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing tools of %q: %w", name, err)
	}
	return nil
}

// Read returns the stored definitions by digest; an absent file has none. Errors:
// *DamagedError, *NewerError.
func (d Definitions) Read(name string) (map[string]json.RawMessage, error) {
	what := fmt.Sprintf("tools of %q", name)
	data, err := atomicfile.Read(d.path(name), definitionsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	damaged := func(err error) error { return &DamagedError{What: what, Path: d.path(name), Err: err} }
	if err != nil {
		return nil, damaged(err)
	}
	doc, err := parseExact(data, tooldef.Depth)
	if err != nil {
		return nil, damaged(err)
	}
	if err := checkSchema(doc, what, definitionsSchema); err != nil {
		var newer *NewerError
		if errors.As(err, &newer) {
			return nil, err
		}
		return nil, damaged(err)
	}
	var file definitionsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, damaged(err)
	}
	return file.Definitions, nil
}

// Remove takes the file away; false when there was none.
func (d Definitions) Remove(name string) (bool, error) {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("removing tools of %q: %w", name, err)
	}
	return true, nil
}

// Names lists the activations that have a file.
func (d Definitions) Names() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
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
