package launch

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080

	// laxKey is more than any spelling of a key that is looked for: six bytes a letter.
	laxKey = 128
)

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
	if s.inKey && s.depth <= 2 && !(s.lax && len(s.key) > laxKey) {
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
