package exactjson

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const byteOrderMark = "\xef\xbb\xbf"

// Parse reads one JSON document. A leading byte order mark is accepted; data
// after the document, invalid UTF-8 and containers nested deeper than maxDepth
// are refused with a *SyntaxError. An escaped surrogate without its partner
// becomes U+FFFD. Repeats lists every key that stands twice in its object, in
// the order in which the objects end; it is for the caller to refuse them.
//
// Strings share one copy of src, so the Value keeps that copy alive.
func Parse(src []byte, maxDepth int) (v Value, repeats []Repeat, err error) {
	if !utf8.Valid(src) {
		return Value{}, nil, syntaxError(src, firstInvalid(src), "invalid UTF-8")
	}
	p := &parser{src: src, text: string(src), maxDepth: maxDepth}
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		p.pos = len(byteOrderMark)
	}
	p.space()
	if v, err = p.value(); err != nil {
		return Value{}, nil, err
	}
	p.space()
	if p.pos < len(src) {
		return Value{}, nil, p.fail("data after the document")
	}
	return v, p.repeats, nil
}

func firstInvalid(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(src)
}

// parser walks the source once. members and items are stacks: an open
// container appends to them and copies its part out when it ends, so each
// container costs one allocation of its exact size.
type parser struct {
	src      []byte
	text     string // src, for strings that need no decoding
	pos      int
	depth    int
	maxDepth int
	members  []Member
	items    []Value
	path     []step
	repeats  []Repeat
}

func (p *parser) fail(msg string) error { return syntaxError(p.src, p.pos, msg) }

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\r', '\t':
			p.pos++
		default:
			return
		}
	}
}

// peek gives the next byte, or 0 at the end; a NUL is never valid JSON.
func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) value() (Value, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		start := p.pos
		s, err := p.string()
		return Value{Kind: String, Start: start, End: p.pos, Str: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true", Bool)
	case c == 'f':
		return p.literal("false", Bool)
	case c == 'n':
		return p.literal("null", Null)
	case p.pos >= len(p.src):
		return Value{}, p.fail("the document ends where a value was expected")
	}
	return Value{}, p.fail("expected a value")
}

func (p *parser) literal(word string, kind Kind) (Value, error) {
	start := p.pos
	if !bytes.HasPrefix(p.src[start:], []byte(word)) {
		return Value{}, p.fail("expected a value")
	}
	p.pos += len(word)
	v := Value{Kind: kind, Start: start, End: p.pos}
	if kind == Bool {
		v.Str = p.text[start:p.pos]
	}
	return v, nil
}

func (p *parser) enter() error {
	if p.depth >= p.maxDepth {
		return p.fail(fmt.Sprintf("nested deeper than %d", p.maxDepth))
	}
	p.depth++
	p.pos++
	return nil
}

func (p *parser) object() (Value, error) {
	v := Value{Kind: Object, Start: p.pos}
	if err := p.enter(); err != nil {
		return Value{}, err
	}
	base := len(p.members)
	for {
		p.space()
		if p.peek() == '}' && len(p.members) == base {
			break
		}
		if err := p.member(); err != nil {
			return Value{}, err
		}
		p.space()
		if c := p.peek(); c == '}' {
			break
		} else if c != ',' {
			return Value{}, p.fail(`expected "," or "}"`)
		}
		p.pos++
	}
	p.pos++
	p.depth--
	v.End = p.pos
	if n := len(p.members) - base; n > 0 {
		v.Members = make([]Member, n)
		copy(v.Members, p.members[base:])
		p.members = p.members[:base]
		p.findRepeats(v.Members)
	}
	return v, nil
}

func (p *parser) member() error {
	if p.peek() != '"' {
		return p.fail("expected a key in double quotes")
	}
	start := p.pos
	key, err := p.string()
	if err != nil {
		return err
	}
	p.space()
	if p.peek() != ':' {
		return p.fail(`expected ":"`)
	}
	p.pos++
	p.space()
	p.path = append(p.path, step{key: key, index: -1})
	v, err := p.value()
	p.path = p.path[:len(p.path)-1]
	p.members = append(p.members, Member{Key: key, KeyStart: start, Value: v})
	return err
}

func (p *parser) array() (Value, error) {
	v := Value{Kind: Array, Start: p.pos}
	if err := p.enter(); err != nil {
		return Value{}, err
	}
	base := len(p.items)
	for {
		p.space()
		if p.peek() == ']' && len(p.items) == base {
			break
		}
		p.path = append(p.path, step{index: len(p.items) - base})
		item, err := p.value()
		if err != nil {
			return Value{}, err
		}
		p.path = p.path[:len(p.path)-1]
		p.items = append(p.items, item)
		p.space()
		if c := p.peek(); c == ']' {
			break
		} else if c != ',' {
			return Value{}, p.fail(`expected "," or "]"`)
		}
		p.pos++
	}
	p.pos++
	p.depth--
	v.End = p.pos
	if n := len(p.items) - base; n > 0 {
		v.Items = make([]Value, n)
		copy(v.Items, p.items[base:])
		p.items = p.items[:base]
	}
	return v, nil
}

// number reads the grammar of RFC 8259, section 6, and keeps the text.
func (p *parser) number() (Value, error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.digits() {
		return Value{}, p.fail("expected a digit")
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return Value{}, p.fail("expected a digit after the decimal point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return Value{}, p.fail("expected a digit in the exponent")
		}
	}
	return Value{Kind: Number, Start: start, End: p.pos, Str: p.text[start:p.pos]}, nil
}

// digits skips a run of digits and tells whether there was one.
func (p *parser) digits() bool {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}
