package mount

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"skald-connectors/internal/lazyre"
)

// yamlEditor edits YAML in block style by whole lines, and flow collections where
// they open. Anything else (anchors on the container, several documents, tabs) is
// refused.
type yamlEditor struct{}

var yamlLine = lazyre.New(`^yaml: (?:unmarshal errors:\n\s*)?line (\d+): `)

// yamlRoot parses the one document of a text; nil stands for an empty one.
func yamlRoot(src []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = dec.Decode(&more); errors.Is(err, io.EOF) {
			return doc.Content[0], nil
		} else if err == nil {
			return nil, misshapen(lineOffset(src, more.Line), "a second document begins here")
		}
	}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return nil, broken(lineOffset(src, n), "%s", strings.TrimPrefix(err.Error(), m[0]))
	}
	return nil, broken(-1, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// lineOffset is where a line (1-based) begins.
func lineOffset(src []byte, line int) int {
	off := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(src[off:], '\n')
		if i < 0 {
			return len(src)
		}
		off += i + 1
	}
	return off
}

// offsetOf is where a node begins; its column counts characters.
func offsetOf(src []byte, n *yaml.Node) int {
	off := lineOffset(src, n.Line)
	for range n.Column - 1 {
		if off >= len(src) {
			return len(src)
		}
		off++
		for off < len(src) && src[off]&0xc0 == 0x80 {
			off++
		}
	}
	return off
}

// oddBreak finds a line end that only YAML takes for one; lines are counted without.
var oddBreak = lazyre.New("\r[^\n]|\r$|\u0085|\u2028|\u2029")

func (yamlEditor) tree(src []byte) (any, error) {
	if at := oddBreak.Get().FindIndex(src); at != nil {
		return nil, misshapen(at[0], "a line end of an unusual kind, which cannot be edited safely")
	}
	if err := tooDeep(src); err != nil {
		return nil, err
	}
	root, err := yamlRoot(src)
	if err != nil || root == nil {
		return nil, err
	}
	return yamlTree(src, root)
}

func yamlTree(src []byte, n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, err := yamlKey(src, n.Content[i])
			if err != nil {
				return nil, err
			}
			if _, twice := m[key]; twice {
				return nil, broken(offsetOf(src, n.Content[i]), "the key %q stands here a second time", n.Content[i].Value)
			}
			if m[key], err = yamlTree(src, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := yamlTree(src, c)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yaml.AliasNode:
		return other{"alias", n.Value}, nil
	}
	return yamlScalar(n), nil
}

func yamlScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!str":
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		return json.Number(n.Value)
	}
	return other{n.ShortTag(), n.Value}
}

// yamlKey gives a key as text; a key of another type gets its type with it.
func yamlKey(src []byte, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", misshapen(offsetOf(src, n), "a key that is not a plain value")
	}
	if tag := n.ShortTag(); tag != "!!str" {
		return tag + " " + n.Value, nil
	}
	return n.Value, nil
}

// yamlSite is where an entry goes or stands.
type yamlSite struct {
	src  []byte
	root *yaml.Node
	path []string // what is missing from there on
	key  *yaml.Node
	node *yaml.Node // the container, or the deepest node on the way to it
}

// site walks down to the container as far as it is there.
func (yamlEditor) site(src []byte, p place) (*yamlSite, error) {
	root, err := yamlRoot(src)
	if err != nil {
		return nil, err
	}
	s := &yamlSite{src: src, root: root, node: root, path: p.path}
	for root != nil && len(s.path) > 0 {
		if s.node.Kind != yaml.MappingNode {
			return s, nil
		}
		i := memberOf(s.node, s.path[0])
		if i < 0 {
			return s, nil
		}
		s.key, s.node, s.path = s.node.Content[i], s.node.Content[i+1], s.path[1:]
	}
	return s, nil
}

// memberOf is the index of a key in a mapping, -1 when it is not there.
func memberOf(m *yaml.Node, key string) int {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := m.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key && k.ShortTag() == "!!str" {
			return i
		}
	}
	return -1
}

func (y yamlEditor) insert(src []byte, p place, name string, e fields) ([]splice, error) {
	s, err := y.site(src, p)
	if err != nil {
		return nil, err
	}
	if s.root == nil || len(s.path) == len(p.path) && s.root.ShortTag() == "!!null" && s.root.Value == "" {
		return s.append(yamlBlock(nested(p, name, e), 0)), nil
	}
	n := s.node
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, misshapen(offsetOf(src, n), "an anchor or alias where servers stand")
	case n.ShortTag() == "!!null" && s.key != nil:
		return s.fillNull(nested(place{s.path, p.list}, name, e)), nil
	case len(s.path) > 0 && n.Kind == yaml.MappingNode:
		if n == s.root && n.Style&yaml.FlowStyle == 0 {
			return s.append(yamlBlock(nested(place{s.path, p.list}, name, e), n.Column-1)), nil
		}
		return s.into(field{s.path[0], nested(place{s.path[1:], p.list}, name, e)}, false), nil
	case len(s.path) == 0 && !p.list && n.Kind == yaml.MappingNode:
		return s.into(field{name, e}, false), nil
	case len(s.path) == 0 && p.list && n.Kind == yaml.SequenceNode:
		return s.into(field{"", e}, true), nil
	}
	want := "a mapping"
	if p.list && len(s.path) == 0 {
		want = "a list"
	}
	return nil, misshapen(offsetOf(src, n), "another value where %s of servers was expected", want)
}

// append puts lines at the end of the text.
func (s *yamlSite) append(text string) []splice {
	n := len(s.src)
	if n > 0 && s.src[n-1] != '\n' {
		text = "\n" + text
	}
	return []splice{{n, n, text}}
}

// fillNull gives a key that has no value, or a written null, its first entry.
func (s *yamlSite) fillNull(v any) []splice {
	if s.node.Value != "" {
		at := offsetOf(s.src, s.node)
		return []splice{{at, at + len(s.node.Value), jsonLine(v, false)}}
	}
	return s.below(yamlBlock(v, s.key.Column+1))
}

// below puts lines under the line of the key.
func (s *yamlSite) below(text string) []splice {
	at := lineOffset(s.src, s.key.Line+1)
	if at == len(s.src) && at > 0 && s.src[at-1] != '\n' {
		text = "\n" + text
	}
	return []splice{{at, at, text}}
}

// into puts a member or an element in front of those that a container has: there it
// needs no look at where the others end.
func (s *yamlSite) into(f field, element bool) []splice {
	n := s.node
	if n.Style&yaml.FlowStyle != 0 {
		text := jsonLine(f.val, false)
		if !element {
			text = member(f.key, text, false)
		}
		if len(n.Content) > 0 {
			text += ", "
		}
		at := offsetOf(s.src, n) + 1
		return []splice{{at, at, text}}
	}
	indent := n.Column - 1
	text := yamlBlock(fields{f}, indent)
	if element {
		text = yamlBlock([]any{f.val}, indent)
	}
	if s.key != nil && s.key.Line < n.Line {
		return s.below(text)
	}
	at := lineOffset(s.src, n.Line)
	return []splice{{at, at, text}}
}
