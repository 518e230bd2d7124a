package form

import (
	"image"
	"image/color"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/makiuchi-d/gozxing"
	zxing "github.com/makiuchi-d/gozxing/qrcode"

	"skald-connectors/internal/qrcode"
)

// messengerText has the shape and length of what a messenger asks a phone to read: 53 modules.
const messengerText = "2@Zk3wQ9vT7uYbN1mX5cR8sP0aL6dF4gH2jKpO4iU6yT8rE0wQ2lK4jH6gF8dS0aZ2xC4vB6nM8mN0bV2cX4zL6k==,q8W7e6R5t4Y3u2I1o0P9a8S7d6F5g4H3j2K1l0Z9x8C=,m7N6b5V4c3X2z1L0k9J8h7G6f5D4s3A2p1O0i9U8y7T=,r6E5w4Q3m2N1b0V9c8X7z6L5k4J3h2G1f0D9s8A7p6O=,1"

// A look is what a terminal makes of text without colours of its own.
type look struct{ ink, paper color.Gray }

var (
	darkLook  = look{ink: color.Gray{230}, paper: color.Gray{20}}
	lightLook = look{ink: color.Gray{20}, paper: color.Gray{250}}
)

const cellWidth, cellHeight = 6, 12

// photograph is a picture of a screen: text with the sequences that set colours, as a terminal shows it.
func photograph(lines []string, l look) image.Image {
	cols := 0
	for _, line := range lines {
		cols = max(cols, utf8.RuneCountInString(line))
	}
	img := image.NewGray(image.Rect(0, 0, (cols+4)*cellWidth, (len(lines)+4)*cellHeight))
	for i := range img.Pix {
		img.Pix[i] = l.paper.Y
	}
	ink, paper := l.ink, l.paper // colours go on over the end of a line
	for row, line := range lines {
		col := 0
		for line != "" {
			if strings.HasPrefix(line, "\x1b[") {
				codes, rest, _ := strings.Cut(line[2:], "m")
				ink, paper = colorsOf(codes, ink, paper, l)
				line = rest
				continue
			}
			r, n := utf8.DecodeRuneInString(line)
			line = line[n:]
			paintCell(img, (col+2)*cellWidth, (row+2)*cellHeight, r, ink, paper)
			col++
		}
	}
	return img
}

// colorsOf reads the sequences that a drawing writes, and what tmux makes of them.
func colorsOf(codes string, ink, paper color.Gray, l look) (color.Gray, color.Gray) {
	parts := strings.Split(codes, ";")
	for i := 0; i < len(parts); i++ {
		switch parts[i] {
		case "", "0":
			ink, paper = l.ink, l.paper
		case "39":
			ink = l.ink
		case "49":
			paper = l.paper
		case "38", "48":
			if i+2 >= len(parts) || parts[i+1] != "5" {
				continue
			}
			n, _ := strconv.Atoi(parts[i+2])
			shade := color.Gray{0}
			if n == 231 {
				shade = color.Gray{255}
			}
			if parts[i] == "38" {
				ink = shade
			} else {
				paper = shade
			}
			i += 2
		}
	}
	return ink, paper
}

// paintCell paints one character: block characters as their blocks, other text as a smudge.
func paintCell(img *image.Gray, x0, y0 int, r rune, ink, paper color.Gray) {
	w, h, bits := 1, 1, 0
	switch {
	case r == ' ':
	case r == '█':
		bits = 1
	case r == '▀' || r == '▄':
		w, h, bits = 1, 2, map[rune]int{'▀': 1, '▄': 2}[r]
	case r == '▌' || r == '▐':
		w, h, bits = 2, 1, map[rune]int{'▌': 1, '▐': 2}[r]
	case r >= 0x1fb00 && r <= 0x1fb3b:
		w, h = 2, 3
		for b := 1; b < 63; b++ {
			if sextant(b) == r {
				bits = b
			}
		}
	default:
		w, h, bits = 3, 4, 0b011110110000 // it only must not be mistaken for a block
	}
	for y := range cellHeight {
		for x := range cellWidth {
			shade := paper
			if bits&(1<<(y*h/cellHeight*w+x*w/cellWidth)) != 0 {
				shade = ink
			}
			img.SetGray(x0+x, y0+y, shade)
		}
	}
}

// phone reads a code off a picture, as a phone does; "" when there is none.
func phone(img image.Image) string {
	bits, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		return ""
	}
	found, err := zxing.NewQRCodeReader().Decode(bits, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_TRY_HARDER: true})
	if err != nil {
		return ""
	}
	return found.GetText()
}

func encode(t *testing.T, text string) *qrcode.Code {
	t.Helper()
	c, err := qrcode.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDrawingsAreRead(t *testing.T) {
	for _, text := range []string{"HELLO", "https://example.org/pair?token=0123456789abcdef", messengerText, strings.Repeat("longer than any messenger's. ", 20)} {
		c := encode(t, text)
		for name, s := range map[string]shape{"halves": halves, "sixths": sixths} {
			for _, quiet := range []int{2, 4} {
				for lookName, l := range map[string]look{"dark": darkLook, "light": lightLook} {
					inked := drawing{shape: s, quiet: quiet, ink: true, light: true}
					if got := phone(photograph(inked.lines(c), l)); got != text {
						t.Errorf("%.20q in %s, quiet zone %d, on %s: read as %.20q", text, name, quiet, lookName, got)
					}
					plain := drawing{shape: s, quiet: quiet, light: l == darkLook}
					if got := phone(photograph(plain.lines(c), l)); got != text {
						t.Errorf("%.20q in %s without colours, quiet zone %d, on %s: read as %.20q", text, name, quiet, lookName, got)
					}
				}
			}
		}
	}
}

func TestSextants(t *testing.T) {
	seen := map[rune]bool{}
	for bits := range 64 {
		r := sextant(bits)
		if seen[r] {
			t.Errorf("the pattern %06b has the character of another one", bits)
		}
		seen[r] = true
	}
	for bits, want := range map[int]rune{1: '🬀', 2: '🬁', 3: '🬂', 0b010100: '🬓', 0b010110: '🬔', 0b101001: '🬧', 0b101011: '🬨', 0b111110: '🬻'} {
		if got := sextant(bits); got != want {
			t.Errorf("%06b is %c (%U), want %c", bits, got, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		s                shape
		size, cols, rows int
		quiet            int
		ok               bool
	}{
		{halves, 29, 37, 19, 4, true},
		{halves, 29, 36, 19, 2, true},
		{halves, 29, 32, 17, 2, false},
		{halves, 53, 80, 24, 2, false},
		{sixths, 53, 80, 22, 4, true},
		{sixths, 53, 40, 19, 2, true},
		{sixths, 53, 28, 19, 2, false},
	} {
		if d, ok := fit(c.s, c.size, c.cols, c.rows); ok != c.ok || d.quiet != c.quiet {
			t.Errorf("%d modules, %d by %d, %d a cell: quiet zone %d, %v", c.size, c.cols, c.rows, c.s.h, d.quiet, ok)
		}
	}
}
