package mount

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

// jsonEditor edits JSON, with comments and trailing commas where the client takes
// them.
type jsonEditor struct{ comments bool }

func (j jsonEditor) tree(src []byte) (any, error) {
	t, err := j.scan(src)
	if err != nil {
		return nil, err
	}
	if t.empty {
		return nil, nil
	}
	return jsonTree(t.root), nil
}

func (j jsonEditor) insert(src []byte, p place, name string, e fields) ([]splice, error) {
	t, err := j.scan(src)
	if err != nil {
		return nil, err
	}
	if t.empty {
		return t.fill(nested(p, name, e)), nil
	}
	at := t.root
	for i, key := range p.path {
		if at.Kind != exactjson.Object {
			return nil, misshapen(at.Start, "%s where an object was expected", at.Kind)
		}
		child, ok := at.Get(key)
		if !ok {
			return t.add(at, key, nested(place{p.path[i+1:], p.list}, name, e)), nil
		}
		if child.Kind == exactjson.Null {
			return t.fillNull(at, child, nested(place{p.path[i+1:], p.list}, name, e)), nil
		}
		at = child
	}
	switch {
	case p.list && at.Kind == exactjson.Array:
		return t.add(at, "", e), nil
	case !p.list && at.Kind == exactjson.Object:
		return t.add(at, name, e), nil
	}
	want := exactjson.Object
	if p.list {
		want = exactjson.Array
	}
	return nil, misshapen(at.Start, "%s where %s of servers was expected", at.Kind, want)
}

// nested wraps an entry into the containers that are missing.
func nested(p place, name string, e fields) any {
	var v any = fields{{name, e}}
	if p.list {
		v = []any{e}
	}
	for _, key := range slices.Backward(p.path) {
		v = fields{{key, v}}
	}
	return v
}

// fill writes a whole document behind what there is, white space and comments.
func (t *jsonText) fill(v any) []splice {
	text := jsonPrint(v, "", "  ", false) + "\n"
	if n := len(t.src); n > 0 && t.src[n-1] != '\n' {
		text = "\n" + text
	}
	return []splice{{len(t.src), len(t.src), text}}
}

func (t *jsonText) fillNull(parent, null exactjson.Value, v any) []splice {
	if !bytes.ContainsRune(t.src, '\n') {
		return []splice{{null.Start, null.End, jsonLine(v, t.compact())}}
	}
	return []splice{{null.Start, null.End, jsonPrint(v, indentAt(t.src, null.Start), t.unit(), false)}}
}

// add puts a member (or an element, when key is "") behind the others.
func (t *jsonText) add(c exactjson.Value, key string, v any) []splice {
	have := items(c)
	if len(have) == 0 {
		return t.addFirst(c, key, v)
	}
	last := have[len(have)-1]
	from := spaceBefore(t.clean, last.start)
	lead := string(t.clean[from:last.start])
	single := !strings.Contains(lead, "\n")
	indent := lead[strings.LastIndexByte(lead, '\n')+1:]
	text := " " + member(key, jsonLine(v, t.compact()), t.compact())
	if single && t.compact() {
		text = text[1:]
	}
	if !single {
		text = "\n" + indent + member(key, jsonPrint(v, indent, t.unitOf(c, indent), false), false)
	}
	comma := t.commaAfter(last.end, c.End)
	behind := last.end
	if comma >= 0 {
		behind, text = comma+1, text+","
	}
	if !single {
		behind = t.commentBehind(behind, c.End-1)
	}
	changes := []splice{{behind, behind, text}}
	if comma < 0 {
		if behind == last.end {
			changes[0].text = "," + text
		} else {
			changes = append(changes, splice{last.end, last.end, ","})
		}
	}
	return changes
}

// addFirst puts it into an empty container.
func (t *jsonText) addFirst(c exactjson.Value, key string, v any) []splice {
	in := c.Start + 1
	fresh := c.Start == t.root.Start
	if !fresh && !bytes.ContainsRune(t.src[t.root.Start:t.root.End], '\n') {
		return []splice{{in, in, member(key, jsonLine(v, t.compact()), t.compact())}}
	}
	outer := indentAt(t.src, c.Start)
	indent := outer + t.unit()
	text := "\n" + indent + member(key, jsonPrint(v, indent, t.unit(), false), false)
	if !bytes.ContainsRune(t.src[in:c.End], '\n') {
		text += "\n" + outer
	}
	return []splice{{in, in, text}}
}

func member(key, value string, compact bool) string {
	switch {
	case key == "":
		return value
	case compact:
		return jsonString(key) + ":" + value
	}
	return jsonString(key) + ": " + value
}

