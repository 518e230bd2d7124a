// Package tooldef gives an MCP tool definition the digest that is accepted at
// install and held against later answers: SHA-256 over the canonical JSON
// (RFC 8785) of its name, title, description, inputSchema, outputSchema and
// annotations (launcher.md section 2). It decides nothing itself and does no
// I/O.
//
// Definitions are read with the exact reader: a definition with a repeated key
// or a case twin has no digest, because two clients could read it differently.
package tooldef

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"skald-connectors/internal/exactjson"
)

// members are the parts of a definition that a model or a client acts upon.
// Others (such as _meta and icons) may change without asking again.
var members = [...]string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// Depth bounds the nesting of a definition: schemas of real tools stay under
// 20, and the launcher refuses messages deeper than this.
const Depth = 512

// Tool is one definition of a tools/list reply.
type Tool struct {
	Name   string
	Title  string // "" when the definition has none
	Digest string // 64 lower-case hex digits
	Raw    []byte // the definition as it was received
}

// Parse reads one definition, a JSON object. The error says what keeps it from
// being pinned: not an object, no name, a repeated key, a case twin.
func Parse(raw []byte) (Tool, error) {
	doc, repeats, err := exactjson.Parse(raw, Depth)
	switch {
	case err != nil:
		return Tool{}, err
	case doc.Kind != exactjson.Object:
		return Tool{}, fmt.Errorf("a tool definition is not an object")
	}
	name, ok := doc.Get("name")
	if !ok || name.Kind != exactjson.String || name.Str == "" {
		return Tool{}, fmt.Errorf("a tool definition has no name")
	}
	if len(repeats) > 0 {
		return Tool{}, fmt.Errorf("tool %q: the key %q occurs twice", name.Str, repeats[0].Key)
	}
	tool := Tool{Name: name.Str, Raw: bytes.Clone(raw)}
	if title, ok := doc.Get("title"); ok && title.Kind == exactjson.String {
		tool.Title = title.Str
	}
	pinned := exactjson.Value{Kind: exactjson.Object}
	for _, m := range members {
		if v, ok := doc.Get(m); ok {
			pinned.Members = append(pinned.Members, exactjson.Member{Key: m, Value: v})
		}
	}
	canonical, err := appendCanonical(nil, pinned)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", name.Str, err)
	}
	sum := sha256.Sum256(canonical)
	tool.Digest = hex.EncodeToString(sum[:])
	return tool, nil
}

// Pretty turns a tool's raw name into a readable one: "send_message" becomes
// "Send Message" (seed, "Friendly tool names", third choice).
func Pretty(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' })
	for i, w := range words {
		first, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToTitle(first)) + w[size:]
	}
	if len(words) == 0 {
		return name
	}
	return strings.Join(words, " ")
}

// appendCanonical writes v by RFC 8785: members sorted by their UTF-16 code
// units, no white space, shortest escapes, numbers as ECMAScript prints them.
func appendCanonical(out []byte, v exactjson.Value) ([]byte, error) {
	switch v.Kind {
	case exactjson.Null:
		return append(out, "null"...), nil
	case exactjson.Bool:
		return append(out, v.Str...), nil
	case exactjson.Number:
		return appendNumber(out, v.Str)
	case exactjson.String:
		return appendString(out, v.Str), nil
	case exactjson.Array:
		return appendArray(out, v.Items)
	default:
		return appendObject(out, v.Members)
	}
}

func appendArray(out []byte, items []exactjson.Value) ([]byte, error) {
	out = append(out, '[')
	var err error
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendCanonical(out, item); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendObject(out []byte, ms []exactjson.Member) ([]byte, error) {
	sorted := slices.SortedFunc(slices.Values(ms), func(a, b exactjson.Member) int {
		return slices.Compare(utf16.Encode([]rune(a.Key)), utf16.Encode([]rune(b.Key)))
	})
	out = append(out, '{')
	var err error
	for i, m := range sorted {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, m.Key), ':')
		if out, err = appendCanonical(out, m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendString escapes what RFC 8785 section 3.2.2.2 escapes and nothing else.
func appendString(out []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, `\b`...)
		case '\t':
			out = append(out, `\t`...)
		case '\n':
			out = append(out, `\n`...)
		case '\f':
			out = append(out, `\f`...)
		case '\r':
			out = append(out, `\r`...)
		default:
			if c < 0x20 {
				out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
				continue
			}
			out = append(out, c)
		}
	}
	return append(out, '"')
}
