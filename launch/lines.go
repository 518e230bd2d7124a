package launch

import (
	"bytes"
	"errors"
	"io"
)

const (
	// firstBuffer is enough for the messages of nearly every session.
	firstBuffer = 64 << 10
	// heldLimit is the length up to which a line of the upstream is held whole
	// (launcher.md, section 3).
	heldLimit = 1 << 20
	// lineLimit bounds a line in both directions (launcher.md, section 2).
	lineLimit = 64 << 20
)

var errLong = errors.New("the line is longer than it may be")

// lines reads lines into one buffer that it uses again. What it hands out is
// valid until the next read.
type lines struct {
	r      io.Reader
	buf    []byte
	start  int // of the next line
	end    int // of what was read
	sought int // up to here there is no line end
	newEnd int // offset behind the line end that was found, 0 = none
	err    error
	early  func(part []byte) // is given a long line while it comes in; may be nil
	given  int               // so much of the line at hand was given
}

func newLines(r io.Reader) *lines { return &lines{r: r, buf: make([]byte, firstBuffer)} }

// more reports that a whole line is at hand without reading.
func (l *lines) more() bool {
	if l.newEnd == 0 {
		from := max(l.sought, l.start)
		if n := bytes.IndexByte(l.buf[from:l.end], '\n'); n >= 0 {
			l.newEnd = from + n + 1
		}
		l.sought = l.end
	}
	return l.newEnd > 0
}

// next gives the next line, its end included; the last one may have none. It
// gives errLong when more than limit bytes are there without an end: rest has
// them, and next may be called again with a higher limit.
func (l *lines) next(limit int) ([]byte, error) {
	for !l.more() {
		if size := l.end - l.start; l.early != nil && size >= firstBuffer/2 && size > l.given {
			l.early(l.buf[l.start+l.given : l.end])
			l.given = size
		}
		switch {
		case l.end-l.start > limit:
			return nil, errLong
		case l.err != nil && l.start < l.end:
			line := l.buf[l.start:l.end]
			l.start = l.end
			return line, nil
		case l.err != nil:
			return nil, l.err
		}
		l.read(limit)
	}
	line := l.buf[l.start:l.newEnd]
	l.start, l.sought, l.newEnd = l.newEnd, l.newEnd, 0
	if len(line) > limit {
		return line, errLong
	}
	return line, nil
}

// rest is what is there of a line without an end.
func (l *lines) rest() []byte { return l.buf[l.start:l.end] }

// whole is all complete lines that are at hand.
func (l *lines) whole() []byte {
	n := bytes.LastIndexByte(l.buf[l.start:l.end], '\n')
	return l.buf[l.start : l.start+n+1]
}

// read fills the buffer up once, after making place.
func (l *lines) read(limit int) {
	if l.start == l.end {
		l.start, l.end, l.sought = 0, 0, 0
		if len(l.buf) > heldLimit+firstBuffer {
			l.buf = make([]byte, firstBuffer) // after a giant
		}
	}
	if l.end == len(l.buf) {
		l.grow(limit)
	}
	l.fill()
}

// grow moves the open line to the start, into a larger buffer when it fills
// this one.
func (l *lines) grow(limit int) {
	size := len(l.buf)
	if l.start < size/2 {
		size = max(min(4*size, limit+firstBuffer), size+firstBuffer)
	}
	to := l.buf
	if size > len(l.buf) {
		to = make([]byte, size)
	}
	l.end = copy(to, l.buf[l.start:l.end])
	l.buf, l.sought, l.start = to, max(l.sought-l.start, 0), 0
}

func (l *lines) fill() {
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	l.err = err
}

// chunk gives up to n bytes of a line that is not held: as much as is there, at
// most to its end. last says that the end is in it.
func (l *lines) chunk() (part []byte, last bool, err error) {
	for l.start == l.end {
		if l.err != nil {
			return nil, true, l.err
		}
		l.start, l.end, l.sought, l.newEnd = 0, 0, 0, 0
		l.fill()
	}
	end := l.end
	if last = l.more(); last {
		end = l.newEnd
	}
	part = l.buf[l.start:end]
	l.start, l.sought, l.newEnd = end, end, 0
	return part, last, nil
}
