package activate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"skald-connectors/install"
	"skald-connectors/install/deps"
)

// TestTreesFitTheirInterpreter: packages are made again when the interpreter's binary
// interface is another one, and not for a patch.
func TestTreesFitTheirInterpreter(t *testing.T) {
	a := &Activator{}
	for _, row := range []struct {
		tree, program, version string
		fits                   bool
	}{
		{"node 20.1.0", "node", "20.20.2", true},
		{"node 20.1.0", "node", "22.0.0", false},
		{"python3 3.11.2", "python3", "3.11.9", true},
		{"python3 3.11.2", "python", "3.12.0", false},
		{"python3 3.1.2", "python3", "3.11.2", false},
		{"node 20.1.0", "python3", "3.11.2", true}, // node only installs here; nothing runs by it
	} {
		tree := &install.Tree{Runtime: row.tree, Ecosystem: deps.NPM}
		if strings.HasPrefix(row.tree, "python") {
			tree.Ecosystem = deps.Pip
		}
		if got := a.madeFor(tree, []Runtime{{Program: row.program, Version: row.version}}); got != row.fits {
			t.Errorf("%s for %s %s: %t", row.tree, row.program, row.version, got)
		}
	}
}

// TestRecordNamesItsTrees, those of the version kept for a rollback too: a sweep leaves
// both alone.
func TestRecordNamesItsTrees(t *testing.T) {
	rec := &Record{Deps: []DepsRef{{Ecosystem: "npm", Hash: "one"}, {Ecosystem: "pip", Hash: "two"}}, Previous: json.RawMessage(`{"deps":[{"hash":"three"}]}`)}
	if got := rec.trees(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("trees %v", got)
	}
	rec.Previous = nil
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := json.Unmarshal(data, &back); err != nil || len(back.extra) != 0 || !slices.Equal(back.trees(), []string{"one", "two"}) {
		t.Errorf("read back %v %v, %v", back.trees(), back.extra, err)
	}
}
