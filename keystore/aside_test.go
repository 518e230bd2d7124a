package keystore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSetAside moves damaged and exchanged vaults out of the way, keeps their bytes, and touches nothing else.
func TestSetAside(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendKeyfile}
	s := open(t, o)
	for gen := int64(1); gen <= 3; gen++ {
		must(t, s.Put(t.Context(), "gmail", gen, handles("A", "one")))
	}
	path := func(gen int64) string { return filepath.Join(o.Dir, vaultFile("gmail", gen)) }
	other, err := os.ReadFile(path(3))
	must(t, err)
	junk := []byte("no vault")
	for round, bytes := range [][]byte{junk, other, junk} {
		must(t, os.WriteFile(path(1), bytes, 0o600))
		file, err := s.SetAside(t.Context(), "gmail", 1)
		want := []string{"gmail.1.age.damaged", "gmail.1.age.damaged-2", "gmail.1.age.damaged-3"}[round]
		if err != nil || file != want {
			t.Fatalf("round %d: set aside as %q, %v; want %q", round, file, err, want)
		}
		if kept, err := os.ReadFile(filepath.Join(o.Dir, file)); err != nil || !slices.Equal(kept, bytes) {
			t.Errorf("round %d: %q is kept, %v", round, kept, err)
		}
	}
	must(t, s.Put(t.Context(), "gmail", 1, handles("A", "new")))
	if file, err := s.SetAside(t.Context(), "gmail", 2); file != "" || err != nil {
		t.Errorf("one that can be read: %q, %v", file, err)
	}
	if _, err := s.SetAside(t.Context(), "gmail", 9); !isKind(err, NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	must(t, os.WriteFile(path(3), junk, 0o600))
	st, err := s.loadState()
	must(t, err)
	must(t, os.Remove(s.keyPath(st)))
	if file, err := open(t, o).SetAside(t.Context(), "gmail", 3); file != "" || err == nil {
		t.Errorf("without the key nothing can be judged: %q, %v", file, err)
	}
	if gens, err := s.Generations("gmail"); err != nil || !slices.Equal(gens, []int64{1, 2, 3}) {
		t.Errorf("left are %v, %v", gens, err)
	}
}

// TestCountersGoFirst: a kill between the two steps of a removal leaves a vault that nothing counts, which the next removal takes
// away, and never a count of a vault that is gone, which would keep the key for ever.
func TestCountersGoFirst(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendKeyfile}
	s := open(t, o)
	must(t, s.Put(t.Context(), "gmail", 1, handles("A", "one")))
	path := filepath.Join(o.Dir, vaultFile("gmail", 1))
	kept, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Remove(path))
	must(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700)) // the removal stops here, as a kill would
	if err := s.Remove("gmail"); err == nil {
		t.Fatal("a folder was removed")
	}
	st, err := s.loadState()
	must(t, err)
	if len(st.counters) > 0 {
		t.Errorf("the counters are %v still", st.counters)
	}
	must(t, os.RemoveAll(path))
	must(t, os.WriteFile(path, kept, 0o600))
	if _, err := s.Load(t.Context(), "gmail", 1); err != nil {
		t.Errorf("what a kill left: %v", err)
	}
	must(t, s.Remove("gmail"))
	must(t, s.Forget(t.Context()))
	if d, err := s.Describe(); err != nil || d.Backend != "" || d.Vaults != 0 {
		t.Errorf("left: %+v, %v", d, err)
	}
}
