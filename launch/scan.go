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
	object  bool                  // the innermost container is one
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
		// The usual row, without going through the switch: a comma, a key, a
		// colon, the start of a value.
		if s.state == lexAfter {
			i = s.after(b[i], i)
			if s.state == lexKey && i < len(b) {
				i = s.beforeKey(b, i)
			}
			if s.state == lexValue && i < len(b) {
				i = s.beforeValue(b, i)
			}
			continue
		}
		switch c := b[i]; s.state {
		case lexString:
			i = s.inside(b, i)
		case lexFirstKey, lexKey:
			i = s.beforeKey(b, i)
		case lexColon:
			if i++; c == ':' {
				s.state = lexValue
			} else if !isSpace(c) {
				s.state = lexBad
			}
		case lexValue, lexFirstItem:
			i = s.beforeValue(b, i)
		case lexEscape, lexHex, lexRune:
			i = s.inText(b, i)
		case lexLiteral:
			i = s.literal(c, i)
		case lexBegin:
			if i++; c == '{' {
				s.open(true)
			} else if !isSpace(c) {
				s.array, s.state = c == '[', lexBad
			}
		case lexEnd:
			if i++; !isSpace(c) {
				s.state = lexBad
			}
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

func (s *scanner) beforeKey(b []byte, i int) int {
	switch c := b[i]; {
	case c == '"':
		// Nearly every key is plain and whole in the chunk.
		if end := i + 1 + plain(b[i+1:]); end < len(b) && b[end] == '"' {
			if s.state = lexColon; s.depth <= 2 {
				s.haveKey(s.depth, b[i+1:end])
			}
			if end++; end < len(b) && b[end] == ':' {
				s.state = lexValue
				end++
			}
			return end
		}
		s.state, s.inKey = lexString, true
		s.key = s.key[:0]
	case c == '}' && s.state == lexFirstKey:
		s.close(s.base + i + 1)
	case !isSpace(c):
		s.state = lexBad
	}
	return i + 1
}

func (s *scanner) beforeValue(b []byte, i int) int {
	c := b[i]
	if isSpace(c) {
		return i + 1
	}
	if s.depth <= 2 {
		s.begin(s.depth, s.base+i, c)
	}
	switch {
	case c == '"':
		s.state, s.inKey = lexString, false
		return s.inside(b, i+1)
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
		s.state = when(s.object, lexKey, lexValue)
	case c == '}' && s.object, c == ']' && !s.object:
		s.close(s.base + i + 1)
	case !isSpace(c):
		s.state = lexBad
	}
	return i + 1
}

func (s *scanner) open(object bool) {
	if s.depth == maxDepth {
		s.state, s.tooDeep = lexBad, true
		return
	}
	level := s.depth
	s.object = object
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
	if s.depth--; s.depth > 0 {
		level := s.depth - 1
		s.object = s.objects[level/64]>>(level%64)&1 == 1
	}
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
		s.haveKey(s.depth, s.key[:len(s.key)-1])
	}
}

// inside reads the inside of a string up to its end or the end of the chunk.
func (s *scanner) inside(b []byte, i int) int {
	start := i
	for {
		if i += plain(b[i:]); i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			s.keep(b[start : i+1])
			s.stringEnds(s.base + i + 1)
			return i + 1
		case c == '\\':
			n := escapeLength(b[i:])
			if n == 0 { // bad, or cut
				s.keep(b[start : i+1])
				s.state = lexEscape
				return i + 1
			}
			i += n
		case c < utf8.RuneSelf: // a control character
			s.state = lexBad
			return i + 1
		default:
			n := multiByte(b[i:])
			if n == 0 {
				s.keep(b[start:i])
				s.state, s.partLen = lexRune, 0
				return i
			}
			i += n
		}
	}
	s.keep(b[start:])
	return len(b)
}

// escapeLength gives the length of the escape at the start of b, 0 when it is
// not whole or not one.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isHex(b[2]) && isHex(b[3]) && isHex(b[4]) && isHex(b[5]) {
			return 6
		}
	}
	return 0
}

// multiByte gives the length of the characters above ASCII at the start of b,
// 0 when the first is not whole or not valid.
func multiByte(b []byte) int {
	i := 0
	for i < len(b) && b[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
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
		if p := s.part[:s.partLen]; utf8.FullRune(p) { // also when it is not valid
			s.state = when(utf8.Valid(p), lexString, lexBad)
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
// string: no quote, backslash, control character or byte above ASCII.
func plain(b []byte) int {
	i := 0
	if len(b) >= 8 { // most strings are short
		if m := stops(binary.LittleEndian.Uint64(b)) & topBits; m != 0 {
			return bits.TrailingZeros64(m) / 8
		}
		i = 8
	}
	for ; i+32 <= len(b); i += 32 {
		c := b[i : i+32 : i+32]
		w, x := binary.LittleEndian.Uint64(c), binary.LittleEndian.Uint64(c[8:])
		y, z := binary.LittleEndian.Uint64(c[16:]), binary.LittleEndian.Uint64(c[24:])
		if (stops(w)|stops(x)|stops(y)|stops(z))&topBits != 0 {
			break
		}
	}
	for ; i+8 <= len(b); i += 8 {
		if m := stops(binary.LittleEndian.Uint64(b[i:i+8])) & topBits; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// stops sets the top bit of each of the eight bytes that is not plain. A byte
// before the first of them lends nothing to the next, so the lowest bit is
// exact; those above it need not be. Exchanging bit 1 puts the quote beside the
// control characters, so that one comparison finds both.
func stops(w uint64) uint64 {
	return ((w ^ 2*eachByte) - 0x21*eachByte) | ((w ^ '\\'*eachByte) - eachByte) | w
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
