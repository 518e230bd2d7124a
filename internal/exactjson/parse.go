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
// becomes U+FFFD. Repeats lists the keys that stand twice in their object, in
// the order in which the objects end, at most 100 of them; it is for the caller
// to refuse them.
//
// Strings share one copy of src, so the Value keeps that copy alive.
func Parse(src []byte, maxDepth int) (v Value, repeats []Repeat, err error) {
	if !utf8.Valid(src) {
		return Value{}, nil, syntaxError(src, InvalidAt(src), "invalid UTF-8")
	}
	p := &parser{src: src, text: string(src), maxDepth: maxDepth}
	p.members.first = min(bytes.Count(src, []byte{':'}), firstMembers)
	p.items.first = firstItems
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		p.pos = len(byteOrderMark)
	}
	p.space()
	if err = p.value(&v); err != nil {
		return Value{}, nil, err
	}
	p.space()
	if p.pos < len(src) {
		return Value{}, nil, p.fail("data after the document")
	}
	for i := range p.repeats {
		p.repeats[i].Path = pathTo(v, p.repeats[i])
	}
	return v, p.repeats, nil
}

// InvalidAt is the offset of the first byte that is not UTF-8, len(src) when there is none.
func InvalidAt(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(src)
}

// parser walks the source once.
type parser struct {
	src      []byte
	text     string // src, for strings that need no decoding
	pos      int
	depth    int
	maxDepth int
	members  arena[Member]
	items    arena[Value]
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

// value reads one value into v, which is zero.
func (p *parser) value(v *Value) (err error) {
	v.Start = p.pos
	switch c := p.peek(); {
	case c == '{':
		err = p.object(v)
	case c == '[':
		err = p.array(v)
	case c == '"':
		v.Kind = String
		v.Str, err = p.string()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind = Number
		err = p.number()
		v.Str = p.text[v.Start:p.pos]
	case c == 't':
		v.Kind, v.Str = Bool, "true"
		err = p.literal("true")
	case c == 'f':
		v.Kind, v.Str = Bool, "false"
		err = p.literal("false")
	case c == 'n':
		err = p.literal("null")
	case p.pos >= len(p.src):
		return p.fail("the document ends where a value was expected")
	default:
		return p.fail("expected a value")
	}
	v.End = p.pos
	return err
}

func (p *parser) literal(word string) error {
	if !bytes.HasPrefix(p.src[p.pos:], []byte(word)) {
		return p.fail("expected a value")
	}
	p.pos += len(word)
	return nil
}

func (p *parser) enter() error {
	if p.depth >= p.maxDepth {
		return p.fail(fmt.Sprintf("nested deeper than %d", p.maxDepth))
	}
	p.depth++
	p.pos++
	return nil
}

func (p *parser) object(v *Value) error {
	v.Kind = Object
	if err := p.enter(); err != nil {
		return err
	}
	base := p.members.top
	for {
		p.space()
		if p.peek() == '}' && p.members.top == base {
			break
		}
		if err := p.member(); err != nil {
			return err
		}
		p.space()
		if c := p.peek(); c == '}' {
			break
		} else if c != ',' {
			return p.fail(`expected "," or "}"`)
		}
		p.pos++
	}
	p.pos++
	p.depth--
	v.Members = p.members.keep(base)
	p.findRepeats(v.Members)
	return nil
}

func (p *parser) member() (err error) {
	if p.peek() != '"' {
		return p.fail("expected a key in double quotes")
	}
	m := Member{KeyStart: p.pos}
	if m.Key, err = p.string(); err != nil {
		return err
	}
	p.space()
	if p.peek() != ':' {
		return p.fail(`expected ":"`)
	}
	p.pos++
	p.space()
	err = p.value(&m.Value)
	p.members.push(&m)
	return err
}

func (p *parser) array(v *Value) error {
	v.Kind = Array
	if err := p.enter(); err != nil {
		return err
	}
	base := p.items.top
	for {
		p.space()
		if p.peek() == ']' && p.items.top == base {
			break
		}
		if err := p.item(); err != nil {
			return err
		}
		p.space()
		if c := p.peek(); c == ']' {
			break
		} else if c != ',' {
			return p.fail(`expected "," or "]"`)
		}
		p.pos++
	}
	p.pos++
	p.depth--
	v.Items = p.items.keep(base)
	return nil
}

// item has its own frame, so that its value stays off the heap.
func (p *parser) item() error {
	var v Value
	err := p.value(&v)
	p.items.push(&v)
	return err
}

// number reads the grammar of RFC 8259, section 6.
func (p *parser) number() error {
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.digits() {
		return p.fail("expected a digit")
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return p.fail("expected a digit after the decimal point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return p.fail("expected a digit in the exponent")
		}
	}
	return nil
}

// digits skips a run of digits and tells whether there was one.
func (p *parser) digits() bool {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}
