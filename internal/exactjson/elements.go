package exactjson

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strings"
)

// ArrayElements streams the byte ranges of the elements of the array that is
// the top-level member key, without building a tree and without an allocation
// an element. Strings and brackets are followed, nothing else is checked: an
// element is checked when it is given to Parse, so one bad element does not
// hide the others.
//
// The last pair may be an error, a *SyntaxError: the document is not an object,
// has no such member, has it twice or in two cases (then Repeat is set), or
// breaks off. Nothing that was yielded before may be trusted then.
func ArrayElements(src []byte, key string) iter.Seq2[[2]int, error] {
	return func(yield func([2]int, error) bool) {
		s := &skipper{window: window{src: src, keep: -1}, first: -1, key: key, yield: func(start, end int) bool { return yield([2]int{start, end}, nil) }}
		if err := s.document(); err != nil && !s.stopped {
			yield([2]int{}, err)
		}
	}
}

// An Element is a value with its place in the document.
type Element struct {
	Start int    // offset in bytes
	Raw   []byte // good until the next one is asked for
}

// ReadElements is ArrayElements for a document that is read piece by piece: it
// holds no more than one element, or one string of what surrounds them, and a
// buffer. outside, when not nil, is given the document in pieces, with its
// array emptied; none of them may be kept. An error of r ends it as it is.
func ReadElements(r io.Reader, key string, outside func([]byte)) iter.Seq2[Element, error] {
	return readElements(window{r: r, keep: -1, outside: outside, size: windowSize}, key)
}

func readElements(w window, key string) iter.Seq2[Element, error] {
	return func(yield func(Element, error) bool) {
		s := &skipper{window: w, first: -1, key: key}
		s.yield = func(start, end int) bool { return yield(Element{s.base + start, s.src[start:end:end]}, nil) }
		err := s.document()
		s.emit(s.pos)
		if s.err != nil && s.err != io.EOF {
			err = s.err
		}
		if err != nil && !s.stopped {
			yield(Element{}, err)
		}
	}
}

// skipper finds where values end by their brackets and quotes alone.
type skipper struct {
	window
	key     string
	first   int // offset of the key, -1 before it was seen
	found   string
	yield   func(start, end int) bool // places in the window
	stopped bool
}

func (s *skipper) peek() byte {
	for s.pos < len(s.src) || s.fill() {
		switch c := s.src[s.pos]; c {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// sequence walks "one, two, three" up to the closing byte.
func (s *skipper) sequence(end byte, one func() error) error {
	s.pos++
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		switch s.peek() {
		case end:
			s.pos++
			return nil
		case ',':
			s.pos++
		default:
			return s.fail(fmt.Sprintf(`expected "," or %q`, string(end)))
		}
	}
}

func (s *skipper) document() error {
	for len(s.src) < len(byteOrderMark) && s.fill() {
	}
	if bytes.HasPrefix(s.src, []byte(byteOrderMark)) {
		s.pos = len(byteOrderMark)
	}
	if s.peek() != '{' {
		return s.fail("expected an object")
	}
	if err := s.sequence('}', s.member); err != nil {
		return err
	}
	if s.peek(); s.pos < len(s.src) {
		return s.fail("data after the document")
	}
	if s.first < 0 || s.found != s.key {
		return s.fail(fmt.Sprintf("no member %q", s.key))
	}
	return nil
}

func (s *skipper) member() error {
	if s.peek() != '"' {
		return s.fail("expected a key in double quotes")
	}
	s.keep = s.pos
	if err := s.skipString(); err != nil {
		return err
	}
	key, err := decodeString(s.src[s.keep:s.pos])
	if err != nil {
		s.pos = s.keep
		return s.fail("a key that cannot be read")
	}
	if s.peek() != ':' {
		return s.fail(`expected ":"`)
	}
	s.pos++
	s.peek()
	if strings.EqualFold(key, s.key) {
		return s.array(key)
	}
	s.keep = -1
	return s.skipValue()
}

// array yields the elements of the wanted member. Its first spelling decides;
// a second one, in whatever case, is an error.
func (s *skipper) array(key string) error {
	start := s.base + s.keep
	if s.first >= 0 {
		err := s.failAt(s.keep, fmt.Sprintf("the key %q stands here a second time", key))
		err.Repeat = &Repeat{Path: key, Key: key, First: s.first, Second: start, CaseTwin: key != s.found}
		return err
	}
	s.first, s.found, s.keep = start, key, -1
	if key != s.key {
		return s.skipValue()
	}
	if s.peek() != '[' {
		return s.fail(fmt.Sprintf("expected %q to be an array", key))
	}
	s.emit(s.pos + 1)
	s.inside = true
	if err := s.sequence(']', s.element); err != nil {
		return err
	}
	s.inside, s.out = false, s.pos-1
	return nil
}

func (s *skipper) element() error {
	s.peek()
	s.keep = s.pos
	if err := s.skipValue(); err != nil {
		return err
	}
	if !s.yield(s.keep, s.pos) {
		s.stopped = true
		return s.fail("stopped by the caller")
	}
	s.keep = -1
	return nil
}

func decodeString(quoted []byte) (string, error) {
	v, _, err := Parse(quoted, 0)
	return v.Str, err
}

// skipValue moves behind one value; white space before it is skipped already.
func (s *skipper) skipValue() error {
	depth := 0
	for s.pos < len(s.src) || s.fill() {
		switch s.src[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			if depth == 0 {
				return nil
			}
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			if depth--; depth < 0 {
				return s.fail("expected a value")
			}
			if s.pos++; depth == 0 {
				return nil
			}
		default:
			if depth == 0 {
				return s.skipScalar()
			}
			s.pos++
		}
	}
	return s.fail("the document ends inside a value")
}

func (s *skipper) skipScalar() error {
	seen := 0
	for {
		if n := bytes.IndexAny(s.src[s.pos+seen:], ",]} \n\r\t"); n >= 0 {
			seen += n
			break
		}
		if seen = len(s.src) - s.pos; !s.fill() {
			break
		}
	}
	if seen == 0 {
		return s.fail("expected a value")
	}
	s.pos += seen
	return nil
}

// skipString moves behind the closing quote: the first quote that has an even
// number of backslashes before it.
func (s *skipper) skipString() error {
	for seen := 1; ; {
		n := bytes.IndexByte(s.src[s.pos+seen:], '"')
		if n < 0 {
			if seen = len(s.src) - s.pos; !s.fill() {
				return s.fail("the document ends inside a string")
			}
			continue
		}
		seen += n + 1
		last := s.pos + seen - 2 // before the quote
		back := last
		for s.src[back] == '\\' && back > s.pos {
			back--
		}
		if (last-back)%2 == 0 {
			s.pos += seen
			return nil
		}
	}
}
