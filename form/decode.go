package form

import (
	"bytes"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"

	// maxPaste bounds what one paste may hold in memory. It is above maxValue, so that a paste which is too long is
	// refused as such and not cut to one that fits.
	maxPaste = 4 * maxValue
	// maxSequence is the longest escape sequence that is waited for. Keys have under 16 bytes; the rest is noise from
	// a terminal that answers a question of an earlier program.
	maxSequence = 256
)

// A decoder turns the bytes of a raw terminal into key presses and pastes (tea.KeyPressMsg, tea.PasteMsg).
// It keeps the bytes of a paste as they are; a byte that is not UTF-8 becomes the text of a key press.
type decoder struct {
	buf     []byte
	pasting bool
	paste   []byte
}

func (d *decoder) feed(b []byte) { d.buf = append(d.buf, b...) }

// rest gives back what was not decoded, in a form that feed accepts.
func (d *decoder) rest() []byte {
	if !d.pasting {
		return d.buf
	}
	return append(append([]byte(pasteStart), d.paste...), d.buf...)
}

// next decodes one message. ok is false when more bytes are needed; waiting tells that a timeout may decide (an escape
// key looks like the start of a sequence). expired says that this timeout has passed.
func (d *decoder) next(expired bool) (msg tea.Msg, ok, waiting bool) {
	for len(d.buf) > 0 {
		if d.pasting {
			if !d.takePaste() {
				return nil, false, false
			}
			msg := tea.PasteMsg{Content: string(d.paste)}
			d.paste, d.pasting = nil, false
			return msg, true, false
		}
		if bytes.HasPrefix(d.buf, []byte(pasteStart)) {
			d.buf, d.pasting = d.buf[len(pasteStart):], true
			continue
		}
		n, key, known := decodeKey(d.buf, expired)
		if n == 0 {
			return nil, false, true
		}
		d.buf = d.buf[n:]
		if known {
			return key, true, false
		}
	}
	return nil, false, false
}

// takePaste moves bytes into the paste and tells whether its end was seen. Over the limit bytes are counted by one only.
func (d *decoder) takePaste() bool {
	end := bytes.Index(d.buf, []byte(pasteEnd))
	take := end
	if end < 0 {
		take = len(d.buf) - partialSuffix(d.buf, pasteEnd)
	}
	if room := maxPaste - len(d.paste); room > 0 {
		d.paste = append(d.paste, d.buf[:min(take, room)]...)
	}
	d.buf = d.buf[take:]
	if end < 0 {
		return false
	}
	d.buf = d.buf[len(pasteEnd):]
	return true
}

// partialSuffix is the length of the longest end of b that begins mark.
func partialSuffix(b []byte, mark string) int {
	for n := min(len(mark)-1, len(b)); n > 0; n-- {
		if bytes.HasSuffix(b, []byte(mark[:n])) {
			return n
		}
	}
	return 0
}

// decodeKey decodes the key at the start of b. n is 0 when it may be incomplete and the wait has not expired.
func decodeKey(b []byte, expired bool) (n int, key tea.KeyPressMsg, known bool) {
	switch c := b[0]; {
	case c == 0x1b:
		return decodeEscape(b, expired)
	case c == '\r':
		return 1, tea.KeyPressMsg{Code: tea.KeyEnter}, true
	case c == '\t':
		return 1, tea.KeyPressMsg{Code: tea.KeyTab}, true
	case c == 0x7f || c == 0x08:
		return 1, tea.KeyPressMsg{Code: tea.KeyBackspace}, true
	case c > 0 && c < 0x1b:
		return 1, tea.KeyPressMsg{Code: rune(c) + 'a' - 1, Mod: tea.ModCtrl}, true
	case c < 0x20:
		return 1, tea.KeyPressMsg{}, false
	}
	if !utf8.FullRune(b) && !expired {
		return 0, tea.KeyPressMsg{}, false
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		r = tea.KeyExtended // not UTF-8: kept as it is, the field's check names it
	}
	return n, tea.KeyPressMsg{Code: r, Text: string(b[:n])}, true
}

// decodeEscape decodes what begins with ESC: the key itself, Alt with a key, or a sequence.
func decodeEscape(b []byte, expired bool) (n int, key tea.KeyPressMsg, known bool) {
	esc := tea.KeyPressMsg{Code: tea.KeyEscape}
	if len(b) == 1 {
		if !expired {
			return 0, esc, false
		}
		return 1, esc, true
	}
	switch c := b[1]; {
	case c == '[':
		n = csiEnd(b)
	case c == 'O':
		n = min(len(b), 3)
		if n < 3 {
			n = 0
		}
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X':
		n = stringEnd(b)
	case c == 0x1b:
		return 1, esc, true
	default:
		n, key, known = decodeKey(b[1:], expired)
		if n > 0 {
			key.Mod |= tea.ModAlt
			key.Text = ""
			return n + 1, key, known
		}
	}
	switch {
	case n > 0:
		code, found := sequences[string(b[1:n])]
		return n, code, found
	case !expired && len(b) < maxSequence:
		return 0, esc, false
	}
	return len(b), esc, false // a sequence that never ended
}

// csiEnd is the length of a complete control sequence, 0 when its end is missing.
func csiEnd(b []byte) int {
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
		if b[i] < 0x20 || b[i] > 0x7e {
			return i // broken off by something else
		}
	}
	return 0
}

// stringEnd is the length of a complete OSC, DCS or similar string, which ends in BEL or ESC \.
func stringEnd(b []byte) int {
	for i := 2; i < len(b); i++ {
		switch {
		case b[i] == 0x07:
			return i + 1
		case b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\':
			return i + 2
		}
	}
	return 0
}

// sequences are the keys that a form knows, without their ESC.
var sequences = map[string]tea.KeyPressMsg{
	"[A": {Code: tea.KeyUp}, "OA": {Code: tea.KeyUp},
	"[B": {Code: tea.KeyDown}, "OB": {Code: tea.KeyDown},
	"[C": {Code: tea.KeyRight}, "OC": {Code: tea.KeyRight},
	"[D": {Code: tea.KeyLeft}, "OD": {Code: tea.KeyLeft},
	"[H": {Code: tea.KeyHome}, "OH": {Code: tea.KeyHome}, "[1~": {Code: tea.KeyHome}, "[7~": {Code: tea.KeyHome},
	"[F": {Code: tea.KeyEnd}, "OF": {Code: tea.KeyEnd}, "[4~": {Code: tea.KeyEnd}, "[8~": {Code: tea.KeyEnd},
	"[3~": {Code: tea.KeyDelete},
	"[5~": {Code: tea.KeyPgUp}, "[6~": {Code: tea.KeyPgDown},
	"[Z": {Code: tea.KeyTab, Mod: tea.ModShift},
	"OM": {Code: tea.KeyEnter},
}
