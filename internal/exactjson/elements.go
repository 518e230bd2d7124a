package exactjson

import (
	"bytes"
	"fmt"
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
		s := &skipper{src: src, first: -1, key: key, yield: yield}
		if err := s.document(); err != nil && !s.stopped {
			yield([2]int{}, err)
		}
	}
}

// skipper finds where values end by their brackets and quotes alone.
type skipper struct {
	src     []byte
	pos     int
	key     string
	first   int // offset of the key, -1 before it was seen
	found   string
	yield   func([2]int, error) bool
	stopped bool
}

func (s *skipper) fail(msg string) error { return syntaxError(s.src, s.pos, msg) }

func (s *skipper) peek() byte {
	for s.pos < len(s.src) {
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
	start := s.pos
	if err := s.skipString(); err != nil {
		return err
	}
	key, err := decodeString(s.src[start:s.pos])
	if err != nil {
		s.pos = start
		return s.fail("a key that cannot be read")
	}
	if s.peek() != ':' {
		return s.fail(`expected ":"`)
	}
	s.pos++
	s.peek()
	if strings.EqualFold(key, s.key) {
		return s.array(key, start)
	}
	return s.skipValue()
}

// array yields the elements of the wanted member. Its first spelling decides;
// a second one, in whatever case, is an error.
func (s *skipper) array(key string, start int) error {
	if s.first >= 0 {
		err := syntaxError(s.src, start, fmt.Sprintf("the key %q stands here a second time", key))
		err.Repeat = &Repeat{Path: key, Key: key, First: s.first, Second: start, CaseTwin: key != s.found}
		return err
	}
	s.first, s.found = start, key
	if key != s.key {
		return s.skipValue()
	}
	if s.peek() != '[' {
		return s.fail(fmt.Sprintf("expected %q to be an array", key))
	}
	return s.sequence(']', s.element)
}

func (s *skipper) element() error {
	s.peek()
	start := s.pos
	if err := s.skipValue(); err != nil {
		return err
	}
	if !s.yield([2]int{start, s.pos}, nil) {
		s.stopped = true
		return s.fail("stopped by the caller")
	}
	return nil
}

func decodeString(quoted []byte) (string, error) {
	v, _, err := Parse(quoted, 0)
	return v.Str, err
}

// skipValue moves behind one value; white space before it is skipped already.
func (s *skipper) skipValue() error {
	depth := 0
	for s.pos < len(s.src) {
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
	n := bytes.IndexAny(s.src[s.pos:], ",]} \n\r\t")
	if n < 0 {
		n = len(s.src) - s.pos
	}
	if n == 0 {
		return s.fail("expected a value")
	}
	s.pos += n
	return nil
}

// skipString moves behind the closing quote: the first quote that has an even
// number of backslashes before it.
func (s *skipper) skipString() error {
	for at := s.pos + 1; ; {
		n := bytes.IndexByte(s.src[at:], '"')
		if n < 0 {
			return s.fail("the document ends inside a string")
		}
		at += n + 1
		back := at - 2
		for s.src[back] == '\\' && back > s.pos {
			back--
		}
		if (at-2-back)%2 == 0 {
			s.pos = at
			return nil
		}
	}
}
