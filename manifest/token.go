package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// The token grammar (format.md, section 5): {ENV:NAME} and {SECRET:NAME}, one
// pass, literal, never scanned again. NAME begins with a letter or underscore
// and goes on with letters, digits, "_", "-" and "."; the last two only so that
// the name of a header can be that of the key. Everything else in braces stays
// as it is.

// Lookup gives the value of a token; kind is "ENV" or "SECRET". declared tells
// whether the manifest has such a field at all.
type Lookup func(kind, name string) (value string, declared bool)

// Encoding says how a value is written into its place.
type Encoding uint8

// The encodings: as it is, or percent-encoded for a part of a URL.
const (
	Plain Encoding = iota
	URLPath
	URLQuery
)

// TokenRef is one token in a text.
type TokenRef struct {
	// Kind is ENV or SECRET; key, env, secret or secrets for the deprecated
	// forms, and malformed for what begins like a token and is none.
	Kind       string
	Name       string
	Start, End int // byte range in the text
	Deprecated bool
	Var        string // the variable that carries the value; set by ShellCommand
}

// live tells whether the token is filled.
func (t TokenRef) live() bool { return t.Kind == "ENV" || t.Kind == "SECRET" }

// TokenPlaceError means that a token stands where no value may go: the host of
// a URL, a here-document, the program text of another interpreter.
type TokenPlaceError struct{ Token, Place string }

func (e *TokenPlaceError) Error() string {
	return fmt.Sprintf("the token %s stands in %s", e.Token, e.Place)
}

// Tokens lists every token of s in order, the deprecated and the malformed
// ones included.
func Tokens(s string) []TokenRef {
	var refs []TokenRef
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 {
			break
		}
		i += n
		ref, ok := tokenAt(s, i)
		if !ok {
			i++
			continue
		}
		refs = append(refs, ref)
		i = ref.End
	}
	return refs
}

// tokenAt reads the token that begins with the brace at start.
func tokenAt(s string, start int) (TokenRef, bool) {
	end := start + 1
	for end < len(s) && (isNameByte(s[end]) || strings.IndexByte(":-.", s[end]) >= 0) {
		end++
	}
	kind, name, colon := strings.Cut(s[start+1:end], ":")
	closed := end < len(s) && s[end] == '}'
	ref := TokenRef{Kind: kind, Name: name, Start: start, End: min(end+1, len(s))}
	switch {
	case closed && !colon && (kind == "key" || kind == "secrets"):
		ref.Deprecated = true
		return ref, true
	case closed && (kind == "ENV" || kind == "SECRET") && isTokenName(name):
		return ref, true
	case closed && (kind == "env" || kind == "secret") && isTokenName(name):
		ref.Deprecated = true
		return ref, true
	case colon && (strings.EqualFold(kind, "ENV") || strings.EqualFold(kind, "SECRET")):
		if !closed {
			ref.End = end
		}
		ref.Kind = "malformed"
		return ref, true
	}
	return TokenRef{}, false
}

func isTokenName(s string) bool {
	if s == "" || len(s) > maxEnvName || !isNameByte(s[0]) || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.Contains(s, ":")
}

// replaceTokens replaces every live token once.
func replaceTokens(s string, with func(TokenRef) string) string {
	refs := Tokens(s)
	if len(refs) == 0 {
		return s
	}
	var b strings.Builder
	done := 0
	for _, ref := range refs {
		if ref.live() {
			b.WriteString(s[done:ref.Start])
			b.WriteString(with(ref))
			done = ref.End
		}
	}
	b.WriteString(s[done:])
	return b.String()
}

// Expand fills the tokens of s, once and literally: a value that looks like a
// token stays a value. Tokens of no declared field become empty and are listed
// in undeclared, each once, as they are written.
func Expand(s string, look Lookup, enc Encoding) (out string, undeclared []string) {
	out = replaceTokens(s, func(ref TokenRef) string {
		value, declared := look(ref.Kind, ref.Name)
		if !declared {
			if token := s[ref.Start:ref.End]; !slices.Contains(undeclared, token) {
				undeclared = append(undeclared, token)
			}
			return ""
		}
		if enc != Plain {
			value = percentEncode(value)
		}
		return value
	})
	return out, undeclared
}

// ExpandURL fills the tokens of a URL, percent-encoded for their place. A token
// before the path, or in a fragment, is a *TokenPlaceError: a value must never
// choose the host.
func ExpandURL(s string, look Lookup) (out string, undeclared []string, err error) {
	authority, rest := splitURL(s)
	if err := noTokens(authority, "the scheme or host of a URL"); err != nil {
		return "", nil, err
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	if err := noTokens(fragment, "the fragment of a URL"); err != nil {
		return "", nil, err
	}
	path, query, hasQuery := strings.Cut(rest, "?")
	path, undeclared = Expand(path, look, URLPath)
	out = authority + path
	if hasQuery {
		var more []string
		query, more = Expand(query, look, URLQuery)
		out += "?" + query
		for _, token := range more {
			if !slices.Contains(undeclared, token) {
				undeclared = append(undeclared, token)
			}
		}
	}
	if hasFragment {
		out += "#" + fragment
	}
	return out, undeclared, nil
}

func noTokens(s, place string) error {
	for _, ref := range Tokens(s) {
		if ref.live() {
			return &TokenPlaceError{Token: s[ref.Start:ref.End], Place: place}
		}
	}
	return nil
}

// percentEncode keeps the unreserved characters of RFC 3986 only, which is
// right in a path segment and in a query alike.
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; isNameByte(c) || c == '-' || c == '.' || c == '~' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
