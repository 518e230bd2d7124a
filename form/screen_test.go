package form

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// screenText is a small terminal: enough to know what a person would see of our output. Wide characters count as one.
type screenText struct {
	w, h    int
	cells   [][]rune
	x, y    int
	pending []byte
	modes   map[string]string // private mode → last of "h" and "l"
	lost    []string          // lines that went up into the scrollback
}

func newScreenText(w, h int) *screenText {
	s := &screenText{modes: map[string]string{}}
	s.resize(w, h)
	return s
}

func (s *screenText) resize(w, h int) {
	old := s.cells
	s.w, s.h = w, h
	s.cells = make([][]rune, h)
	for y := range s.cells {
		s.cells[y] = []rune(strings.Repeat(" ", w))
		if y < len(old) {
			copy(s.cells[y], old[y])
		}
	}
	s.x, s.y = min(s.x, w-1), min(s.y, h-1)
}

func (s *screenText) String() string {
	var b strings.Builder
	for _, row := range s.cells {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *screenText) write(p []byte) {
	p = append(s.pending, p...)
	for len(p) > 0 {
		n := s.one(p)
		if n == 0 {
			break
		}
		p = p[n:]
	}
	s.pending = append([]byte(nil), p...)
}

// one handles the first character or sequence and gives its length, 0 when it is not complete.
func (s *screenText) one(p []byte) int {
	switch p[0] {
	case 0x1b:
		return s.sequence(p)
	case '\r':
		s.x = 0
		return 1
	case '\n':
		s.down()
		return 1
	case '\b':
		s.x = max(s.x-1, 0)
		return 1
	}
	if !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	if s.x >= s.w {
		s.x = 0
		s.down()
	}
	s.cells[s.y][s.x] = r
	s.x++
	return n
}

func (s *screenText) down() {
	if s.y++; s.y < s.h {
		return
	}
	s.y = s.h - 1
	s.lost = append(s.lost, strings.TrimRight(string(s.cells[0]), " "))
	s.cells = append(s.cells[1:], []rune(strings.Repeat(" ", s.w)))
}

func (s *screenText) sequence(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	if p[1] != '[' {
		return 2
	}
	for i := 2; i < len(p); i++ {
		if p[i] >= 0x40 && p[i] <= 0x7e {
			s.control(string(p[2:i]), p[i])
			return i + 1
		}
	}
	return 0
}

func (s *screenText) control(params string, final byte) {
	n, _ := strconv.Atoi(params)
	switch final {
	case 'A':
		s.y = max(s.y-max(n, 1), 0)
	case 'K':
		from := min(s.x, s.w)
		if n == 2 {
			from = 0
		}
		s.blank(s.y, from)
	case 'J':
		s.blank(s.y, min(s.x, s.w))
		for y := s.y + 1; y < s.h; y++ {
			s.blank(y, 0)
		}
	case 'h', 'l':
		s.modes[strings.TrimPrefix(params, "?")] = string(final)
	}
}

func (s *screenText) blank(y, from int) {
	for x := from; x < s.w; x++ {
		s.cells[y][x] = ' '
	}
}

func TestScreenTextShowsWhatIsWritten(t *testing.T) {
	s := newScreenText(6, 3)
	s.write([]byte("one\r\ntwo\r\n\x1b[1mth"))
	s.write([]byte("ree\x1b[0m\r\x1b[1A\x1b[2KTWO\x1b[?25l"))
	if got := s.String(); got != "one\nTWO\nthree" || s.modes["25"] != "l" {
		t.Errorf("got %q, modes %v", got, s.modes)
	}
}
