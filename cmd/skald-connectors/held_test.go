package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"skald-connectors/activate/record"
	"skald-connectors/internal/atomicfile"
)

// TestHeldOfSeveralSessions: a look at all tools counts until the next one, a look at a
// part only adds, and what a session of another version saw says nothing.
func TestHeldOfSeveralSessions(t *testing.T) {
	home := t.TempDir()
	path := heldPath(home, "mail")
	if err := atomicfile.PrivateDir(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	rec := &record.Record{Name: "mail", Digest: "one", Tools: []record.ToolRef{{Name: "echo", Digest: "d1"}}}
	first, second := &heldKeeper{path: path}, &heldKeeper{path: path}
	for i, step := range []struct {
		by      *heldKeeper
		held    map[string]string
		whole   bool
		version string
		want    []string
	}{
		{first, map[string]string{}, true, "one", nil},
		{first, map[string]string{"echo": "d2", "more": "m1"}, true, "one", []string{"echo", "more"}},
		{second, map[string]string{}, false, "one", []string{"echo", "more"}},
		{second, map[string]string{"late": "l1"}, false, "one", []string{"echo", "late", "more"}},
		{second, map[string]string{"late": "l1"}, true, "one", []string{"late"}},
		{first, map[string]string{"echo": "d2"}, true, "one", []string{"echo"}},
		{second, map[string]string{"echo": "d1"}, true, "one", nil}, // accepted since
		{first, map[string]string{"old": "o1"}, true, "zero", nil},
		{second, map[string]string{"late": "l1"}, false, "one", []string{"late"}},
		{first, map[string]string{}, true, "", []string{"late"}},
	} {
		step.by.set(step.held, step.whole)
		if err := step.by.flush(func() string { return step.version }); err != nil {
			t.Fatal(err)
		}
		if got := heldNow(home, rec); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}

	var all sync.WaitGroup
	var want []string
	for i := range 8 {
		name := fmt.Sprintf("tool%d", i)
		want = append(want, name)
		all.Go(func() {
			k := &heldKeeper{path: path}
			k.set(map[string]string{name: "d"}, false)
			if err := k.flush(func() string { return "one" }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := heldNow(home, rec); !slices.Equal(got, append([]string{"late"}, want...)) {
		t.Errorf("of eight at once: %v", got)
	}
}
