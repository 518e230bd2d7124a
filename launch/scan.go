package launch

import "unicode/utf8"

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
