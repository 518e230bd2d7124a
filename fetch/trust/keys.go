package trust

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"skald-connectors/internal/exactjson"
)

// keysType is the type member of a keys document, and keysDepth more than the nesting of one.
const (
	keysType  = "skald.keys/v1"
	keysDepth = 4
)

// Keys says who may sign what for a marketplace. This file owns its format, keys.json.
type Keys struct {
	Version                       int64 // 0: pinned by the user, no document
	Expires                       time.Time
	Root, Index                   []Key
	RootThreshold, IndexThreshold int

	raw []byte // the document; nil for pinned keys
}

// ParseKeys reads a keys document, without judging who signed it. The error is an *Error of kind Document.
func ParseKeys(src []byte) (*Keys, error) {
	if len(src) > MaxKeysBytes {
		return nil, refuse(Document, "the keys document has more than %d bytes", MaxKeysBytes)
	}
	o, err := readObject(src, keysType, keysDepth)
	if err != nil {
		return nil, err
	}
	k := &Keys{raw: slices.Clone(src)}
	k.Version = o.integer("version", 1)
	k.Expires = o.date("expires")
	k.Root, k.RootThreshold = o.keys("root"), int(o.integer("root_threshold", 1))
	k.Index, k.IndexThreshold = o.keys("index"), int(o.integer("index_threshold", 1))
	if o.err != nil {
		return nil, o.err
	}
	return k, k.check()
}

// Pin makes the keys that a user gave: they stand for version 0, sign the index itself or the first keys document.
func Pin(keys []Key, threshold int) (*Keys, error) {
	k := &Keys{Root: keys, Index: keys, RootThreshold: threshold, IndexThreshold: threshold}
	if twice(keys) {
		return nil, refuse(Document, "a pinned key is given twice")
	}
	return k, k.checkThresholds()
}

func (k *Keys) check() error {
	if twice(slices.Concat(k.Root, k.Index)) {
		return refuse(Document, "keys document %d has a key twice; a key has one role", k.Version)
	}
	return k.checkThresholds()
}

func (k *Keys) checkThresholds() error {
	for _, role := range []struct {
		name string
		keys []Key
		want int
	}{{"root", k.Root, k.RootThreshold}, {"index", k.Index, k.IndexThreshold}} {
		switch {
		case len(role.keys) == 0 || len(role.keys) > keysMost:
			return refuse(Document, "%d %s keys; there are 1 to %d", len(role.keys), role.name, keysMost)
		case role.want < 1 || role.want > len(role.keys):
			return refuse(Document, "%d of %d %s keys are to sign", role.want, len(role.keys), role.name)
		}
	}
	return nil
}

// twice tells whether a key stands twice, whatever number it gives itself.
func twice(keys []Key) bool {
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k.bytes()] {
			return true
		}
		seen[k.bytes()] = true
	}
	return false
}

// Next judges the keys document that is to follow k: signed by k's root keys and by its own, and of the next version.
// (The first document after pinned keys may have any version: its predecessors are not needed to believe it.)
func (k *Keys) Next(doc, signatures []byte) (*Keys, error) {
	blocks, err := splitSignatures(signatures)
	if err != nil {
		return nil, err
	}
	m := message(doc)
	if n := len(m.signers(blocks, k.Root)); n < k.RootThreshold {
		return nil, refuse(Signature, "the keys document after version %d is signed by %d of the %d root keys that have to", k.Version, n, k.RootThreshold)
	}
	next, err := ParseKeys(doc)
	if err != nil {
		return nil, err
	}
	if next.Version != k.Version+1 && k.Version > 0 {
		return nil, refuse(Document, "the keys document after version %d has version %d", k.Version, next.Version)
	}
	if n := len(m.signers(blocks, next.Root)); n < next.RootThreshold {
		return nil, refuse(Signature, "keys document %d is signed by %d of its own %d root keys that have to", next.Version, n, next.RootThreshold)
	}
	return next, nil
}

