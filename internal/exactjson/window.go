package exactjson

import (
	"bytes"
	"io"
)

// windowSize is how much of a document is read at a time.
const windowSize = 256 << 10

// readsMost is how often a reader may give neither a byte nor an error.
const readsMost = 100

// A window is the part of a document that is in memory: all of it, when there
// is no reader. It grows when a value is larger than it.
type window struct {
	src  []byte
	pos  int
	keep int // place from which the bytes are still needed; -1: from pos
	r    io.Reader
	size int   // of the first window
	err  error // what ended r

	base, lines, col int // of what stood before: bytes, line ends, bytes after the last one

	outside func([]byte)
	out     int  // up to where outside was given everything
	inside  bool // the array is being read
}

// fill reads on, at the cost of what stands before keep; false at the end.
func (w *window) fill() bool {
	if w.r == nil || w.err != nil {
		return false
	}
	w.forget()
	if len(w.src) == cap(w.src) {
		w.src = append(make([]byte, 0, max(w.size, 2*cap(w.src))), w.src...)
	}
	for range readsMost {
		n, err := w.r.Read(w.src[len(w.src):cap(w.src)])
		w.src, w.err = w.src[:len(w.src)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// forget makes room once half of the window is not needed any more.
func (w *window) forget() {
	drop := w.pos
	if w.keep >= 0 {
		drop = w.keep
	}
	if drop < cap(w.src)/2 {
		return
	}
	w.emit(drop)
	gone := w.src[:drop]
	if last := bytes.LastIndexByte(gone, '\n'); last >= 0 {
		w.lines += bytes.Count(gone, []byte{'\n'})
		w.col = drop - last - 1
	} else {
		w.col += drop
	}
	w.src = append(w.src[:0], w.src[drop:]...)
	w.base, w.pos = w.base+drop, w.pos-drop
	if w.out -= drop; w.keep >= 0 {
		w.keep = 0
	}
}

// emit gives what stands before a place to outside.
func (w *window) emit(to int) {
	if w.outside != nil && !w.inside && to > w.out {
		w.outside(w.src[w.out:to])
		w.out = to
	}
}

func (w *window) fail(msg string) error { return w.failAt(w.pos, msg) }

func (w *window) failAt(pos int, msg string) *SyntaxError {
	e := syntaxError(w.src, pos, msg)
	if e.Offset += w.base; e.Line == 1 {
		e.Col += w.col
	}
	e.Line += w.lines
	return e
}
