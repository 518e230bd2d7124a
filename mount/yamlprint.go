package mount

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"skald-connectors/internal/lazyre"
)

// yamlBlock writes a value in block style, each line indented.
func yamlBlock(v any, indent int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	if f, ok := pairs(v); ok {
		for _, x := range f {
			b.WriteString(pad + yamlName(x.key) + ":" + yamlValue(x.val, indent))
		}
		return b.String()
	}
	list, _ := elements(v)
	for _, x := range list {
		if _, isMap := pairs(x); isMap {
			inner := yamlBlock(x, indent+2)
			b.WriteString(pad + "- " + strings.TrimPrefix(inner, pad+"  "))
			continue
		}
		b.WriteString(pad + "- " + jsonLine(x, false) + "\n")
	}
	return b.String()
}

// yamlValue is what stands behind a colon, its line end included. Lists of plain
// values stay on the line, in a form that is also JSON.
func yamlValue(v any, indent int) string {
	if f, ok := pairs(v); ok {
		if len(f) == 0 {
			return " {}\n"
		}
		return "\n" + yamlBlock(v, indent+2)
	}
	if list, ok := elements(v); ok {
		if slices.ContainsFunc(list, func(x any) bool { _, isMap := pairs(x); return isMap }) {
			return "\n" + yamlBlock(v, indent+2)
		}
		return " " + jsonLine(v, false) + "\n"
	}
	if s, ok := v.(string); ok {
		return " " + yamlText(s) + "\n"
	}
	return " " + scalar(v) + "\n"
}

var yamlPlain = lazyre.New(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// yamlText writes a string plain where every reader takes it for one.
func yamlText(s string) string {
	var n yaml.Node
	if yamlPlain.MatchString(s) && yaml.Unmarshal([]byte(s), &n) == nil &&
		len(n.Content) == 1 && n.Content[0].ShortTag() == "!!str" && !yamlWords[strings.ToLower(s)] {
		return s
	}
	return jsonString(s)
}

// yamlWords are booleans for readers of YAML 1.1.
var yamlWords = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true}

func yamlName(key string) string { return yamlText(key) }

func (y yamlEditor) remove(src []byte, p place, name string) ([]splice, error) {
	s, i, err := y.locate(src, p, name)
	if err != nil || i < 0 {
		return nil, err
	}
	if s.node.Anchor != "" {
		return nil, misshapen(offsetOf(src, s.node), "an anchor where servers stand")
	}
	if s.node.Style&yaml.FlowStyle != 0 {
		return s.takeFromFlow(i, p.list)
	}
	return y.takeLines(s, i, p, name)
}

// locate finds the entry: its container and its index in it, -1 when it is absent.
func (y yamlEditor) locate(src []byte, p place, name string) (*yamlSite, int, error) {
	s, err := y.site(src, p)
	if err != nil || s.root == nil || len(s.path) > 0 {
		return nil, -1, err
	}
	if !p.list {
		return s, memberOf(s.node, name), nil
	}
	for i, item := range s.node.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}
		if k := memberOf(item, "name"); k >= 0 && item.Content[k+1].Value == name {
			return s, i, nil
		}
	}
	return s, -1, nil
}

// takeLines removes the lines of an entry. Where its last value ends is not told by
// the parser, so the smallest range is taken that leaves all else the same.
func (y yamlEditor) takeLines(s *yamlSite, i int, p place, name string) ([]splice, error) {
	step, first := 2, s.node.Content[i]
	if p.list {
		step = 1
	}
	begin := lineOffset(s.src, first.Line)
	if lead := s.src[begin:offsetOf(s.src, first)]; !isBlank(dashless(lead, p.list)) {
		return nil, misshapen(offsetOf(s.src, first), "the entry does not begin its line")
	}
	only := len(s.node.Content) == step
	limit := lineOffset(s.src, len(s.src)+1)
	if i+step < len(s.node.Content) {
		limit = lineOffset(s.src, s.node.Content[i+step].Line)
	}
	before, err := y.tree(s.src)
	if err != nil {
		return nil, err
	}
	for line := lastLine(s.node.Content[i+step-1]) + 1; ; line++ {
		end := min(lineOffset(s.src, line), limit)
		changes := []splice{{begin, end, ""}}
		if only {
			changes = append(changes, s.emptied(p)...)
		}
		after, err := y.tree(apply(s.src, changes))
		if _, still := p.find(after, name); err == nil && !still && p.sameForeign(before, after, name) {
			return changes, nil
		}
		if end >= limit {
			return nil, misshapen(begin, "the entry cannot be taken out safely")
		}
	}
}

// dashless blanks the dash of a list item.
func dashless(lead []byte, list bool) []byte {
	if !list {
		return lead
	}
	return []byte(strings.Replace(string(lead), "-", " ", 1))
}

// emptied writes the empty container behind the key that loses its last entry: some
// clients do not take a key without a value.
func (s *yamlSite) emptied(p place) []splice {
	if s.key == nil {
		return nil
	}
	at := offsetOf(s.src, s.key)
	rest := s.src[at:lineOffset(s.src, s.key.Line+1)]
	colon := strings.IndexByte(string(rest), ':')
	if colon < 0 || s.key.Line >= s.node.Line {
		return nil
	}
	at += colon + 1
	if p.list {
		return []splice{{at, at, " []"}}
	}
	return []splice{{at, at, " {}"}}
}

func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// takeFromFlow removes an element of a flow collection that stands on one line.
func (s *yamlSite) takeFromFlow(i int, list bool) ([]splice, error) {
	step := 2
	if list {
		step = 1
	}
	begin := offsetOf(s.src, s.node.Content[i])
	end := s.flowEnd(begin)
	if end < 0 {
		return nil, misshapen(begin, "a collection that is too intricate to edit")
	}
	switch {
	case i+step < len(s.node.Content):
		return []splice{{begin, offsetOf(s.src, s.node.Content[i+step]), ""}}, nil
	case i > 0:
		comma := strings.LastIndexByte(string(s.src[:begin]), ',')
		return []splice{{comma, end, ""}}, nil
	}
	return []splice{{begin, end, ""}}, nil
}

// flowEnd follows brackets and quotes to where an element ends.
func (s *yamlSite) flowEnd(at int) int {
	depth := 0
	for i := at; i < len(s.src); i++ {
		switch s.src[i] {
		case '"':
			i = stringEnd(s.src, i) - 1
		case '\'':
			k := strings.IndexByte(string(s.src[i+1:]), '\'')
			if k < 0 {
				return -1
			}
			i += k + 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		case '#':
			return -1
		}
	}
	return -1
}

func (y yamlEditor) where(src []byte, p place, name string) int {
	s, i, err := y.locate(src, p, name)
	if err != nil || i < 0 {
		return -1
	}
	return offsetOf(src, s.node.Content[i])
}
