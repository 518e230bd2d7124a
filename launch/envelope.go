package launch

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// field is a member that the launcher looks at.
type field uint8

const (
	fieldNone field = iota
	// of the message
	fieldJSONRPC
	fieldID
	fieldMethod
	fieldParams
	fieldResult
	fieldError
	// of params
	fieldName
	fieldArguments
	fieldURI
	fieldRequestID
	fieldProtocol
	// of result
	fieldIsError
	fields
)

// place is where a value stands in the message; first is its first byte.
type place struct {
	start, end int32
	first      byte
}

// envelope is what the scanner notes of a message.
type envelope struct {
	at       [fields]place
	replies  bool      // it is the upstream's: params are not judged
	lax      bool      // it is refused anyway: keys are not remembered
	array    bool      // the line is a batch
	repeated bool      // a key stands twice, in the message or in params
	twin     bool      // a key of the message differs from an envelope key in case only
	doubt    bool      // one of them is the id
	twins    uint16    // by field: params has a case twin of it
	current  [3]field  // by depth: the member whose value is read
	keys     [3]keySet // by depth
	key      []byte    // the key that is read, as it is spelt, and its quote
	decoded  []byte
}

func (e *envelope) reset() {
	e.at, e.twins = [fields]place{}, 0
	e.array, e.repeated, e.twin, e.doubt = false, false, false, false
	e.current = [3]field{}
	for i := range e.keys {
		e.keys[i].reset()
	}
}

func (e *envelope) has(f field) bool { return e.at[f].first != 0 }

// ended reports that the value of f has been read to its end.
func (e *envelope) ended(f field) bool { return e.at[f].end != 0 }

// begin notes that a value begins at start, depth containers deep.
func (e *envelope) begin(depth, start int, first byte) {
	f := e.current[depth]
	if depth == 1 {
		e.keys[2].reset()
		e.current[2] = fieldNone
	}
	if f != fieldNone && !e.has(f) {
		e.at[f] = place{start: int32(start), first: first}
	}
}

func (e *envelope) finish(depth, end int) {
	if f := e.current[depth]; f != fieldNone && !e.ended(f) {
		e.at[f].end = int32(end)
	}
	e.current[depth] = fieldNone
}

// haveKey judges the key that was just read, depth containers deep, as it is
// spelt.
func (e *envelope) haveKey(depth int, key []byte) {
	e.current[depth] = fieldNone
	parent := e.current[1]
	if depth == 2 && (e.at[parent].first != '{' || parent != fieldResult && (parent != fieldParams || e.replies)) {
		return
	}
	if bytes.IndexByte(key, '\\') >= 0 {
		e.decoded = unescape(e.decoded[:0], key)
		key = e.decoded
	}
	f, exact := lookUp(depth, parent, key)
	switch {
	case exact && e.has(f), !exact && parent != fieldResult && !e.lax && e.keys[depth].repeats(key):
		e.repeated = e.repeated || parent != fieldResult
		e.doubt = e.doubt || f == fieldID
	case exact:
		e.current[depth] = f
	case f != fieldNone && depth == 1:
		e.twin = true
		e.doubt = e.doubt || f == fieldID
	case f != fieldNone:
		e.twins |= 1 << f
	}
}

// names are the members looked at, by their spelling. Few enough to walk.
var envelopeNames, paramNames, resultNames = [...]string{"jsonrpc", "id", "method", "params", "result", "error"},
	[...]string{"name", "arguments", "uri", "requestId", "protocolVersion"}, [...]string{"isError"}

// lookUp finds the field of a key; exact is false for a case twin of it.
func lookUp(depth int, parent field, key []byte) (f field, exact bool) {
	if depth == 1 {
		if f := envelopeField(key); f != fieldNone {
			return f, true
		}
	}
	names, first := envelopeNames[:], fieldJSONRPC
	if depth == 2 {
		if names, first = paramNames[:], fieldName; parent == fieldResult {
			names, first = resultNames[:], fieldIsError
		}
	}
	for i, name := range names {
		if string(key) == name {
			return first + field(i), true
		}
	}
	for i, name := range names {
		if len(key) >= len(name) && foldsTo(key, name) {
			return first + field(i), false
		}
	}
	return fieldNone, false
}

func envelopeField(key []byte) field {
	switch string(key) {
	case "jsonrpc":
		return fieldJSONRPC
	case "id":
		return fieldID
	case "method":
		return fieldMethod
	case "params":
		return fieldParams
	case "result":
		return fieldResult
	case "error":
		return fieldError
	}
	return fieldNone
}

// foldsTo reports that key and the ASCII word are equal but for case, by
// Unicode's simple folding, as readers that ignore case compare.
func foldsTo(key []byte, word string) bool {
	for i := 0; i < len(word); i++ {
		if len(key) == 0 {
			return false
		}
		r, n := rune(key[0]), 1
		if r >= utf8.RuneSelf {
			if r, n = utf8.DecodeRune(key); r != 'ſ' && r != '\u212a' { // the only others that fold to ASCII letters
				return false
			}
			r = unicode.SimpleFold(r) // K and S
		}
		if lower(r) != lower(rune(word[i])) {
			return false
		}
		key = key[n:]
	}
	return len(key) == 0
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// keySeed makes the hashes of keys unforeseeable. Equal keys have equal hashes,
// so a repeat is never missed.
var keySeed = maphash.MakeSeed()

// keySet remembers the keys of one object.
type keySet struct {
	few  []uint64
	many map[uint64]struct{}
}

// fewKeys is the size up to which walking a slice beats a map.
const fewKeys = 24

func (k *keySet) reset() { k.few, k.many = k.few[:0], nil }

// repeats adds a key and tells whether it was there.
func (k *keySet) repeats(key []byte) bool {
	h := maphash.Bytes(keySeed, key)
	if k.many != nil {
		_, has := k.many[h]
		k.many[h] = struct{}{}
		return has
	}
	for _, x := range k.few {
		if x == h {
			return true
		}
	}
	if k.few = append(k.few, h); len(k.few) == fewKeys {
		k.many = make(map[uint64]struct{}, 2*fewKeys)
		for _, x := range k.few {
			k.many[x] = struct{}{}
		}
	}
	return false
}

// unescape appends the text of a JSON string's inside. A lone surrogate becomes
// U+FFFD, as encoding/json reads it.
func unescape(out, inside []byte) []byte {
	for len(inside) > 0 {
		c := inside[0]
		if c != '\\' || len(inside) < 2 {
			out, inside = append(out, c), inside[1:]
			continue
		}
		if inside[1] != 'u' {
			out, inside = append(out, simpleEscape(inside[1])), inside[2:]
			continue
		}
		r, rest := escapedRune(inside)
		if high := r; high >= 0xd800 && high < 0xe000 {
			r = utf8.RuneError
			if low, after := escapedRune(rest); high < 0xdc00 && low >= 0xdc00 && low < 0xe000 {
				r, rest = (high-0xd800)<<10|(low-0xdc00)+0x10000, after
			}
		}
		out, inside = utf8.AppendRune(out, r), rest
	}
	return out
}

func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// escapedRune reads \uXXXX at the start of s; -1 when there is none.
func escapedRune(s []byte) (rune, []byte) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1, s
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1, s
	}
	return rune(n), s[6:]
}
