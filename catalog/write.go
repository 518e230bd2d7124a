package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

// entryOrder is the order of an entry's known members in connectors.json. Others follow in the order of the fragment,
// and files[] is last. Their bytes are the author's; only white space between them changes.
var entryOrder = []string{"id", "name", "type", "scope", "icon_small", "icon_large", "user_description", "requires", "tags", "auth", "tools",
	"homepage", "folder", "version", "version_string", "version_release_date"}

// compileEntry writes the compact index entry of a connector. A version of 0 leaves the author's spelling.
func compileEntry(c *connector, version manifest.Version) []byte {
	o := newObject()
	for _, key := range entryOrder {
		v, ok := c.fragment.Get(key)
		switch {
		case key == "folder":
			o.member(key, quoted(c.folder))
		case !ok || v.Kind == exactjson.Null: // null is absent
		case key == "version" && version > 0:
			o.member(key, strconv.AppendInt(nil, int64(version), 10))
		default:
			o.member(key, c.source[v.Start:v.End])
		}
	}
	for _, m := range c.fragment.Members {
		if !slices.Contains(entryOrder, m.Key) && m.Key != "files" {
			o.member(m.Key, c.source[m.Value.Start:m.Value.End])
		}
	}
	o.member("files", compileFiles(c.files))
	return o.end()
}

func compileFiles(files []*file) []byte {
	var list bytes.Buffer
	list.WriteByte('[')
	for i, f := range files {
		if i > 0 {
			list.WriteByte(',')
		}
		o := newObject()
		o.member("path", quoted(f.pin.Path))
		o.member("sha256", quoted(f.pin.SHA256))
		o.member("size", strconv.AppendInt(nil, f.pin.Size, 10))
		list.Write(o.end())
	}
	list.WriteByte(']')
	return list.Bytes()
}

// compile puts the index together. Members of the previous index's top level keep their place and their bytes.
func (b *build) compile() error {
	var list bytes.Buffer
	list.WriteByte('[')
	for _, c := range b.connectors {
		if c.entry == nil {
			return nil // refused already, with its reason
		}
		if list.Len() > 1 {
			list.WriteByte(',')
		}
		list.Write(c.entry)
	}
	list.WriteByte(']')

	o := newObject()
	var kept []exactjson.Member
	if b.previous != nil {
		v, _, err := exactjson.Parse(b.previousBytes, maxDepth)
		if err != nil {
			return fmt.Errorf("reading the previous index: %w", err)
		}
		kept = v.Members
	}
	for _, key := range []string{"version", "connectors"} {
		if !slices.ContainsFunc(kept, func(m exactjson.Member) bool { return m.Key == key }) {
			kept = append(kept, exactjson.Member{Key: key})
		}
	}
	for _, m := range kept {
		switch m.Key {
		case "version":
			o.member(m.Key, []byte("1"))
		case "connectors":
			o.member(m.Key, list.Bytes())
		default:
			o.member(m.Key, b.previousBytes[m.Value.Start:m.Value.End])
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, o.end(), "", "  "); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	out.WriteByte('\n')
	b.compiled = out.Bytes()
	b.checkCompiled()
	return nil
}

// checkCompiled reads what was written the way everyone else does. It finds what no single entry shows, such as two
// connectors in one case-folded name, and bounds the size.
func (b *build) checkCompiled() {
	if len(b.compiled) > manifest.MaxIndexBytes {
		b.add(indexName, "index-too-large", "the index has %d bytes, more than %d", len(b.compiled), manifest.MaxIndexBytes)
		return
	}
	ix, _, err := manifest.ParseIndex(b.compiled, false)
	if err != nil {
		b.add(indexName, "index-unreadable", "%v", err)
		return
	}
	for i, e := range ix.Entries {
		if c := b.connectors[i]; e.Broken != "" && !slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Severity == manifest.Error }) {
			c.add(manifest.Error, fragmentName, "entry-broken", "%s", e.Broken)
		}
	}
}

// object writes one compact JSON object.
type object struct{ bytes.Buffer }

func newObject() *object {
	o := &object{}
	o.WriteByte('{')
	return o
}

func (o *object) member(key string, value []byte) {
	if o.Len() > 1 {
		o.WriteByte(',')
	}
	o.Write(quoted(key))
	o.WriteByte(':')
	o.Write(value)
}

func (o *object) end() []byte {
	o.WriteByte('}')
	return o.Bytes()
}

// quoted is a JSON string in which <, > and & stand as they are.
func quoted(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return []byte(`""`)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
