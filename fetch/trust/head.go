package trust

import (
	"time"

	"skald-connectors/internal/exactjson"
)

const (
	indexType = "skald.index/v1"
	// headDepth is more than the nesting of what stands beside connectors[] in a signed index.
	headDepth = 64
	// MaxHeadBytes bounds it: the longest list of revoked versions. announceLimit bounds what is looked at of an index
	// that nobody vouches for.
	MaxHeadBytes, announceLimit = 4 << 20, 1 << 20
)

// A Head is what a signed index says of itself, beside its entries.
type Head struct {
	KeysVersion, Seq int64
	Issued, Expires  time.Time
	Prev             string // SHA-256 of the index before, lower-case hex; "" for the first one
	Revoked          []Revocation
}

// A Revocation takes a published version back. Manifest is the SHA-256 of its connector.json in lower-case hex; empty:
// whatever has this id and version.
type Revocation struct {
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	Manifest string `json:"sha256,omitempty"`
	Reason   string `json:"reason"`
}

// Covers tells whether r means the version that is named, whose manifest has this digest.
func (r Revocation) Covers(id string, version int64, manifest string) bool {
	return r.ID == id && r.Version == version && (r.Manifest == "" || r.Manifest == manifest)
}

// ParseHead reads the head of an index: the document with its connectors[] emptied. The error is an *Error of kind Document.
func ParseHead(src []byte) (*Head, error) {
	if len(src) > MaxHeadBytes {
		return nil, refuse(Document, "it has more than %d bytes beside its entries", MaxHeadBytes)
	}
	o, err := readObject(src, indexType, headDepth)
	if err != nil {
		return nil, err
	}
	h := &Head{KeysVersion: o.integer("keys_version", 0), Seq: o.integer("seq", 1), Issued: o.date("issued"), Expires: o.date("expires")}
	h.Prev = o.digest("prev", o.Value)
	h.Revoked = o.revoked()
	if o.err != nil {
		return nil, o.err
	}
	return h, nil
}

// Announces tells whether the head of an index says that it is signed. It decides nothing.
func Announces(src []byte) bool {
	if len(src) > announceLimit {
		return false
	}
	o, err := readObject(src, indexType, headDepth)
	return err == nil && o != nil
}

func (o *object) digest(name string, in exactjson.Value) string {
	v, ok := in.Get(name)
	if !ok || v.Kind == exactjson.Null || v.Kind == exactjson.String && v.Str == "" {
		return ""
	}
	if v.Kind != exactjson.String || !isDigest(v.Str) {
		o.fail(name, "a SHA-256 in lower-case hex")
	}
	return v.Str
}

func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (o *object) revoked() []Revocation {
	v, ok := o.Get("revoked")
	if !ok {
		return nil
	}
	if v.Kind != exactjson.Array || len(v.Items) > revokedMost {
		o.fail("revoked", "a list of revoked versions")
		return nil
	}
	var list []Revocation
	for _, item := range v.Items {
		one := &object{Value: item}
		id, _ := item.Get("id")
		why, _ := item.Get("reason")
		r := Revocation{ID: id.Str, Version: one.integer("version", 1), Manifest: one.digest("sha256", item), Reason: why.Str}
		if one.err != nil || r.ID == "" || id.Kind != exactjson.String {
			o.fail("revoked", "a list of revoked versions")
			return nil
		}
		list = append(list, r)
	}
	return list
}
