package mount

import (
	"encoding/json"
	"errors"
	"slices"

	"skald-connectors/internal/exactjson"
)

// maxDepth bounds nesting; configurations have less than ten levels.
const maxDepth = 256

// repeatsLimit is the number of repeats that exactjson lists at most.
const repeatsLimit = 100

// jsonText is a parsed JSON text. clean has the same length as the source: comments
// and trailing commas are spaces in it, so that offsets agree.
type jsonText struct {
	src, clean []byte
	commas     []int // offsets of trailing commas
	lineEnds   []int // offsets at which line comments end
	root       exactjson.Value
	empty      bool // nothing but white space and comments
}

// scan reads a JSON text strictly.
func (j jsonEditor) scan(src []byte) (*jsonText, error) {
	t := &jsonText{src: src, clean: slices.Clone(src)}
	if err := t.blank(j.comments); err != nil {
		return nil, err
	}
	if isBlank(t.clean) {
		t.empty = true
		return t, nil
	}
	root, repeats, err := exactjson.Parse(t.clean, maxDepth)
	if err != nil {
		var s *exactjson.SyntaxError
		if errors.As(err, &s) {
			return nil, broken(s.Offset, "%s", s.Msg)
		}
		return nil, broken(-1, "%v", err)
	}
	for _, r := range repeats {
		if !r.CaseTwin {
			return nil, broken(r.Second, "the key %q stands here a second time", r.Key)
		}
	}
	if len(repeats) >= repeatsLimit {
		return nil, broken(-1, "more than %d keys that differ in case only", repeatsLimit)
	}
	t.root = root
	return t, nil
}

func isBlank(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// blank turns comments and trailing commas into spaces.
func (t *jsonText) blank(comments bool) error {
	comma := -1 // the last comma with nothing but space and comments behind it
	for i := 0; i < len(t.src); i++ {
		switch c := t.src[i]; c {
		case ' ', '\t', '\n', '\r':
		case '"':
			comma = -1
			i = stringEnd(t.src, i) - 1
		case ',':
			comma = i
		case '}', ']':
			if comma >= 0 && comments {
				t.clean[comma] = ' '
				t.commas = append(t.commas, comma)
			}
			comma = -1
		case '/':
			end := commentEnd(t.src, i)
			switch {
			case end < 0:
				return broken(i, "a comment without an end, or a stray slash")
			case !comments:
				return broken(i, "a comment, which this client does not take")
			}
			if t.src[i+1] == '/' {
				t.lineEnds = append(t.lineEnds, end)
			}
			for k := i; k < end; k++ {
				if t.clean[k] != '\n' && t.clean[k] != '\r' {
					t.clean[k] = ' '
				}
			}
			i = end - 1
		default:
			comma = -1
		}
	}
	return nil
}

// stringEnd is the offset behind the string that begins at i; the parser judges it.
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

// commentEnd is the offset behind the comment at i, -1 when there is none. The end
// of the line does not belong to a line comment.
func commentEnd(src []byte, i int) int {
	if i+1 >= len(src) {
		return -1
	}
	switch src[i+1] {
	case '/':
		for i < len(src) && src[i] != '\n' && src[i] != '\r' {
			i++
		}
		return i
	case '*':
		for k := i + 2; k+1 < len(src); k++ {
			if src[k] == '*' && src[k+1] == '/' {
				return k + 2
			}
		}
	}
	return -1
}

// jsonTree turns a parsed value into a tree.
func jsonTree(v exactjson.Value) any {
	switch v.Kind {
	case exactjson.Bool:
		return v.Str == "true"
	case exactjson.Number:
		return json.Number(v.Str)
	case exactjson.String:
		return v.Str
	case exactjson.Array:
		list := make([]any, len(v.Items))
		for i, item := range v.Items {
			list[i] = jsonTree(item)
		}
		return list
	case exactjson.Object:
		m := make(map[string]any, len(v.Members))
		for _, member := range v.Members {
			m[member.Key] = jsonTree(member.Value)
		}
		return m
	}
	return nil
}

// span is a byte range.
type span struct{ start, end int }

// items are the ranges of the members or elements of a container.
func items(v exactjson.Value) []span {
	var out []span
	for _, m := range v.Members {
		out = append(out, span{m.KeyStart, m.Value.End})
	}
	for _, i := range v.Items {
		out = append(out, span{i.Start, i.End})
	}
	return out
}

// indentAt is the white space with which the line of an offset begins.
func indentAt(src []byte, off int) string {
	begin := lineStart(src, off)
	end := begin
	for end < len(src) && (src[end] == ' ' || src[end] == '\t') {
		end++
	}
	return string(src[begin:end])
}

func lineStart(src []byte, off int) int {
	for off > 0 && src[off-1] != '\n' {
		off--
	}
	return off
}

// spaceBefore is the offset at which the white space that ends at off begins.
func spaceBefore(src []byte, off int) int {
	for off > 0 && (src[off-1] == ' ' || src[off-1] == '\t' || src[off-1] == '\n' || src[off-1] == '\r') {
		off--
	}
	return off
}
