package form

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text of any origin safe to show on a terminal, on one line: control characters (C0, DEL, C1), bytes that
// are not UTF-8, direction overrides, tag characters, zero-width and other invisible characters become visible escapes
// such as \x1b, \u202e, \U000e0041. Everything else stays as it is. It is idempotent on its own output.
func Clean(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || unsafeRune(r) })
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for s = s[i:]; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unsafeRune(r):
			b.WriteString(escapeRune(r))
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// cleanText is Clean for text of several lines: line ends stay.
func cleanText(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = Clean(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

func escapeRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// unsafeRune tells whether a character acts on the terminal or on its neighbours instead of being seen.
func unsafeRune(r rune) bool {
	switch {
	case r == ' ':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	case r == 0x00ad, r == 0x034f, r == 0x061c, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800:
		return true // soft hyphen, joiners and fillers that show as nothing
	case r >= 0x17b4 && r <= 0x17b5, r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
		return true // invisible vowels, variation selectors, tags
	}
	// What is left of the unprintable: Cf, zero-width and direction marks; Zl and Zp, line ends by another name; Co and
	// unassigned ones, which have no agreed shape. Spaces of other widths are as harmless as the space.
	return !unicode.IsPrint(r) && !unicode.In(r, unicode.Zs)
}
