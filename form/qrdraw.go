package form

import (
	"strings"

	"skald-connectors/internal/qrcode"
)

// A shape is how modules become characters: w by h of them in one. Cells of a terminal are about twice as high as
// wide, so half blocks have square modules; sixths are a quarter too high, which a camera does not mind, and need a
// third less height: a messenger's code then fits into 24 rows.
type shape struct {
	w, h  int
	glyph func(bits int) rune // bit y*w+x: the module is dark
}

var (
	halves = shape{1, 2, func(bits int) rune { return [...]rune{' ', '▀', '▄', '█'}[bits] }}
	sixths = shape{2, 3, sextant}
)

// sextant is the character of 2 by 3 blocks (Unicode 13, U+1FB00 to U+1FB3B): all patterns in order, but for those that
// older block characters show.
func sextant(bits int) rune {
	switch {
	case bits == 0:
		return ' '
	case bits == 0b010101:
		return '▌'
	case bits == 0b101010:
		return '▐'
	case bits == 0b111111:
		return '█'
	}
	at := rune(0x1fb00 + bits - 1)
	if bits > 0b010101 {
		at--
	}
	if bits > 0b101010 {
		at--
	}
	return at
}

// Black on white by number in the colour cube: unlike the first sixteen, themes leave these alone, so that a code is
// dark on light on every background.
const (
	inkOnPaper = "\x1b[38;5;16;48;5;231m"
	inkOff     = "\x1b[0m"
)

// A drawing is how one code is put on the screen.
type drawing struct {
	shape shape
	quiet int  // light modules around it: 4 by the standard; 2 do
	ink   bool // with colours of its own
	light bool // without colours: light modules are drawn, for a dark background
}

// cells is the room that a code of this many modules takes.
func (d drawing) cells(size int) (cols, rows int) {
	n := size + 2*d.quiet
	return (n + d.shape.w - 1) / d.shape.w, (n + d.shape.h - 1) / d.shape.h
}

// lines draws the code. Cells that reach beyond the quiet zone are light.
func (d drawing) lines(c *qrcode.Code) []string {
	cols, rows := d.cells(c.Size())
	out := make([]string, rows)
	for row := range out {
		var b strings.Builder
		if d.ink {
			b.WriteString(inkOnPaper)
		}
		for col := range cols {
			bits := 0
			for i := range d.shape.w * d.shape.h {
				x, y := col*d.shape.w+i%d.shape.w-d.quiet, row*d.shape.h+i/d.shape.w-d.quiet
				if c.Dark(x, y) != (d.light && !d.ink) {
					bits |= 1 << i
				}
			}
			b.WriteRune(d.shape.glyph(bits))
		}
		if d.ink {
			b.WriteString(inkOff)
		}
		out[row] = b.String()
	}
	return out
}

// fit chooses the quiet zone that the room has place for: the whole one, or half of it.
func fit(s shape, size, cols, rows int) (d drawing, ok bool) {
	for _, quiet := range []int{4, 2} {
		d = drawing{shape: s, quiet: quiet}
		if w, h := d.cells(size); w <= cols && h <= rows {
			return d, true
		}
	}
	return d, false
}
