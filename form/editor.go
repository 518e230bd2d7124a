package form

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An editor is the text being typed and the place in it. Bytes that are not UTF-8 are kept.
type editor struct {
	text string
	at   int // byte offset of the cursor
}

func newEditor(text string) editor { return editor{text: text, at: len(text)} }

// insert puts text at the cursor, or refuses it whole.
func (e *editor) insert(text string) error {
	if len(e.text)+len(text) > maxValue {
		return errors.New("longer than 64 KiB; nothing was added")
	}
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
	return nil
}

// paste inserts pasted text. Terminals send a line end as CR; a paste with no LF in it gets LF back, any other paste is
// kept byte for byte. A field of one line drops the line end that a copied line brings along, and refuses inner ones.
func (e *editor) paste(text string, multiline bool) error {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	if !multiline {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if strings.ContainsAny(text, "\r\n") {
			return fmt.Errorf("the paste has %s; this field takes one. Nothing was added", plural(countLines(text), "line"))
		}
	}
	return e.insert(text)
}

// before and after are the sizes of the characters beside the cursor, 0 at the ends.
func (e *editor) before() int {
	_, n := utf8.DecodeLastRuneInString(e.text[:e.at])
	return n
}

func (e *editor) after() int {
	_, n := utf8.DecodeRuneInString(e.text[e.at:])
	return n
}

func (e *editor) left()  { e.at -= e.before() }
func (e *editor) right() { e.at += e.after() }

// home and end move within the line.
func (e *editor) home() { e.at = strings.LastIndexByte(e.text[:e.at], '\n') + 1 }
func (e *editor) end() {
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		e.at += i
		return
	}
	e.at = len(e.text)
}

// erase removes n bytes before the cursor.
func (e *editor) erase(n int) {
	e.text = e.text[:e.at-n] + e.text[e.at:]
	e.at -= n
}

func (e *editor) backspace() { e.erase(e.before()) }
func (e *editor) delete()    { e.text = e.text[:e.at] + e.text[e.at+e.after():] }
func (e *editor) cutStart()  { e.text, e.at = e.text[e.at:], 0 }
func (e *editor) cutEnd()    { e.text = e.text[:e.at] }

// cutWord removes the word before the cursor with the spaces behind it.
func (e *editor) cutWord() {
	head := strings.TrimRightFunc(e.text[:e.at], unicode.IsSpace)
	head = head[:strings.LastIndexFunc(head, unicode.IsSpace)+1]
	e.erase(e.at - len(head))
}

// countLines counts lines ended by LF, CRLF or CR; a last one without an end counts.
func countLines(s string) int {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	n := strings.Count(s, "\n") + strings.Count(s, "\r")
	if s != "" && !strings.HasSuffix(s, "\n") && !strings.HasSuffix(s, "\r") {
		n++
	}
	return n
}
