package mount

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
)

// next is what a file shall become.
type next struct {
	changed bool
	data    []byte
	remove  bool // the file goes away
	state   *state
	digest  string
}

// A planner decides what becomes of the bytes; nil stands for "no file". It does
// no I/O, so that it can be asked again when the file has changed meanwhile.
type planner func(cur []byte, st *state, r Request) (next, error)

// edit gives the rules for one text; where its servers stand may depend on it.
func (t *target) edit(cur []byte) (textEdit, any, error) {
	e := textEdit{t.ed, t.place}
	tree, err := e.read(cur)
	if err != nil {
		return e, nil, t.refused(err, cur)
	}
	if t.adapt != nil {
		t.adapt(t, tree)
		e.place = t.place
	}
	return e, tree, nil
}

func (t *target) refused(err error, cur []byte) error {
	var f *fault
	if errors.As(err, &f) {
		return f.refused(t.file, cur)
	}
	return refuseFor(Unreadable, t.file, err)
}

// adaptOpenCode knows the file's two layouts: servers under "mcp", or, where that is
// there, under "mcp.servers".
func adaptOpenCode(t *target, tree any) {
	t.place, t.shape = place{path: []string{"mcp"}}, opencodeV1
	inner := place{path: []string{"mcp", "servers"}}
	if m, ok := inner.container(tree).(map[string]any); ok {
		if _, server := readStart(m); !server {
			t.place, t.shape = inner, opencodeV2
		}
	}
}

func (t *target) entry(name string) fields { return t.shape.entry(name, t.command, t.args) }

// owned finds the entry and tells whether it is ours; a foreign one is a refusal.
func (t *target) owned(e textEdit, tree any, cur []byte, r Request) (entry any, found bool, err error) {
	entry, found = e.place.find(tree, r.Name)
	if !found {
		return nil, false, nil
	}
	refuse := func(reason Reason, msg string) error {
		line, col := e.line(cur, r.Name)
		return &RefusedError{Reason: reason, File: t.file, Line: line, Col: col, Message: msg}
	}
	if e.place.count(tree, r.Name) > 1 {
		return nil, true, refuse(UnexpectedShape, "two entries are named "+jsonString(r.Name))
	}
	s, _ := readStart(entry)
	switch {
	case slices.Contains(r.Digests, digestOf(entry)):
	case t.strict && reflect.DeepEqual(entry, any(t.entry(r.Name).tree())):
	case !t.strict && s.ours(r.Name, t.home, t.command):
	default:
		return nil, true, refuse(Conflict, "there is another entry named "+jsonString(r.Name)+", which is not ours")
	}
	return entry, true, nil
}

// mounting plans to have the entry in.
func (t *target) mounting(cur []byte, st *state, r Request) (next, error) {
	e, tree, err := t.edit(cur)
	if err != nil {
		return next{}, err
	}
	old, found, err := t.owned(e, tree, cur, r)
	if err != nil {
		return next{}, err
	}
	want := t.entry(r.Name)
	mine := layer{r.Name, t.command, t.args}
	if !found {
		return t.adding(e, cur, st, mine, want)
	}
	s, _ := readStart(old)
	now, _ := readStart(want.tree())
	if s.command == now.command && slices.Equal(s.args, now.args) && (!t.strict || reflect.DeepEqual(old, any(want.tree()))) {
		return next{digest: digestOf(old)}, nil
	}
	if n, ok := t.renewing(cur, st, mine); ok {
		return n, nil
	}
	return t.updating(e, cur, old, s, mine, want)
}

func (t *target) adding(e textEdit, cur []byte, st *state, mine layer, want fields) (next, error) {
	out, err := e.set(cur, mine.Name, want)
	if err != nil {
		return next{}, t.refused(err, cur)
	}
	after := &state{Client: t.client, File: t.file, Made: cur == nil, base: cur, Layers: []layer{mine}, Last: sumOf(out)}
	if t.untouched(cur, st) {
		after.Made, after.base, after.Layers = st.Made, st.base, append(slices.Clone(st.Layers), mine)
	}
	return next{changed: true, data: out, state: after, digest: digestOf(want.tree())}, nil
}

