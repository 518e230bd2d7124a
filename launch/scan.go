package launch

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a message: schemas of real tools stay under
// 20, and readers that recurse fail somewhere above a few thousand.
const maxDepth = 512

// lex is what the scanner expects next.
type lex uint8

const (
	lexBegin lex = iota // white space or the message's {
	lexFirstKey
	lexKey
	lexColon
	lexValue
	lexFirstItem
	lexAfter // a comma or the end of the container
	lexString
	lexEscape
	lexHex
	lexRune // inside a character of several bytes that the chunk cut
	lexMinus
	lexZero
	lexInt
	lexDot
	lexFraction
	lexExp
	lexExpSign
	lexExpInt
	lexLiteral
	lexEnd // the message is complete
	lexBad
)

// scanner reads one JSON object, in chunks of any size, checks every byte of
// it by RFC 8259, and notes where the members are that the launcher judges. It
// allocates nothing for a message of usual shape.
type scanner struct {
	state   lex
	inKey   bool
	hex     uint8  // hexadecimal digits still to come
	word    string // the rest of a literal
	part    [utf8.UTFMax]byte
	partLen int
	depth   int
	objects [maxDepth / 64]uint64 // a bit a level: it is an object
	base    int                   // length of the chunks before
	tooDeep bool

	envelope
}

func (s *scanner) reset() {
	s.state, s.inKey, s.hex, s.partLen, s.depth, s.base, s.tooDeep = lexBegin, false, 0, 0, 0, 0, false
	s.envelope.reset()
}

// scan reads a whole message at once.
func (s *scanner) scan(line []byte) bool {
	s.reset()
	return s.feed(line) && s.state == lexEnd
}

