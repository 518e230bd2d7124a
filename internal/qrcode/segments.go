package qrcode

import (
	"strings"
	"unicode/utf8"

	"rsc.io/qr/coding"
)

// Modes of a segment (ISO/IEC 18004, section 7.4).
const (
	modeEnd     = 0
	modeNumber  = 1
	modeLetters = 2
	modeBytes   = 4
	modeCharset = 7 // ECI

	charsetUTF8 = 26
)

// letters is the alphabet of modeLetters.
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"

// bitReader reads numbers of some bits; what is not there is zero and makes it short.
type bitReader struct {
	data  []byte
	at    int
	short bool
}

func (b *bitReader) read(n int) (v int) {
	if b.at+n > 8*len(b.data) {
		b.short, b.at = true, 8*len(b.data)
		return 0
	}
	for range n {
		v = v<<1 | int(b.data[b.at/8]>>(7-b.at%8)&1)
		b.at++
	}
	return v
}

func (b *bitReader) left() int { return 8*len(b.data) - b.at }

// readSegments reads the content of a code; ok is false for one that is cut, for Kanji, and for text that is not UTF-8.
func readSegments(data []byte, v coding.Version) (text string, ok bool) {
	class := 0
	switch {
	case v > 26:
		class = 2
	case v > 9:
		class = 1
	}
	b, out := &bitReader{data: data}, strings.Builder{}
	for b.left() >= 4 {
		switch b.read(4) {
		case modeEnd:
			return out.String(), out.Len() > 0 && utf8.ValidString(out.String())
		case modeNumber:
			b.number(&out, b.read(10+2*class))
		case modeLetters:
			b.letters(&out, b.read(9+2*class))
		case modeBytes:
			for range min(b.read([]int{8, 16, 16}[class]), len(data)) {
				out.WriteByte(byte(b.read(8)))
			}
		case modeCharset:
			if b.read(8) != charsetUTF8 {
				return "", false
			}
		default:
			return "", false
		}
		if b.short {
			return "", false
		}
	}
	return out.String(), out.Len() > 0 && utf8.ValidString(out.String())
}

func (b *bitReader) number(out *strings.Builder, count int) {
	for ; count > 0 && !b.short; count -= 3 {
		digits := min(count, 3)
		v := b.read([]int{0, 4, 7, 10}[digits])
		text := []byte{byte('0' + v/100%10), byte('0' + v/10%10), byte('0' + v%10)}
		out.Write(text[3-digits:])
	}
}

func (b *bitReader) letters(out *strings.Builder, count int) {
	const n = len(letters)
	for ; count > 0 && !b.short; count -= 2 {
		if count == 1 {
			out.WriteByte(letters[b.read(6)%n])
			return
		}
		v := b.read(11)
		out.WriteByte(letters[v/n%n])
		out.WriteByte(letters[v%n])
	}
}