// renewing writes an entry of ours anew into a file that nobody else has changed; the
// way back stays exact.
func (t *target) renewing(cur []byte, st *state, mine layer) (next, bool) {
	if !t.untouched(cur, st) {
		return next{}, false
	}
	after := *st
	after.Layers = slices.Clone(st.Layers)
	i := slices.IndexFunc(after.Layers, func(l layer) bool { return l.Name == mine.Name })
	if i < 0 {
		return next{}, false
	}
	after.Layers[i] = mine
	out, err := t.replay(st.base, after.Layers)
	if err != nil {
		return next{}, false
	}
	after.Last = sumOf(out)
	return next{changed: true, data: out, state: &after, digest: digestOf(t.entry(mine.Name).tree())}, true
}

// updating replaces an entry of ours whose program or arguments are old ones.
func (t *target) updating(e textEdit, cur []byte, old any, s start, mine layer, want fields) (next, error) {
	base, err := e.unset(cur, mine.Name)
	if err != nil {
		return next{}, t.refused(err, cur)
	}
	layers := []layer{mine}
	if m, ok := old.(map[string]any); ok && s.ours(mine.Name, t.home, t.command) && !t.strict {
		if merged := want.with(m); !reflect.DeepEqual(merged.tree(), want.tree()) {
			want, layers = merged, nil
		}
	}
	out, err := e.set(base, mine.Name, want)
	if err != nil {
		return next{}, t.refused(err, cur)
	}
	after := &state{Client: t.client, File: t.file, base: base, Layers: layers, Last: sumOf(out)}
	if layers == nil {
		after.base = cur
	}
	return next{changed: true, data: out, state: after, digest: digestOf(want.tree())}, nil
}

// unmounting plans to have it out.
func (t *target) unmounting(cur []byte, st *state, r Request) (next, error) {
	if cur == nil {
		return next{}, nil
	}
	e, tree, err := t.edit(cur)
	if err != nil {
		return next{}, err
	}
	if _, found, err := t.owned(e, tree, cur, r); err != nil || !found {
		return next{}, err
	}
	if t.untouched(cur, st) {
		rest := slices.DeleteFunc(slices.Clone(st.Layers), func(l layer) bool { return l.Name == r.Name })
		if len(rest) < len(st.Layers) {
			if len(rest) == 0 {
				return next{changed: true, data: st.base, remove: st.Made}, nil
			}
			if out, err := t.replay(st.base, rest); err == nil {
				after := *st
				after.Layers, after.Last = rest, sumOf(out)
				return next{changed: true, data: out, state: &after}, nil
			}
		}
	}
	out, err := e.unset(cur, r.Name)
	if err != nil {
		return next{}, t.refused(err, cur)
	}
	after := &state{Client: t.client, File: t.file, base: cur, Last: sumOf(out)}
	return next{changed: true, data: out, state: after}, nil
}

// untouched tells whether the bytes are those that we left: what was there before,
// and our entries in the order in which they came.
func (t *target) untouched(cur []byte, st *state) bool {
	if !st.left(cur) || len(st.Layers) == 0 {
		return false
	}
	out, err := t.replay(st.base, st.Layers)
	return err == nil && bytes.Equal(out, cur)
}

// replay puts entries into the bytes from before, one after the other.
func (t *target) replay(base []byte, layers []layer) ([]byte, error) {
	again := *t
	out := base
	for _, l := range layers {
		again.command, again.args = l.Command, l.Args
		e, _, err := again.edit(out)
		if err != nil {
			return nil, err
		}
		if out, err = e.set(out, l.Name, again.entry(l.Name)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
