package mount

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"skald-connectors/internal/exactjson"
)

// format is the language of a file.
type format uint8

const (
	strictJSON  format = iota // the client takes no comments
	commentJSON               // comments and trailing commas are normal
	tomlFormat
	yamlFormat
)

// editor knows one format. Texts have no byte order mark. Errors are *fault.
type editor interface {
	// tree reads the whole text strictly; repeated keys are refused.
	tree(src []byte) (any, error)
	// insert says what to put where, for an entry that is not there.
	insert(src []byte, p place, name string, e fields) ([]splice, error)
	// remove says what to take out, for one that is there once.
	remove(src []byte, p place, name string) ([]splice, error)
	// where is the offset of an entry, -1 when it is not there.
	where(src []byte, p place, name string) int
}

func editorOf(f format) editor {
	switch f {
	case commentJSON:
		return jsonEditor{comments: true}
	case tomlFormat:
		return tomlEditor{}
	case yamlFormat:
		return yamlEditor{}
	}
	return jsonEditor{}
}

// splice replaces src[start:end] with text, whose line ends are "\n".
type splice struct {
	start, end int
	text       string
}

// apply makes all changes at once; they do not overlap.
func apply(src []byte, changes []splice) []byte {
	slices.SortStableFunc(changes, func(a, b splice) int { return a.start - b.start })
	eol := lineEnd(src)
	var out bytes.Buffer
	at := 0
	for _, c := range changes {
		out.Write(src[at:c.start])
		out.WriteString(strings.ReplaceAll(c.text, "\n", eol))
		at = c.end
	}
	out.Write(src[at:])
	return out.Bytes()
}

// lineEnd is the one that the text uses first.
func lineEnd(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

const byteOrderMark = "\xef\xbb\xbf"

// body splits a byte order mark off and refuses what is not UTF-8.
func body(src []byte) (mark, text []byte, err error) {
	switch {
	case bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")):
		return nil, nil, broken(-1, "it is UTF-16 text, not UTF-8")
	case len(src) > 1 && (src[0] == 0 || src[1] == 0):
		return nil, nil, broken(-1, "it is UTF-16 text without a mark, or no text at all")
	case !utf8.Valid(src):
		return nil, nil, broken(exactjson.InvalidAt(src), "invalid UTF-8")
	}
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		return src[:len(byteOrderMark)], src[len(byteOrderMark):], nil
	}
	return nil, src, nil
}

// maxBrackets bounds nesting for parsers that have no bound of their own and recurse.
const maxBrackets = 10_000

// tooDeep tells whether brackets nest beyond all reason; those in strings count too,
// and none of them comes near.
func tooDeep(src []byte) error {
	depth := 0
	for i, c := range src {
		switch c {
		case '[', '{':
			if depth++; depth > maxBrackets {
				return broken(i, "nested deeper than %d", maxBrackets)
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return nil
}

// textEdit is one text with the rules for it.
type textEdit struct {
	ed    editor
	place place
}

// read gives the tree of a file's bytes.
func (t textEdit) read(src []byte) (any, error) {
	mark, text, err := body(src)
	if err != nil {
		return nil, err
	}
	tree, err := t.ed.tree(text)
	return tree, shifted(err, len(mark))
}

// shifted moves a fault behind the byte order mark.
func shifted(err error, by int) error {
	if f, ok := err.(*fault); ok && f.off >= 0 {
		f.off += by
	}
	return err
}

// set puts the entry in. old must not hold one of that name. The result was parsed
// again: ours reads back, all else has the same values.
func (t textEdit) set(old []byte, name string, e fields) ([]byte, error) {
	return t.edited(old, name, e.tree(), func(text []byte) ([]splice, error) { return t.ed.insert(text, t.place, name, e) })
}

// unset takes the entry out.
func (t textEdit) unset(old []byte, name string) ([]byte, error) {
	return t.edited(old, name, nil, func(text []byte) ([]splice, error) { return t.ed.remove(text, t.place, name) })
}

func (t textEdit) edited(old []byte, name string, want any, plan func(text []byte) ([]splice, error)) ([]byte, error) {
	mark, text, err := body(old)
	if err != nil {
		return nil, err
	}
	before, err := t.ed.tree(text)
	if err != nil {
		return nil, shifted(err, len(mark))
	}
	changes, err := plan(text)
	if err != nil {
		return nil, shifted(err, len(mark))
	}
	out := apply(text, changes)
	at := -1
	if len(changes) > 0 {
		at = changes[0].start + len(mark)
	}
	after, err := t.ed.tree(out)
	if err != nil {
		return nil, misshapen(at, "it cannot be edited safely here: the result would not be valid (%v)", err)
	}
	if !t.place.sameForeign(before, after, name) {
		return nil, misshapen(at, "it cannot be edited safely here: another part of it would change")
	}
	got, ok := t.place.find(after, name)
	if ok != (want != nil) || ok && !reflect.DeepEqual(got, want) || t.place.count(after, name) > 1 {
		return nil, misshapen(at, "it cannot be edited safely here: the entry would not read back")
	}
	return append(slices.Clone(mark), out...), nil
}

// line gives the place of an entry for messages.
func (t textEdit) line(src []byte, name string) (line, col int) {
	mark, text, err := body(src)
	if err != nil {
		return 0, 0
	}
	at := t.ed.where(text, t.place, name)
	if at < 0 {
		return 0, 0
	}
	return exactjson.Position(src, at+len(mark))
}