// feed reads the next chunk; false means that the message is not valid JSON.
func (s *scanner) feed(b []byte) bool {
	for i := 0; i < len(b); {
		switch c := b[i]; s.state {
		case lexString:
			i = s.inside(b, i)
		case lexFirstKey, lexKey:
			i = s.beforeKey(c, i)
		case lexValue, lexFirstItem:
			i = s.beforeValue(c, i)
		case lexAfter:
			i = s.after(c, i)
		case lexColon:
			switch {
			case c == ':':
				s.state = lexValue
			case !isSpace(c):
				s.state = lexBad
			}
			i++
		case lexEscape, lexHex, lexRune:
			i = s.inText(b, i)
		case lexLiteral:
			i = s.literal(c, i)
		case lexBegin:
			switch {
			case c == '{':
				s.open(true)
			case !isSpace(c):
				s.array, s.state = c == '[', lexBad
			}
			i++
		case lexEnd:
			if !isSpace(c) {
				s.state = lexBad
			}
			i++
		case lexBad:
			return false
		default:
			i = s.number(b, i)
		}
	}
	s.base += len(b)
	return s.state != lexBad
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (s *scanner) beforeKey(c byte, i int) int {
	switch {
	case c == '"':
		s.state, s.inKey = lexString, true
		s.key = s.key[:0]
	case c == '}' && s.state == lexFirstKey:
		s.close(s.base + i + 1)
	case !isSpace(c):
		s.state = lexBad
	}
	return i + 1
}

func (s *scanner) beforeValue(c byte, i int) int {
	if isSpace(c) {
		return i + 1
	}
	if s.depth <= 2 {
		s.begin(s.depth, s.base+i, c)
	}
	switch {
	case c == '"':
		s.state, s.inKey = lexString, false
	case c == '{':
		s.open(true)
	case c == '[':
		s.open(false)
	case c == ']' && s.state == lexFirstItem:
		s.close(s.base + i + 1)
	case c == '-':
		s.state = lexMinus
	case c == '0':
		s.state = lexZero
	case c >= '1' && c <= '9':
		s.state = lexInt
	case c == 't':
		s.state, s.word = lexLiteral, "rue"
	case c == 'f':
		s.state, s.word = lexLiteral, "alse"
	case c == 'n':
		s.state, s.word = lexLiteral, "ull"
	default:
		s.state = lexBad
	}
	return i + 1
}

func (s *scanner) after(c byte, i int) int {
	switch {
	case c == ',':
		s.state = lexValue
		if s.inObject() {
			s.state = lexKey
		}
	case c == '}' && s.inObject(), c == ']' && !s.inObject():
		s.close(s.base + i + 1)
	case !isSpace(c):
		s.state = lexBad
	}
	return i + 1
}

func (s *scanner) inObject() bool {
	level := s.depth - 1
	return s.objects[level/64]>>(level%64)&1 == 1
}

func (s *scanner) open(object bool) {
	if s.depth == maxDepth {
		s.state, s.tooDeep = lexBad, true
		return
	}
	level := s.depth
	s.objects[level/64] &^= 1 << (level % 64)
	s.state = lexFirstItem
	if object {
		s.objects[level/64] |= 1 << (level % 64)
		s.state = lexFirstKey
	}
	s.depth++
}

// close ends a container at end, the offset behind it.
func (s *scanner) close(end int) {
	s.depth--
	s.valueEnds(end)
}

func (s *scanner) valueEnds(end int) {
	if s.depth == 0 {
		s.state = lexEnd
		return
	}
	if s.depth <= 2 {
		s.finish(s.depth, end)
	}
	s.state = lexAfter
}

// stringEnds is called behind the closing quote.
func (s *scanner) stringEnds(end int) {
	if !s.inKey {
		s.valueEnds(end)
		return
	}
	s.state = lexColon
	if s.depth <= 2 {
		s.haveKey(s.depth)
	}
}

// inside reads the inside of a string up to its end, an escape or the end of the
// chunk.
func (s *scanner) inside(b []byte, i int) int {
	start := i
	for i < len(b) {
		i += plain(b[i:])
		if i == len(b) {
			break
		}
		c := b[i]
		if c < utf8.RuneSelf {
			s.keep(b[start : i+1])
			switch c {
			case '"':
				s.stringEnds(s.base + i + 1)
			case '\\':
				s.state = lexEscape
			default:
				s.state = lexBad // a control character
			}
			return i + 1
		}
		if !utf8.FullRune(b[i:]) {
			s.keep(b[start:i])
			s.state, s.partLen = lexRune, 0
			return i
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			s.state = lexBad
			return i + 1
		}
		i += n
	}
	s.keep(b[start:i])
	return i
}

// keep notes a part of a key, quote included, where keys are looked at.
func (s *scanner) keep(part []byte) {
	if s.inKey && s.depth <= 2 {
		s.key = append(s.key, part...)
	}
}

// inText goes on inside an escape or inside a cut character.
func (s *scanner) inText(b []byte, i int) int {
	c := b[i]
	switch s.state {
	case lexEscape:
		s.state = lexString
		switch c {
		case 'u':
			s.state, s.hex = lexHex, 4
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		default:
			s.state = lexBad
		}
	case lexHex:
		if !isHex(c) {
			s.state = lexBad
		} else if s.hex--; s.hex == 0 {
			s.state = lexString
		}
	case lexRune:
		s.part[s.partLen] = c
		s.partLen++
		if p := s.part[:s.partLen]; utf8.FullRune(p) {
			s.state = lexString
			if !utf8.Valid(p) {
				s.state = lexBad
			}
		}
	}
	s.keep(b[i : i+1])
	return i + 1
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// plain gives the length of the start of b that is plain text in a JSON
// string: no quote, backslash, control character or byte above ASCII. It looks
// at eight bytes at a time.
func plain(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i : i+8])
		quote, back := w^('"'*eachByte), w^('\\'*eachByte)
		// A lane before the first stop lends nothing to the next, so the
		// lowest top bit is exact; those above it need not be.
		if stops := ((w - 0x20*eachByte) | (quote - eachByte) | (back - eachByte) | w) & topBits; stops != 0 {
			return i + bits.TrailingZeros64(stops)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

func (s *scanner) literal(c byte, i int) int {
	if c != s.word[0] {
		s.state = lexBad
		return i + 1
	}
	if s.word = s.word[1:]; s.word == "" {
		s.valueEnds(s.base + i + 1)
	}
	return i + 1
}

// number goes on inside a number; the byte behind it is left for after.
func (s *scanner) number(b []byte, i int) int {
	for ; i < len(b); i++ {
		next := afterDigit(s.state, b[i])
		if next == lexAfter {
			s.valueEnds(s.base + i)
			return i
		}
		if s.state = next; next == lexBad {
			return i + 1
		}
	}
	return i
}

// afterDigit gives the state of a number behind c; lexAfter when c is not part
// of it and it may end here.
func afterDigit(state lex, c byte) lex {
	digit := c >= '0' && c <= '9'
	exp := c == 'e' || c == 'E'
	switch state {
	case lexMinus:
		if c == '0' {
			return lexZero
		}
		return when(digit, lexInt, lexBad)
	case lexZero, lexInt:
		switch {
		case digit && state == lexInt:
			return lexInt
		case c == '.':
			return lexDot
		case exp:
			return lexExp
		}
		return when(digit, lexBad, lexAfter)
	case lexDot:
		return when(digit, lexFraction, lexBad)
	case lexFraction:
		if exp {
			return lexExp
		}
		return when(digit, lexFraction, lexAfter)
	case lexExp:
		if c == '+' || c == '-' {
			return lexExpSign
		}
		return when(digit, lexExpInt, lexBad)
	case lexExpSign:
		return when(digit, lexExpInt, lexBad)
	}
	return when(digit, lexExpInt, lexAfter)
}

func when(is bool, yes, no lex) lex {
	if is {
		return yes
	}
	return no
}
