package fetch

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"skald-connectors/internal/exactjson"
)

// The skimmer takes the few texts that finding needs out of an entry without parsing it. It decides nothing: what it
// found only leads to the entry's bytes, which package manifest then reads exactly.

const (
	fieldSep = '\x1f' // between the fields of a text record
	itemSep  = '\x1e' // between the items of a field
	lineEnd  = '\n'   // after a text record

	// keyLimit cuts ids that cannot be valid; valid ones have at most 64 bytes.
	keyLimit = 128
	// textLimit cuts names and descriptions in the searchable text; a longer one is read by nobody.
	textLimit = 1024
)

// Fields of a text record, in order. All are folded to lower case.
const (
	fieldKey = iota
	fieldName
	fieldTags
	fieldDescription
	fieldKind // type, scope, then what is required
	fieldCount
)

var errSkim = errors.New("not an object")

// wanted are the raw values of the members that a text record is made of.
type wanted struct{ id, name, description, tags, requires, typ, scope []byte }

// skim finds the wanted members of an entry. The first of a repeated key counts; such an entry is refused later.
func skim(src []byte) (w wanted) {
	_ = eachMember(src, func(key, value []byte) {
		var to *[]byte
		switch string(key) {
		case "id":
			to = &w.id
		case "name":
			to = &w.name
		case "user_description":
			to = &w.description
		case "tags":
			to = &w.tags
		case "requires":
			to = &w.requires
		case "type":
			to = &w.typ
		case "scope":
			to = &w.scope
		}
		if to != nil && *to == nil {
			*to = value
		}
	})
	return w
}

// eachMember visits the members of an object. Keys are decoded, values raw.
func eachMember(src []byte, visit func(key, value []byte)) error {
	i := skipSpace(src, 0)
	if i >= len(src) || src[i] != '{' {
		return errSkim
	}
	for i++; ; i++ {
		i = skipSpace(src, i)
		if i >= len(src) || src[i] != '"' {
			return errSkim // the end of the object is one of these
		}
		end := skipString(src, i)
		key := src[i+1 : max(end-1, i+1)]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(decode(src[i:end]))
		}
		i = skipSpace(src, end)
		if i >= len(src) || src[i] != ':' {
			return errSkim
		}
		i = skipSpace(src, i+1)
		end = skipValue(src, i)
		visit(key, src[i:end])
		i = skipSpace(src, end)
		if i >= len(src) || src[i] != ',' {
			return nil
		}
	}
}

// eachItem visits the raw elements of an array; other values have none.
func eachItem(src []byte, visit func(value []byte)) {
	if len(src) == 0 || src[0] != '[' {
		return
	}
	for i := 1; ; i++ {
		i = skipSpace(src, i)
		end := skipValue(src, i)
		if end == i {
			return
		}
		visit(src[i:end])
		i = skipSpace(src, end)
		if i >= len(src) || src[i] != ',' {
			return
		}
	}
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}

// skipString gives the place behind the string that starts at i, or the end of src.
func skipString(src []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(src[at:], '"')
		if n < 0 {
			return len(src)
		}
		at += n + 1
		back := at - 2
		for back > i && src[back] == '\\' {
			back--
		}
		if (at-2-back)%2 == 0 {
			return at
		}
	}
}

// skipValue gives the place behind the value that starts at i; i itself when there is none.
func skipValue(src []byte, i int) int {
	depth := 0
	for i < len(src) {
		switch src[i] {
		case '"':
			i = skipString(src, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		default:
			if depth == 0 {
				return skipScalar(src, i)
			}
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(src)
}

func skipScalar(src []byte, i int) int {
	for i < len(src) && !strings.ContainsRune(",]} \n\r\t", rune(src[i])) {
		i++
	}
	return i
}

// decode gives the text of a raw JSON string, "" for anything else.
func decode(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	v, _, err := exactjson.Parse(raw, 0)
	if err != nil {
		return ""
	}
	return v.Str
}

// appendText appends the text record of an entry and returns the length of its key.
func appendText(dst, entry []byte) (out []byte, keyLen int) {
	w := skim(entry)
	start := len(dst)
	dst = appendFolded(dst, w.id, keyLimit)
	keyLen = len(dst) - start
	dst = appendFolded(append(dst, fieldSep), w.name, textLimit)
	dst = appendItems(append(dst, fieldSep), w.tags)
	dst = appendFolded(append(dst, fieldSep), w.description, textLimit)
	dst = append(append(append(dst, fieldSep), kindOf(w.typ)...), itemSep)
	dst = append(append(dst, scopeOf(w.scope)...), itemSep)
	dst = appendItems(dst, w.requires)
	return append(dst, lineEnd), keyLen
}

// kindOf and scopeOf read as package manifest does: what is unknown or missing is the reading that demands more.
func kindOf(raw []byte) string {
	switch t := decode(raw); t {
	case "mcp_remote", "script":
		return t
	}
	return "mcp_local"
}

func scopeOf(raw []byte) string {
	if decode(raw) == "global" {
		return "global"
	}
	return "user"
}

func appendItems(dst, raw []byte) []byte {
	start := len(dst)
	eachItem(raw, func(value []byte) {
		if len(dst)-start > textLimit {
			return
		}
		if len(dst) > start {
			dst = append(dst, itemSep)
		}
		dst = appendFolded(dst, value, textLimit)
	})
	return dst
}

// appendFolded appends a raw JSON string in lower case, control characters made spaces, cut behind the letter that reaches limit
// bytes. What is no UTF-8 grows to three bytes each.
func appendFolded(dst, raw []byte, limit int) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return dst
	}
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') >= 0 {
		body = []byte(decode(raw))
	}
	start := len(dst)
	for i := 0; i < len(body) && len(dst)-start < limit; {
		c := body[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(body[i:])
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
			i += n
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		} else if c < ' ' {
			c = ' '
		}
		dst = append(dst, c)
		i++
	}
	return dst
}

// fold brings an id or a word of a query into the form of the text records.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return unicode.ToLower(r)
	}, s)
}
