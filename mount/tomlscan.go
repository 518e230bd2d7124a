package mount

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlStatement is one header or one key with its value.
type tomlStatement struct {
	header   bool
	array    bool     // [[header]]
	path     []string // from the root
	line     span     // whole lines, the final line end included
	value    span     // of a key
	previous int      // index of the header that it stands under, -1 for the root
}

// tomlScanner finds where statements begin and end in a text that the parser has
// accepted; it judges nothing.
type tomlScanner struct {
	src []byte
	pos int
}

func scanTOML(src []byte) []tomlStatement {
	s := &tomlScanner{src: src}
	var out []tomlStatement
	var table []string
	under := -1
	for {
		s.space(true)
		if s.pos >= len(src) {
			return out
		}
		begin := s.pos
		st := tomlStatement{previous: under}
		if src[s.pos] == '[' {
			st.header = true
			s.pos++
			if s.pos < len(src) && src[s.pos] == '[' {
				st.array = true
				s.pos++
			}
			table = s.key()
			st.path = table
			under = len(out)
			for s.pos < len(src) && src[s.pos] == ']' {
				s.pos++
			}
		} else {
			st.path = append(append([]string{}, table...), s.key()...)
			s.pos++ // =
			s.space(false)
			st.value.start = s.pos
			s.value()
			st.value.end = s.pos
		}
		if s.pos <= begin { // cannot happen in a valid text
			return out
		}
		s.toLineEnd()
		st.line = span{lineStart(src, begin), s.pos}
		out = append(out, st)
	}
}

// space skips blanks and comments, with lines also line ends.
func (s *tomlScanner) space(lines bool) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t':
			s.pos++
		case lines && (c == '\n' || c == '\r'):
			s.pos++
		case lines && c == '#':
			for s.pos < len(s.src) && s.src[s.pos] != '\n' {
				s.pos++
			}
		default:
			return
		}
	}
}

func (s *tomlScanner) toLineEnd() {
	for s.pos < len(s.src) {
		s.pos++
		if s.src[s.pos-1] == '\n' {
			return
		}
	}
}

// key reads a dotted key and stops at what follows it.
func (s *tomlScanner) key() []string {
	var path []string
	for s.pos < len(s.src) {
		s.space(false)
		begin := s.pos
		switch {
		case s.pos >= len(s.src):
			return path
		case s.src[s.pos] == '"' || s.src[s.pos] == '\'':
			s.quoted()
		default:
			for s.pos < len(s.src) && isBare(s.src[s.pos]) {
				s.pos++
			}
		}
		path = append(path, tomlKey(s.src[begin:s.pos]))
		s.space(false)
		if s.pos >= len(s.src) || s.src[s.pos] != '.' {
			return path
		}
		s.pos++
	}
	return path
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// tomlKey gives the text of one part of a key.
func tomlKey(part []byte) string {
	if len(part) == 0 || part[0] != '"' && part[0] != '\'' {
		return string(part)
	}
	var v struct{ K string }
	if _, err := toml.Decode("K = "+string(part), &v); err != nil {
		return string(part)
	}
	return v.K
}

// quoted skips a string of any of the four kinds.
func (s *tomlScanner) quoted() {
	q := s.src[s.pos]
	if triple := bytes.Repeat([]byte{q}, 3); bytes.HasPrefix(s.src[s.pos:], triple) {
		s.pos += 3
		for s.pos < len(s.src) && !bytes.HasPrefix(s.src[s.pos:], triple) {
			if s.src[s.pos] == '\\' && q == '"' {
				s.pos++
			}
			s.pos++
		}
		for s.pos < len(s.src) && s.src[s.pos] == q { // up to two quotes may belong to the text
			s.pos++
		}
		return
	}
	for s.pos++; s.pos < len(s.src) && s.src[s.pos] != q; s.pos++ {
		if s.src[s.pos] == '\\' && q == '"' {
			s.pos++
		}
	}
	s.pos = min(s.pos+1, len(s.src))
}

// value skips one value.
func (s *tomlScanner) value() {
	if s.pos >= len(s.src) {
		return
	}
	switch c := s.src[s.pos]; c {
	case '"', '\'':
		s.quoted()
	case '[', '{':
		s.list(c == '{', nil)
	default:
		for s.pos < len(s.src) && !strings.ContainsRune(",]}#\r\n", rune(s.src[s.pos])) {
			s.pos++
		}
		for s.src[s.pos-1] == ' ' || s.src[s.pos-1] == '\t' {
			s.pos--
		}
	}
}

// tomlItem is one element of an array or an inline table.
type tomlItem struct {
	key   []string // of an inline table
	span  span
	value span
	comma int // offset of the comma behind it, -1 when there is none
}

// list skips an array or an inline table and gives its elements to each.
func (s *tomlScanner) list(table bool, each func(tomlItem)) {
	s.pos++
	for s.pos < len(s.src) {
		s.space(true)
		if s.pos >= len(s.src) || s.src[s.pos] == ']' || s.src[s.pos] == '}' {
			break
		}
		it := tomlItem{comma: -1}
		it.span.start = s.pos
		if table {
			it.key = s.key()
			s.pos++ // =
			s.space(false)
		}
		it.value.start = s.pos
		s.value()
		if s.pos <= it.span.start {
			return
		}
		it.span.end, it.value.end = s.pos, s.pos
		s.space(true)
		if s.pos < len(s.src) && s.src[s.pos] == ',' {
			it.comma = s.pos
			s.pos++
		}
		if each != nil {
			each(it)
		}
	}
	s.pos = min(s.pos+1, len(s.src))
}

// tomlItems lists the elements of the array or inline table at a range.
func tomlItems(src []byte, at span) []tomlItem {
	var out []tomlItem
	s := &tomlScanner{src: src, pos: at.start}
	s.list(src[at.start] == '{', func(it tomlItem) { out = append(out, it) })
	return out
}
