package mount

import (
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
)

// A tree is what a text of any format says: map[string]any, []any, string,
// json.Number, bool, nil, or other for what only one format has.

// other is a value without a counterpart in JSON, by its type and text.
type other struct{ kind, text string }

// treeOf turns a value of an entry into a tree.
func treeOf(v any) any {
	switch v := v.(type) {
	case fields:
		return v.tree()
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = treeOf(x)
		}
		return list
	case int:
		return json.Number(strconv.Itoa(v))
	}
	return v
}

// place is where the servers stand in a file: the keys that lead there, and whether
// they are a list of named entries or a map.
type place struct {
	path []string
	list bool
}

// container gives the map or list of servers in a tree, nil when there is none.
func (p place) container(tree any) any {
	for _, key := range p.path {
		m, _ := tree.(map[string]any)
		tree = m[key]
	}
	return tree
}

// find gives the entry of a name.
func (p place) find(tree any, name string) (any, bool) {
	c := p.container(tree)
	if !p.list {
		m, _ := c.(map[string]any)
		v, ok := m[name]
		return v, ok
	}
	list, _ := c.([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return item, true
		}
	}
	return nil, false
}

// without gives the tree less the entry of a name; a container that is empty then
// is left out, so that "none", null and "empty" are the same.
func (p place) without(tree any, name string) any {
	return p.prune(tree, p.path, name)
}

func (p place) prune(v any, path []string, name string) any {
	if len(path) > 0 {
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		m = maps.Clone(m)
		if child := p.prune(m[path[0]], path[1:], name); child == nil {
			delete(m, path[0])
		} else {
			m[path[0]] = child
		}
		if len(m) == 0 {
			return nil
		}
		return m
	}
	switch c := v.(type) {
	case map[string]any:
		c = maps.Clone(c)
		delete(c, name)
		if len(c) > 0 {
			return c
		}
		return nil
	case []any:
		var rest []any
		for _, item := range c {
			if m, ok := item.(map[string]any); !p.list || !ok || m["name"] != name {
				rest = append(rest, item)
			}
		}
		if len(rest) > 0 {
			return rest
		}
		return nil
	}
	return v
}

// sameForeign tells whether two trees differ in nothing but the entry of a name.
func (p place) sameForeign(a, b any, name string) bool {
	return reflect.DeepEqual(p.without(a, name), p.without(b, name))
}

// count tells how many entries carry the name; a list may have several.
func (p place) count(tree any, name string) int {
	if !p.list {
		if _, ok := p.find(tree, name); ok {
			return 1
		}
		return 0
	}
	n := 0
	list, _ := p.container(tree).([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			n++
		}
	}
	return n
}
