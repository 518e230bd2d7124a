package mount

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// fuzzEdit holds the promises for any text: what is accepted keeps every byte, gives
// the entry back, and comes out again with the same values; nothing panics.
func fuzzEdit(t *testing.T, e textEdit, s shape, src []byte) {
	entry := s.entry("mail", `/opt/a "b"\c/skald-connectors`, []string{"run", "mail"})
	before, err := e.read(src)
	if err != nil {
		if _, err := e.set(src, "mail", entry); err == nil {
			t.Fatal("a text that cannot be read was edited")
		}
		return
	}
	if _, found := e.place.find(before, "mail"); found {
		out, err := e.unset(src, "mail")
		if err == nil && !contains(src, out) && !bytes.Contains(out, []byte("{}")) && !bytes.Contains(out, []byte("[]")) {
			t.Fatalf("taking out added something:\n%q\n%q", src, out)
		}
		return
	}
	out, err := e.set(src, "mail", entry)
	if err != nil {
		return
	}
	if !contains(out, dropNull(src)) {
		t.Fatalf("bytes were lost:\n%q\n%q", src, out)
	}
	if again, err := e.set(src, "mail", entry); err != nil || !bytes.Equal(again, out) {
		t.Fatal("the same edit gives another text")
	}
	if e.line(out, "mail"); e.ed.where(bytes.TrimPrefix(out, []byte(byteOrderMark)), e.place, "mail") < 0 {
		t.Fatalf("the entry is not located in\n%s", out)
	}
	back, err := e.unset(out, "mail")
	if err != nil {
		t.Fatalf("what was put in cannot be taken out: %v\n%q\n%s", err, src, out)
	}
	after, err := e.read(back)
	if err != nil || !e.place.sameForeign(before, after, "mail") {
		t.Fatalf("the values differ: %v\n%q\n%q", err, src, back)
	}
}

func seeds(f *testing.F, ids ...string) {
	for _, id := range ids {
		for _, s := range corpus(rowOf(id)) {
			f.Add(s.data)
		}
	}
}

func FuzzJSON(f *testing.F) {
	seeds(f, "cursor", "zed")
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzEdit(t, textEdit{jsonEditor{}, place{path: []string{"mcpServers"}}}, plainShape, src)
		fuzzEdit(t, textEdit{jsonEditor{comments: true}, place{path: []string{"mcp", "servers"}}}, zedShape, src)
		fuzzEdit(t, textEdit{jsonEditor{comments: true}, place{path: []string{"context_servers"}}}, opencodeV1, src)
		fuzzEdit(t, textEdit{jsonEditor{}, place{path: []string{"servers"}, list: true}}, engineShape, src)
		fuzzEdit(t, textEdit{jsonEditor{}, place{list: true}}, engineShape, src)
		strictAgrees(t, src)
	})
}

// strictAgrees compares our reading with that of encoding/json.
func strictAgrees(t *testing.T, src []byte) {
	tree, err := jsonEditor{}.tree(src)
	if err != nil || tree == nil {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil && !bytes.HasPrefix(src, []byte(byteOrderMark)) {
		t.Fatalf("encoding/json refuses what we read: %v", err)
	} else if err == nil && !reflect.DeepEqual(tree, want) {
		t.Fatalf("%#v, encoding/json says %#v", tree, want)
	}
}

func FuzzTOML(f *testing.F) {
	seeds(f, "codex", "vibe")
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzEdit(t, textEdit{tomlEditor{}, place{path: []string{"mcp_servers"}}}, plainShape, src)
		fuzzEdit(t, textEdit{tomlEditor{}, place{path: []string{"mcp_servers"}, list: true}}, vibeShape, src)
	})
}

func FuzzYAML(f *testing.F) {
	seeds(f, "goose", "continue")
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzEdit(t, textEdit{yamlEditor{}, place{path: []string{"extensions"}}}, gooseShape, src)
		fuzzEdit(t, textEdit{yamlEditor{}, place{path: []string{"mcpServers"}, list: true}}, namedShape, src)
	})
}
