package mount

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlEditor edits TOML: a map of servers is a table of tables, a list of them an
// array of tables; both may also stand inline.
type tomlEditor struct{}

func (tomlEditor) tree(src []byte) (any, error) {
	if err := tooDeep(src); err != nil {
		return nil, err
	}
	var m map[string]any
	if _, err := toml.Decode(string(src), &m); err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			return nil, broken(min(p.Position.Start, len(src)), "%s", p.Message)
		}
		return nil, broken(-1, "%v", err)
	}
	if len(m) == 0 {
		return nil, nil
	}
	return tomlTree(m), nil
}

func tomlTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[k] = tomlTree(x)
		}
		return m
	case []map[string]any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = tomlTree(x)
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = tomlTree(x)
		}
		return list
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return other{"float", strconv.FormatFloat(v, 'g', -1, 64)}
	case string, bool:
		return v
	}
	return other{fmt.Sprintf("%T", v), fmt.Sprint(v)}
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func (tomlEditor) insert(src []byte, p place, name string, e fields) ([]splice, error) {
	for _, st := range scanTOML(src) {
		if st.header || !slices.Equal(st.path, p.path) {
			continue
		}
		open := byte('{')
		item := tomlName(name) + " = " + tomlValue(e)
		if p.list {
			open, item = '[', tomlValue(e)
		}
		if src[st.value.start] != open {
			return nil, misshapen(st.value.start, "%q is not the table of servers that was expected here", strings.Join(p.path, "."))
		}
		return tomlInto(src, st.value, item), nil
	}
	tree, err := tomlEditor{}.tree(src)
	if err != nil {
		return nil, err
	}
	switch c := p.container(tree).(type) {
	case nil, map[string]any:
		if _, isMap := c.(map[string]any); isMap && p.list {
			return nil, misshapen(-1, "%q is a table where an array of tables was expected", strings.Join(p.path, "."))
		}
	case []any:
		if !p.list {
			return nil, misshapen(-1, "%q is an array where a table was expected", strings.Join(p.path, "."))
		}
	default:
		return nil, misshapen(-1, "%q is not a table", strings.Join(p.path, "."))
	}
	return []splice{{len(src), len(src), tomlBlock(src, p, name, e)}}, nil
}

// tomlInto puts an element into an array or inline table, behind the others.
func tomlInto(src []byte, at span, item string) []splice {
	have := tomlItems(src, at)
	if len(have) == 0 {
		if src[at.start] == '{' {
			item = " " + item + " "
		}
		return []splice{{at.start + 1, at.start + 1, item}}
	}
	last := have[len(have)-1]
	lead := string(src[spaceBefore(src, last.span.start):last.span.start])
	if !strings.Contains(lead, "\n") {
		lead = " "
	}
	if last.comma >= 0 {
		return []splice{{last.comma + 1, last.comma + 1, lead + item + ","}}
	}
	return []splice{{last.span.end, last.span.end, "," + lead + item}}
}

// tomlBlock is a table at the end of the text, a blank line before it.
func tomlBlock(src []byte, p place, name string, e fields) string {
	var b strings.Builder
	if n := len(src); n > 0 {
		if src[n-1] != '\n' {
			b.WriteString("\n")
		}
		if !isBlank(src) {
			b.WriteString("\n")
		}
	}
	names := make([]string, len(p.path))
	for i, key := range p.path {
		names[i] = tomlName(key)
	}
	header := strings.Join(names, ".")
	if p.list {
		fmt.Fprintf(&b, "[[%s]]\n", header)
	} else {
		fmt.Fprintf(&b, "[%s.%s]\n", header, tomlName(name))
	}
	for _, f := range e {
		fmt.Fprintf(&b, "%s = %s\n", tomlName(f.key), tomlValue(f.val))
	}
	return b.String()
}

func tomlName(key string) string {
	if key != "" && strings.IndexFunc(key, func(r rune) bool { return r > 0x7f || !isBare(byte(r)) }) < 0 {
		return key
	}
	return jsonString(key)
}

