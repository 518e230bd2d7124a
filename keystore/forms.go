package keystore

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// minPattern is the shortest text that is looked for anywhere: shorter
	// ones are found in ordinary output by chance (launcher.md, Withholding).
	minPattern = 8
	// minLine is the shortest line of a multi-line value that is looked for by itself.
	minLine = 16
	// maxPattern bounds what a Writer holds back. Longer forms are looked for in pieces of this length.
	maxPattern = 256
	// maxOdd is the longest value for which the wasteful forms, every byte
	// escaped, are looked for.
	maxOdd = 1024
)

// forms gives every text under which a value of at least minPattern bytes is looked for:
// as it is, as JSON encoders and encoders of encoded JSON write it, as programming languages quote it, percent-encoded, as base64 at each of the three alignments,
// as hex, and each long line of it by itself.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	var out []string
	for _, text := range append(layouts(value), lines(value)...) {
		out = append(out, text)
		out = append(out, jsonForms(text)...)
		out = append(out, literalForms(text)...)
		out = append(out, percentForms(text)...)
	}
	for _, text := range base64Forms(value) {
		out = append(out, jsonForms(text)...)
		out = append(out, percentForms(text)...)
	}
	out = append(out, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	return out
}

// layouts gives a multi-line value with the line ends that programs make of
// it, and with its lines joined, as a key without its frame is.
func layouts(value string) []string {
	if !strings.ContainsAny(value, "\r\n") {
		return []string{value}
	}
	lf := strings.ReplaceAll(value, "\r\n", "\n")
	var joined strings.Builder
	for line := range strings.SplitSeq(lf, "\n") {
		if line = strings.TrimSpace(line); !isFrame(line) {
			joined.WriteString(line)
		}
	}
	return []string{value, lf, strings.ReplaceAll(lf, "\n", "\r\n"), joined.String()}
}

// lines gives the lines of a multi-line value that are long enough to be told
// from ordinary text. The frame of a PEM block is public.
func lines(value string) []string {
	if !strings.ContainsAny(value, "\r\n") {
		return nil
	}
	var out []string
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !isFrame(line) {
			out = append(out, line)
		}
	}
	return out
}

func isFrame(line string) bool { return strings.HasPrefix(line, "-----") }

// jsonStyle is what a JSON encoder escapes besides quote, backslash and
// control characters.
type jsonStyle struct {
	ascii  bool   // everything above U+007E
	upper  bool   // hex digits
	long   bool   // control characters never as \n, \t, …
	slash  bool   // "/" as "\/"
	escape string // these as \u00XX
	all    bool   // everything
}

// jsonStyles are habits of encoders in use: plain, Go and Rails, Python, PHP,
// Gson, .NET, PHP with its HEX flags; each with lower and upper case digits.
func jsonStyles() []jsonStyle {
	return []jsonStyle{
		{},
		{long: true},
		{escape: "<>&\u2028\u2029"},
		{ascii: true},
		{slash: true},
		{ascii: true, slash: true},
		{escape: "<>&='\u2028\u2029"},
		{ascii: true, escape: "\"&'+<>`"},
		{ascii: true, slash: true, escape: "\"&'<>"},
	}
}

func jsonForms(text string) []string {
	var out []string
	styles := jsonStyles()
	if len(text) <= maxOdd {
		styles = append(styles, jsonStyle{all: true})
	}
	for _, style := range styles {
		for _, upper := range []bool{false, true} {
			style.upper = upper
			once := style.encode(text)
			out = append(out, once)
			if once != text && !style.all { // a JSON text inside a JSON string
				out = append(out, jsonStyle{}.encode(once), jsonStyle{slash: true}.encode(once))
			}
		}
	}
	return out
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// encode writes text as the inside of a JSON string. Bytes that are not UTF-8
// stay: no encoder has an agreed way with them.
func (j jsonStyle) encode(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		short, has := shortEscapes[r]
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteByte(text[i])
		case j.all || strings.ContainsRune(j.escape, r):
			j.unicode(&b, r)
		case has && (!j.long || r == '"' || r == '\\'):
			b.WriteString(short)
		case r < 0x20 || j.ascii && r > 0x7e:
			j.unicode(&b, r)
		case r == '/' && j.slash:
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func (j jsonStyle) unicode(b *strings.Builder, r rune) {
	digits := lowerDigits
	if j.upper {
		digits = upperDigits
	}
	for _, u := range utf16.AppendRune(nil, r) {
		b.Write([]byte{'\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15]})
	}
}

// literalForms gives text as the inside of a string literal of Python, Ruby or
// JavaScript, which is how their error messages show values: "\" doubled, the
// one quote or the other escaped or neither, other characters as they are, as
// \xe9 or, in a literal of bytes, as \xc3\xa9.
func literalForms(text string) []string {
	var out []string
	for _, quote := range []string{"", "'", `"`} {
		for _, ascii := range []bool{false, true} {
			out = append(out, literal(text, quote, func(b *strings.Builder, r rune, raw string) {
				if ascii || r < 0x20 || r == 0x7f {
					escapeRune(b, r)
				} else {
					b.WriteString(raw)
				}
			}))
		}
		out = append(out, literal(text, quote, func(b *strings.Builder, _ rune, raw string) {
			for _, c := range []byte(raw) {
				b.Write([]byte{'\\', 'x', lowerDigits[c>>4], lowerDigits[c&15]})
			}
		}))
	}
	return out
}

// literal escapes backslash, quote and the white space that has a short
// escape; odd writes what is not printable ASCII.
func literal(text, quote string, odd func(b *strings.Builder, r rune, raw string)) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\\':
			b.WriteString(shortEscapes[r])
		case quote != "" && text[i:i+n] == quote:
			b.WriteString(`\` + quote)
		case r < 0x20 || r > 0x7e:
			odd(&b, r, text[i:i+n])
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r < 0x100:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// percentKept are the sets of punctuation that encoders leave: Go's and RFC 3986's
// unreserved, with the slash (Python), encodeURIComponent, encodeURI, HTML
// forms, Go's path segments, and none at all.
func percentKept() []string {
	return []string{"-_.~", "-_.~/", "-_.~!'()*", "-_.~!'()*;,/?:@&=+$#", "*-._", "-_.~$&+=:@", ""}
}

func percentForms(text string) []string {
	var out []string
	for _, digits := range []string{upperDigits, lowerDigits} {
		for _, kept := range percentKept() {
			once := percent(text, digits, func(c byte) bool { return isAlnum(c) || strings.IndexByte(kept, c) >= 0 })
			out = append(out, once, strings.ReplaceAll(once, "%20", "+"))
		}
		if len(text) <= maxOdd {
			out = append(out, percent(text, digits, func(byte) bool { return false }))
		}
	}
	return out
}

func percent(text, digits string, keep func(byte) bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; keep(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// base64Forms gives, for 0, 1 and 2 bytes before the value, the characters
// that depend on the value alone, in both alphabets.
func base64Forms(value string) []string {
	var out []string
	for before := range 3 {
		padded := append(make([]byte, before), value...)
		first, end := (before*8+5)/6, len(padded)*8/6
		out = append(out, base64.RawStdEncoding.EncodeToString(padded)[first:end],
			base64.RawURLEncoding.EncodeToString(padded)[first:end])
	}
	return out
}

// pieces cuts a long form into patterns that cover it.
func pieces(form string) []string {
	var out []string
	for len(form) > maxPattern {
		out = append(out, form[:maxPattern])
		form = form[min(maxPattern, len(form)-maxPattern):]
	}
	return append(out, form)
}
