package exactjson

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string in double quotes and decodes it.
func (p *parser) string() (string, error) {
	src, start := p.src, p.pos+1
	for i := start; i < len(src); i++ {
		c := src[i]
		if c != '"' && c != '\\' && c >= 0x20 {
			continue
		}
		p.pos = i
		switch c {
		case '"':
			p.pos++
			return p.text[start:i], nil
		case '\\':
			return p.escaped(start)
		}
		return "", p.fail("a control character inside a string")
	}
	p.pos = len(src)
	return "", p.fail("the document ends inside a string")
}

// escaped goes on with a string that holds an escape; start is its first byte.
func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			b.WriteString(p.text[start:p.pos])
			p.pos++
			return b.String(), nil
		case c == '\\':
			b.WriteString(p.text[start:p.pos])
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			start = p.pos
		case c < 0x20:
			return "", p.fail("a control character inside a string")
		default:
			p.pos++
		}
	}
	return "", p.fail("the document ends inside a string")
}

// escape reads one escape sequence. A surrogate without its partner is U+FFFD.
func (p *parser) escape() (rune, error) {
	p.pos++
	c := p.peek()
	if c == 'u' {
		return p.unicodeEscape()
	}
	const codes, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(codes, c)
	if i < 0 {
		return 0, p.fail("an unknown escape inside a string")
	}
	p.pos++
	return rune(meanings[i]), nil
}

func (p *parser) unicodeEscape() (rune, error) {
	p.pos++
	r, ok := p.hex4(p.pos)
	if !ok {
		return 0, p.fail(`expected four hexadecimal digits after "\u"`)
	}
	p.pos += 4
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if strings.HasPrefix(p.text[p.pos:], `\u`) {
		if low, ok := p.hex4(p.pos + 2); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				p.pos += 6
				return both, nil
			}
		}
	}
	return utf8.RuneError, nil
}

func (p *parser) hex4(at int) (rune, bool) {
	if at+4 > len(p.src) {
		return 0, false
	}
	var r rune
	for _, c := range p.src[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
