package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

const (
	// jsonDepth is far above the nesting of any package.json or lock file.
	jsonDepth = 32
	// overrideDepth bounds nested overrides.
	overrideDepth = 8
	// directLimit bounds what one connector may ask for by name.
	directLimit = 500
)

// wanted is the part of a package.json that is taken.
type wanted struct {
	deps      map[string]string // name → range
	optional  map[string]string
	peers     map[string]string
	overrides any // nil, or nested map[string]any with strings at its ends
	node      string
	notes     []string
}

// document is a JSON file under inspection.
type document struct {
	file string
	src  []byte
}

func (d document) refuse(v exactjson.Value, path, format string, args ...any) error {
	line, _ := exactjson.Position(d.src, v.Start)
	return &RefusedError{File: d.file, Line: line, Path: path, What: fmt.Sprintf(format, args...)}
}

// parse reads the file as one object without repeated keys.
func (d document) parse() (exactjson.Value, error) {
	v, repeats, err := exactjson.Parse(d.src, jsonDepth)
	var syntax *exactjson.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return v, &RefusedError{File: d.file, Line: syntax.Line, What: "it is not JSON: " + syntax.Msg}
	case err != nil:
		return v, &RefusedError{File: d.file, What: "it is not JSON"}
	case v.Kind != exactjson.Object:
		return v, d.refuse(v, "", "found %s, expected an object", v.Kind)
	}
	for _, r := range repeats {
		line, _ := exactjson.Position(d.src, r.Second)
		return v, &RefusedError{File: d.file, Line: line, What: "a key stands twice in one object, or two that differ in case only"}
	}
	return v, nil
}

// get takes a member that is there and not null.
func get(v exactjson.Value, key string) (exactjson.Value, bool) {
	m, ok := v.Get(key)
	return m, ok && m.Kind != exactjson.Null
}

// refusedMembers are parts of a package.json that mean more than a list.
var refusedMembers = []struct{ key, why string }{
	{"workspaces", "workspaces are folders of the connector that would be installed as packages"},
	{"bundleDependencies", "bundled packages are not from the registry and nothing pins them"},
	{"bundledDependencies", "bundled packages are not from the registry and nothing pins them"},
}

func readPackageJSON(src []byte) (*wanted, error) {
	d := document{packageFile, src}
	v, err := d.parse()
	if err != nil {
		return nil, err
	}
	for _, r := range refusedMembers {
		if m, ok := get(v, r.key); ok && len(m.Items)+len(m.Members) > 0 {
			return nil, d.refuse(m, r.key, "%s", r.why)
		}
	}
	w := &wanted{}
	for _, part := range []struct {
		key  string
		into *map[string]string
	}{{"dependencies", &w.deps}, {"optionalDependencies", &w.optional}, {"peerDependencies", &w.peers}} {
		if *part.into, err = d.ranges(v, part.key); err != nil {
			return nil, err
		}
	}
	for name := range w.optional {
		delete(w.deps, name) // as npm does: the optional one wins
	}
	if m, ok := get(v, "overrides"); ok {
		if w.overrides, err = d.overrides(m, "overrides", overrideDepth); err != nil {
			return nil, err
		}
	}
	if engines, ok := get(v, "engines"); ok {
		if node, ok := get(engines, "node"); ok && node.Kind == exactjson.String {
			w.node = engine("node", node.Str)
		}
	}
	if m, ok := get(v, "scripts"); ok && len(m.Members) > 0 {
		w.notes = append(w.notes, "the scripts of its package.json are not run")
	}
	return w, nil
}

// ranges reads an object of names and ranges.
func (d document) ranges(v exactjson.Value, key string) (map[string]string, error) {
	m, ok := get(v, key)
	if !ok {
		return nil, nil
	}
	if m.Kind != exactjson.Object {
		return nil, d.refuse(m, key, "found %s, expected an object", m.Kind)
	}
	if len(m.Members) > directLimit {
		return nil, d.refuse(m, key, "more than %d packages", directLimit)
	}
	out := map[string]string{}
	for _, member := range m.Members {
		if !validNPMName(member.Key) {
			return nil, d.refuse(member.Value, key, "a name that no package has")
		}
		if member.Value.Kind != exactjson.String {
			return nil, d.refuse(member.Value, key, "found %s, expected a range of versions", member.Value.Kind)
		}
		if err := validNPMRange(member.Value.Str); err != nil {
			return nil, d.refuse(member.Value, key, "%v", err)
		}
		out[member.Key] = member.Value.Str
	}
	return out, nil
}

// overrides reads npm's overrides: names, with a range or with overrides below them.
func (d document) overrides(v exactjson.Value, path string, depth int) (any, error) {
	if v.Kind == exactjson.String {
		if ref, ok := strings.CutPrefix(v.Str, "$"); ok && validNPMName(ref) || validNPMRange(v.Str) == nil {
			return v.Str, nil
		}
		return nil, d.refuse(v, path, "%v", errRange)
	}
	if v.Kind != exactjson.Object || depth == 0 {
		return nil, d.refuse(v, path, "expected names with ranges, at most %d deep", overrideDepth)
	}
	out := map[string]any{}
	for _, m := range v.Members {
		name, want := splitSpec(m.Key)
		if m.Key != "." && (!validNPMName(name) || validNPMRange(want) != nil) {
			return nil, d.refuse(m.Value, path, "a name that no package has")
		}
		below, err := d.overrides(m.Value, path, depth-1)
		if err != nil {
			return nil, err
		}
		out[m.Key] = below
	}
	return out, nil
}

func (w *wanted) empty() bool { return len(w.deps)+len(w.optional)+len(w.peers) == 0 }

// asked lists everything by name, for a person.
func (w *wanted) asked() []string {
	var out []string
	for _, part := range []map[string]string{w.deps, w.optional, w.peers} {
		for _, name := range slices.Sorted(maps.Keys(part)) {
			out = append(out, strings.TrimSpace(name+" "+part[name]))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// root is the members that a generated package.json and its lock's root share.
func (w *wanted) root() map[string]any {
	out := map[string]any{}
	for key, part := range map[string]map[string]string{"dependencies": w.deps, "optionalDependencies": w.optional, "peerDependencies": w.peers} {
		if len(part) > 0 {
			out[key] = part
		}
	}
	return out
}

// rootName is what the generated project is called. npm wants one, and it may not be
// the name of a package that is asked for.
const rootName = "skald-connector-dependencies"

func (w *wanted) marshal() []byte {
	doc := w.root()
	doc["name"], doc["version"], doc["private"] = rootName, "0.0.0", true
	if w.overrides != nil {
		doc["overrides"] = w.overrides
	}
	return marshal(doc)
}

// marshal writes a document with its keys in order, so that the same values give the
// same bytes.
func marshal(doc any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		panic(err) // strings, numbers and maps of them always encode
	}
	return b.Bytes()
}
