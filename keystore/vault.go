package keystore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/exactjson"
)

// The plaintext of a vault file is one JSON object:
//
//	{"format":1,"name":"gmail","generation":3,"counter":17,"handles":[
//	  {"name":"TOKEN","value":"<base64>","secret":true,"expires_at":"2027-01-01T00:00:00Z"}]}
//
// name, generation and counter stand inside the ciphertext, so a file that was
// put in the place of another, or back in its own, is told. Values are
// base64, so every byte survives. Members that are not known are kept.

// vaultFormat is the newest format of a vault's plaintext that we know.
const vaultFormat = 1

// maxJSONDepth is more than our own documents ever have; members kept for newer versions may
// be deeper than ours.
const maxJSONDepth = 32

type fields = map[string]json.RawMessage

type vault struct {
	name    string
	gen     int64
	counter int64 // rises with every write of this file
	handles []Handle
	extra   fields            // members that a newer version wrote
	extraOf map[string]fields // the same, by handle
}

// vaultID names a vault file in messages and in the counters.
func vaultID(name string, gen int64) string { return name + "." + strconv.FormatInt(gen, 10) }

var errVault = errors.New("its content is not a vault") // parse errors could quote a value

// parseVault reads the plaintext of a vault. Its errors quote no content.
func parseVault(src []byte) (*vault, error) {
	top, err := parseObject(src)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(top, vaultFormat); err != nil {
		return nil, err
	}
	v := &vault{extraOf: map[string]fields{}}
	var list []fields
	for _, m := range []member{{"name", &v.name}, {"generation", &v.gen}, {"counter", &v.counter}, {"handles", &list}} {
		if err := m.take(top); err != nil {
			return nil, errVault
		}
	}
	if v.extra = top; hasTwin(top, "format", "name", "generation", "counter", "handles") {
		return nil, errVault
	}
	for _, one := range list {
		h, err := parseHandle(one)
		if err != nil {
			return nil, errVault
		}
		v.handles = append(v.handles, h)
		v.extraOf[h.Name] = one
	}
	if checkActivation(v.name) != nil || v.gen < 1 || v.counter < 1 || checkHandles(v.handles) != nil {
		return nil, errVault
	}
	return v, nil
}

// parseHandle takes the known members out of one.
func parseHandle(one fields) (Handle, error) {
	var h Handle
	var value []byte
	var expires string
	err := errors.Join(member{"name", &h.Name}.take(one), member{"value", &value}.take(one), member{"secret", &h.Secret}.take(one))
	if _, has := one["expires_at"]; has && err == nil {
		if err = (member{"expires_at", &expires}).take(one); err == nil {
			if h.ExpiresAt, err = time.Parse(time.RFC3339Nano, expires); err == nil && !strings.HasSuffix(expires, "Z") {
				err = errVault
			}
		}
	}
	if hasTwin(one, "name", "value", "secret", "expires_at") {
		err = errVault
	}
	h.Value = NewSecret(string(value))
	return h, err
}

// plaintext is the reverse of parseVault.
func (v *vault) plaintext() ([]byte, error) {
	list := make([]map[string]any, 0, len(v.handles))
	for _, h := range v.handles {
		one := withExtra(v.extraOf[h.Name])
		one["name"], one["value"], one["secret"] = h.Name, []byte(h.Value.Reveal()), h.Secret
		if !h.ExpiresAt.IsZero() {
			one["expires_at"] = h.ExpiresAt.UTC().Format(time.RFC3339Nano)
		}
		list = append(list, one)
	}
	top := withExtra(v.extra)
	top["format"], top["name"], top["generation"], top["counter"], top["handles"] = vaultFormat, v.name, v.gen, v.counter, list
	return json.Marshal(top)
}

func sameHandles(a, b []Handle) bool {
	return slices.EqualFunc(a, b, func(x, y Handle) bool {
		return x.Name == y.Name && x.Secret == y.Secret && x.ExpiresAt.Equal(y.ExpiresAt) && x.Value.Equal(y.Value)
	})
}

// parseObject reads one JSON object of ours exactly: no repeated keys, no
// trailing data.
func parseObject(src []byte) (fields, error) {
	root, repeats, err := exactjson.Parse(src, maxJSONDepth)
	if err != nil || len(repeats) > 0 || root.Kind != exactjson.Object {
		return nil, errVault
	}
	var top fields
	if err := json.Unmarshal(src[root.Start:root.End], &top); err != nil {
		return nil, errVault
	}
	return top, nil
}

// checkFormat takes the format number out of top and judges it.
func checkFormat(top fields, newest int) error {
	var format int
	if err := (member{"format", &format}).take(top); err != nil || format < 1 {
		return errVault
	}
	if format > newest {
		return &newerError{format}
	}
	return nil
}

type newerError struct{ format int }

func (e *newerError) Error() string { return fmt.Sprintf("format %d", e.format) }

// member names one JSON member and where its value goes.
type member struct {
	name string
	to   any
}

// take decodes the member and removes it from the object.
func (m member) take(from fields) error {
	raw, ok := from[m.name]
	if !ok || string(raw) == "null" {
		return errVault
	}
	delete(from, m.name)
	return json.Unmarshal(raw, m.to)
}

// hasTwin reports a member that is kept for a newer version but differs from a
// known one by case only: no reader could tell which of them counts.
func hasTwin(extra fields, known ...string) bool {
	for name := range extra {
		if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return true
		}
	}
	return false
}

func withExtra(extra fields) map[string]any {
	out := make(map[string]any, len(extra)+8)
	for k, v := range extra {
		out[k] = v
	}
	return out
}