// Signers judges the signatures of an index, before anything of it is parsed, and gives the keys that count.
func (k *Keys) Signers(m *Message, signatures []byte) ([]Key, error) {
	blocks, err := splitSignatures(signatures)
	if err != nil {
		return nil, err
	}
	by := m.signers(blocks, k.Index)
	if len(by) < k.IndexThreshold {
		whose, of := "pinned keys", "" // one by one
		if k.Version > 0 {
			whose, of = "index keys", fmt.Sprintf(" (keys version %d)", k.Version)
		}
		if len(by) == 0 && k.IndexThreshold == 1 {
			return nil, refuse(Signature, "none of the %s has signed it%s", whose, of)
		}
		return nil, refuse(Signature, "%d of the %s signed it, and %d have to%s", len(by), whose, k.IndexThreshold, of)
	}
	return by, nil
}

// Document is the keys document as it was signed; nil for pinned keys.
func (k *Keys) Document() []byte { return slices.Clone(k.raw) }

// object reads the members of one strict JSON object; its first fault stays.
type object struct {
	exactjson.Value
	err error
}

// readObject parses a document that has to be an object of this type, no key twice at any depth.
func readObject(src []byte, kind string, depth int) (*object, error) {
	v, repeats, err := exactjson.Parse(src, depth)
	switch {
	case err != nil:
		return nil, refuse(Document, "%v", err)
	case len(repeats) > 0:
		return nil, refuse(Document, "the member %q stands twice, or in two spellings", repeats[0].Path)
	case v.Kind != exactjson.Object:
		return nil, refuse(Document, "it is not a JSON object")
	}
	o := &object{Value: v}
	if t, _ := v.Get("type"); t.Kind != exactjson.String || t.Str != kind {
		return nil, refuse(Document, "it is of type %q, not %q", shorten(t.Str), kind)
	}
	return o, nil
}

func (o *object) fail(name, want string) {
	if o.err == nil {
		o.err = refuse(Document, "its member %q is not %s", name, want)
	}
}

// integer reads a whole number from least to numberMost.
func (o *object) integer(name string, least int64) int64 {
	v, _ := o.Get(name)
	n, err := strconv.ParseInt(v.Str, 10, 64)
	if v.Kind != exactjson.Number || err != nil || n < least || n > numberMost {
		o.fail(name, "a whole number in its range")
	}
	return n
}

func (o *object) date(name string) time.Time {
	v, _ := o.Get(name)
	t, err := time.Parse(time.RFC3339, v.Str)
	if v.Kind != exactjson.String || err != nil {
		o.fail(name, "a date such as 2026-12-31T00:00:00Z")
	}
	return t.UTC()
}

func (o *object) keys(name string) []Key {
	v, _ := o.Get(name)
	if v.Kind != exactjson.Array || len(v.Items) > keysMost {
		o.fail(name, "a list of keys")
		return nil
	}
	keys := make([]Key, len(v.Items))
	for i, item := range v.Items {
		k, err := ParseKey(item.Str)
		if item.Kind != exactjson.String || err != nil {
			o.fail(name, "a list of minisign public keys")
			return nil
		}
		keys[i] = k
	}
	return keys
}

// MarshalKeys writes the keys document that says k, as it is to be signed.
func MarshalKeys(k *Keys) ([]byte, error) {
	doc := struct {
		Type           string   `json:"type"`
		Version        int64    `json:"version"`
		Expires        string   `json:"expires"`
		Root           []string `json:"root"`
		RootThreshold  int      `json:"root_threshold"`
		Index          []string `json:"index"`
		IndexThreshold int      `json:"index_threshold"`
	}{keysType, k.Version, k.Expires.UTC().Format(time.RFC3339), texts(k.Root), k.RootThreshold, texts(k.Index), k.IndexThreshold}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	out = append(out, '\n')
	_, err = ParseKeys(out) // what nobody would accept is not written
	return out, err
}

func texts(keys []Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.String()
	}
	return out
}
