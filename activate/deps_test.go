package activate

import (
	"strings"
	"testing"

	"skald-connectors/activate/record"
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
		if got := a.madeFor(tree, []record.Runtime{{Program: row.program, Version: row.version}}); got != row.fits {
			t.Errorf("%s for %s %s: %t", row.tree, row.program, row.version, got)
		}
	}
}
