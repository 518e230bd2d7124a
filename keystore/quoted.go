package keystore

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Values of fewer than minPattern bytes are found only as whole JSON strings:
// anywhere else they would be found by chance. A string does not go beyond a
// line, so a line that is not JSON disturbs no other line.

// maxQuoted is the longest inside of a JSON string that can be a short value:
// seven bytes as \u00XX are 42.
const maxQuoted = 48

// quotes is where a text stands at its end.
type quotes struct {
	inside bool // in a string that is too long to be a short value
	escape bool // behind a backslash in it
}

// quoted goes through b and calls hit with the inside of each JSON string that
// is a short value. It gives how much of b is decided; the rest may be the
// start of one, and is at most maxQuoted+1 bytes. With final everything is decided.
func (r *patterns) quoted(b []byte, q *quotes, final bool, hit func(span)) (decided int) {
	pos := 0
	for pos < len(b) {
		if q.inside {
			pos = q.leave(b, pos)
			continue
		}
		open := bytes.IndexByte(b[pos:], '"')
		if open < 0 {
			return len(b)
		}
		open += pos
		end := closing(b[open+1:])
		switch {
		case end >= 0:
			end += open + 1
			if id, is := r.short(b[open+1 : end]); is && b[end] == '"' {
				hit(span{open + 1, end, id})
			}
			pos = end + 1
		case end == tooLong:
			q.inside = true
			pos = open + 1
		case final:
			return len(b)
		default:
			return open
		}
	}
	return pos
}

// What closing gives when there is no end.
const (
	cutOff  = -1 // b ends before
	tooLong = -2
)

// closing gives the place of the quote or line end that ends a string whose
// inside begins with b.
func closing(b []byte) int {
	escape := false
	for i, c := range b {
		switch {
		case c == '\n' || c == '"' && !escape:
			return i
		case i == maxQuoted:
			return tooLong
		}
		escape = c == '\\' && !escape
	}
	return cutOff
}

// leave goes on to the end of a long string, or of b.
func (q *quotes) leave(b []byte, pos int) int {
	for ; pos < len(b); pos++ {
		c := b[pos]
		if c == '\n' || c == '"' && !q.escape {
			*q = quotes{}
			return pos + 1
		}
		q.escape = c == '\\' && !q.escape
	}
	return pos
}

// short looks up the inside of a JSON string.
func (r *patterns) short(inside []byte) (id int, is bool) {
	if bytes.IndexByte(inside, '\\') < 0 {
		id, is = r.shorts[string(inside)]
		return id, is
	}
	var text string
	if json.Unmarshal([]byte(`"`+string(inside)+`"`), &text) != nil {
		return 0, false
	}
	id, is = r.shorts[text]
	return id, is
}

// addShort notes a short value with and without the white space around it.
func (r *patterns) addShort(value string, id int) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if _, has := r.shorts[v]; !has {
			r.shorts[v] = id
		}
	}
}
