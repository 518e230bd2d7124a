package exactjson

import (
	"bytes"
	"fmt"
)

// SyntaxError says where a document stops being JSON. Offset is in bytes from
// its start; Line and Col are 1-based, Col counted in bytes.
type SyntaxError struct {
	Offset, Line, Col int
	Msg               string
	// Repeat is set when the fault is a key that stands twice.
	Repeat *Repeat
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

func syntaxError(src []byte, off int, msg string) *SyntaxError {
	line, col := Position(src, off)
	return &SyntaxError{Offset: off, Line: line, Col: col, Msg: msg}
}

// Position turns a byte offset into a line and a column, both 1-based, the
// column counted in bytes. An offset outside the source is moved to its edge.
func Position(src []byte, off int) (line, col int) {
	off = min(max(off, 0), len(src))
	before := src[:off]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, off - bytes.LastIndexByte(before, '\n')
}
