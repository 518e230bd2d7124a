package main

import (
	"encoding/json"
	"testing"

	"skald-connectors/manifest"
)

// FuzzReadSet holds that no document is taken for a set with a name or a mode that
// could not be used, and that what is read is written and read the same.
func FuzzReadSet(f *testing.F) {
	f.Add([]byte(`{"format": 1, "activations": [{"name": "mail", "connector": "mail", "version": 1, "index": "builtin", "files": [{"path": "a", "sha256": "ab"}], "env": {"A": "b"}, "secrets": ["X"], "sandbox": {"mode": "auto"}, "mounts": ["cursor"]}]}`))
	f.Add([]byte(`{"format": 1, "activations": [{"name": "../x"}]}`))
	f.Add([]byte(`{"format": 1, "activations": [], "Format": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSet(data)
		if err != nil {
			return
		}
		for _, m := range s.Activations {
			if manifest.ValidID(m.Name) != nil || manifest.ValidID(m.Connector) != nil {
				t.Errorf("%q of %q was read", m.Name, m.Connector)
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readSet(again); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}