// tomlValue writes a value on one line.
func tomlValue(v any) string {
	if f, ok := pairs(v); ok {
		parts := make([]string, len(f))
		for i, x := range f {
			parts[i] = tomlName(x.key) + " = " + tomlValue(x.val)
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	if list, ok := elements(v); ok {
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = tomlValue(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return strings.ReplaceAll(scalar(v), "\x7f", `\u007f`)
}

// tomlPart is a piece of text that belongs to an entry.
type tomlPart struct {
	span   span
	header bool
	inline []tomlItem // the elements at these indexes of it, in their order
	drop   []int
}

// parts lists what belongs to the entry of a name.
func (tomlEditor) parts(src []byte, p place, name string) []tomlPart {
	var out []tomlPart
	all := scanTOML(src)
	if p.list {
		return tomlListParts(src, all, p, name)
	}
	full := append(slices.Clone(p.path), name)
	for _, st := range all {
		switch {
		case hasPrefix(st.path, full):
			if st.header || st.previous < 0 || !hasPrefix(all[st.previous].path, full) {
				out = append(out, tomlPart{span: st.line, header: st.header})
			} else if last := &out[len(out)-1]; last.header {
				last.span.end = st.line.end
			}
		case !st.header && hasPrefix(full, st.path) && src[st.value.start] == '{':
			out = append(out, tomlInline(src, st.value, full[len(st.path):])...)
		}
	}
	return out
}

// tomlInline finds the elements of an inline table that belong to a path.
func tomlInline(src []byte, at span, path []string) []tomlPart {
	have := tomlItems(src, at)
	here := tomlPart{inline: have}
	var out []tomlPart
	for i, it := range have {
		switch {
		case hasPrefix(it.key, path):
			here.drop = append(here.drop, i)
		case hasPrefix(path, it.key) && src[it.value.start] == '{':
			out = append(out, tomlInline(src, it.value, path[len(it.key):])...)
		}
	}
	if len(here.drop) > 0 {
		here.span = have[here.drop[0]].span
		out = append(out, here)
	}
	return out
}

// tomlListParts finds the element of an array of tables that has the name.
func tomlListParts(src []byte, all []tomlStatement, p place, name string) []tomlPart {
	named := func(v span) bool {
		var s struct{ K string }
		_, err := toml.Decode("K = "+string(src[v.start:v.end]), &s)
		return err == nil && s.K == name
	}
	var out []tomlPart
	for i, st := range all {
		switch {
		case !st.header && slices.Equal(st.path, p.path) && src[st.value.start] == '[':
			have := tomlItems(src, st.value)
			for k, it := range have {
				if src[it.value.start] == '{' && slices.ContainsFunc(tomlItems(src, it.value), func(m tomlItem) bool {
					return slices.Equal(m.key, []string{"name"}) && named(m.value)
				}) {
					out = append(out, tomlPart{span: it.span, inline: have, drop: []int{k}})
				}
			}
		case st.array && slices.Equal(st.path, p.path):
			part, found := tomlPart{span: st.line, header: true}, false
			for _, in := range all[i+1:] {
				if !hasPrefix(in.path, p.path) || in.array && len(in.path) == len(p.path) {
					break
				}
				part.span.end = in.line.end
				if !in.header && len(in.path) == len(p.path)+1 && in.path[len(p.path)] == "name" {
					found = found || named(in.value)
				}
			}
			if found {
				out = append(out, part)
			}
		}
	}
	return out
}

func (t tomlEditor) remove(src []byte, p place, name string) ([]splice, error) {
	if _, err := t.tree(src); err != nil {
		return nil, err
	}
	var out []splice
	for _, part := range t.parts(src, p, name) {
		switch from := part.span.start; {
		case part.inline != nil:
			out = append(out, tomlTakeOut(src, part)...)
		case part.header:
			out = append(out, splice{blankLineBefore(src, from), part.span.end, ""})
		default:
			out = append(out, splice{from, part.span.end, ""})
		}
	}
	return out, nil
}

// blankLineBefore moves over one blank line that ends at off.
func blankLineBefore(src []byte, off int) int {
	if off == 0 {
		return off
	}
	if begin := lineStart(src, off-1); isBlank(src[begin:off]) {
		return begin
	}
	return off
}

// tomlTakeOut removes elements with the commas that are needed no more; comments
// between them stay.
func tomlTakeOut(src []byte, p tomlPart) []splice {
	kept := len(p.inline) - 1 // the last one that stays
	for kept >= 0 && slices.Contains(p.drop, kept) {
		kept--
	}
	var out []splice
	for _, i := range p.drop {
		it := p.inline[i]
		from, to := spaceBefore(src, it.span.start), it.span.end
		if line := src[lineStart(src, from):from]; bytes.IndexByte(line, '#') >= 0 && bytes.IndexByte(src[from:it.span.start], '\n') >= 0 {
			from = lineStart(src, it.span.start) // the line above may end in a comment
		}
		if it.comma >= 0 && isBlank(src[to:it.comma]) {
			to = it.comma + 1
		} else if it.comma >= 0 {
			out = append(out, splice{it.comma, it.comma + 1, ""})
		}
		if end := spaceBehind(src, to); kept < 0 && i == len(p.inline)-1 && end < len(src) && (src[end] == ']' || src[end] == '}') {
			to = end
		}
		out = append(out, splice{from, to, ""})
	}
	if last := p.inline[len(p.inline)-1]; kept >= 0 && kept < len(p.inline)-1 && last.comma < 0 {
		out = append(out, splice{p.inline[kept].comma, p.inline[kept].comma + 1, ""})
	}
	return out
}

func spaceBehind(src []byte, off int) int {
	for off < len(src) && isBlank(src[off:off+1]) {
		off++
	}
	return off
}

func (t tomlEditor) where(src []byte, p place, name string) int {
	if _, err := t.tree(src); err != nil {
		return -1
	}
	if parts := t.parts(src, p, name); len(parts) > 0 {
		return parts[0].span.start
	}
	return -1
}
