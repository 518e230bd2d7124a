package fetch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A kill between any two steps of taking a new index in leaves the old one or the new one, also without a network.
func TestKilledWhileAnIndexIsTakenIn(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	p := signed()
	v.want(p, "")
	_, name := open(t, v.o).src.id()
	pointer, state := filepath.Join(v.o.CacheDir, indexDir, name+".json"), filepath.Join(v.o.TrustDir, name+".json")
	oldPointer, oldState := mustRead(t, pointer), mustRead(t, state)
	p.seq = 2
	v.want(p.index(indexer(0)), "")
	newPointer, newState := mustRead(t, pointer), mustRead(t, state)
	for _, row := range []struct {
		name           string
		pointer, state []byte
		want           int64 // the number that is found without a network; 0: none
	}{
		{"done", newPointer, newState, 2},
		{"after the floor, before the pointer", oldPointer, newState, 2},
		{"before the first pointer", nil, newState, 2},
		{"the pointer alone", newPointer, oldState, 0}, // it never comes first; bytes above the floor are not believed
	} {
		mustWrite(t, pointer, row.pointer)
		mustWrite(t, state, row.state)
		ix, err := open(t, v.o).Index(context.Background(), Offline)
		if got := seqOf(ix); got != row.want {
			t.Errorf("%s: number %d (%v), want %d", row.name, got, err, row.want)
		}
		v.want(p, "") // and the next reading mends it
		if ix := get(t, open(t, v.o), Offline); ix.Trust().Seq != 2 {
			t.Errorf("%s: number %d afterwards", row.name, ix.Trust().Seq)
		}
	}
	// A damaged state is no fresh start, whatever the cache says.
	mustWrite(t, state, newState[:len(newState)/2])
	if _, err := open(t, v.o).Index(context.Background(), Refresh); err == nil {
		t.Error("a damaged state is taken for none")
	}
}

func seqOf(ix *Index) int64 {
	if ix == nil {
		return 0
	}
	return ix.Trust().Seq
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustWrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if data == nil {
		os.Remove(path)
		return
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
