package keystore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestKeyFileComesBehindItsRecord: whatever a kill leaves while a key file is made is not taken for the user's own file.
func TestKeyFileComesBehindItsRecord(t *testing.T) {
	s := open(t, Options{Want: BackendKeyfile})
	must(t, s.prepareDir())
	st, _, err := s.choose(t.Context(), nil)
	must(t, err)
	path := s.keyPath(st)
	if _, err := os.Lstat(path); err == nil || st.make == nil {
		t.Fatal("the file is there before its record")
	}
	st.counters = map[string]int64{}
	must(t, s.saveState(st)) // and killed here
	must(t, s.Prepare(t.Context()))
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	must(t, os.Remove(path)) // as if killed there again
	must(t, s.Forget(t.Context()))
	must(t, open(t, Options{Dir: s.o.Dir, Want: BackendKeyfile}).Prepare(t.Context()))
	must(t, open(t, Options{Dir: s.o.Dir}).Forget(t.Context()))
	for _, left := range []string{path, s.path(stateFile)} {
		if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}

func TestKeyFileThatCannotBeMade(t *testing.T) {
	s := open(t, Options{Want: BackendKeyfile, KeyFile: filepath.Join(t.TempDir(), "not", "there", "key")})
	if err := s.Prepare(t.Context()); !isKind(err, Unwritable) && !isKind(err, Unreadable) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(s.path(stateFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record of no key is left: %v", err)
	}
}