// commaAfter finds a trailing comma between off and the end of its container.
func (t *jsonText) commaAfter(off, end int) int {
	for _, c := range t.commas {
		if c >= off && c < end && isBlank(t.clean[off:c]) {
			return c
		}
	}
	return -1
}

// commentBehind moves behind comments that stand on the same line as off.
func (t *jsonText) commentBehind(off, end int) int {
	for i := off; i < end; i++ {
		switch c := t.src[i]; c {
		case ' ', '\t':
		case '/':
			stop := commentEnd(t.src, i)
			if stop < 0 || stop > end || bytes.ContainsRune(t.src[i:stop], '\n') {
				return off
			}
			off, i = stop, stop-1
		default:
			return off
		}
	}
	return off
}

func (t *jsonText) compact() bool {
	return bytes.Contains(t.clean, []byte(`":`)) && !bytes.Contains(t.clean, []byte(`": `))
}

// unit is one step of indentation: that of the first line that is indented.
func (t *jsonText) unit() string {
	for _, s := range items(t.root) {
		if lead := indentAt(t.src, s.start); lead != "" && lineStart(t.src, s.start)+len(lead) == s.start {
			return strings.TrimPrefix(lead, indentAt(t.src, t.root.Start))
		}
	}
	if bytes.Contains(t.src, []byte("\n\t")) {
		return "\t"
	}
	return "  "
}

// unitOf is the step between a container and its members.
func (t *jsonText) unitOf(c exactjson.Value, indent string) string {
	if step, ok := strings.CutPrefix(indent, indentAt(t.src, c.Start)); ok && step != "" {
		return step
	}
	return t.unit()
}

func (j jsonEditor) remove(src []byte, p place, name string) ([]splice, error) {
	t, c, i, err := j.locate(src, p, name)
	if err != nil || i < 0 {
		return nil, err
	}
	have := items(c)
	it := have[i]
	if i == 0 && len(have) > 1 && !bytes.ContainsAny(src[it.end:have[1].start], "\n/") {
		return []splice{{it.start, have[1].start, ""}}, nil
	}
	comma := t.commaAfter(it.end, c.End)
	if i < len(have)-1 {
		comma = bytes.IndexByte(t.clean[it.end:], ',') + it.end
	}
	end := it.end
	if comma >= 0 && isBlank(src[it.end:comma]) {
		end = comma + 1
	}
	from := t.fromOf(it.start, end)
	switch {
	case comma >= 0 && end > comma:
		return []splice{{from, comma + 1, ""}}, nil
	case comma >= 0: // a comment stands between
		return []splice{{from, it.end, ""}, {comma, comma + 1, ""}}, nil
	}
	if i == 0 {
		if isBlank(t.src[it.end : c.End-1]) {
			return []splice{{from, c.End - 1, ""}}, nil
		}
		return []splice{{from, it.end, ""}}, nil
	}
	comma = have[i-1].end + bytes.IndexByte(t.clean[have[i-1].end:], ',')
	if comma+1 >= from {
		return []splice{{comma, it.end, ""}}, nil
	}
	return []splice{{comma, comma + 1, ""}, {from, it.end, ""}}, nil
}

// fromOf is where the white space before an item begins. The line end behind a line
// comment stays when something follows the item on its line.
func (t *jsonText) fromOf(start, end int) int {
	from := spaceBefore(t.src, start)
	behind, _, _ := bytes.Cut(t.src[end:], []byte("\n"))
	nl := bytes.IndexAny(t.src[from:start], "\r\n")
	if nl < 0 || isBlank(behind) || !slices.Contains(t.lineEnds, from+nl) {
		return from
	}
	return from + bytes.IndexByte(t.src[from:start], '\n') + 1
}

// locate finds the entry: its container and its index there, -1 when it is absent.
func (j jsonEditor) locate(src []byte, p place, name string) (*jsonText, exactjson.Value, int, error) {
	t, err := j.scan(src)
	if err != nil {
		return nil, exactjson.Value{}, -1, err
	}
	c := t.root
	for _, key := range p.path {
		c, _ = c.Get(key)
	}
	if p.list {
		return t, c, slices.IndexFunc(c.Items, func(v exactjson.Value) bool {
			n, _ := v.Get("name")
			return n.Kind == exactjson.String && n.Str == name
		}), nil
	}
	return t, c, slices.IndexFunc(c.Members, func(m exactjson.Member) bool { return m.Key == name }), nil
}

func (j jsonEditor) where(src []byte, p place, name string) int {
	_, c, i, err := j.locate(src, p, name)
	if err != nil || i < 0 {
		return -1
	}
	return items(c)[i].start
}

// jsonString quotes a text; encoding/json would also escape <, > and &.
func jsonString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
