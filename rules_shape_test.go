package skaldconnectors_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const (
	mostFileLines     = 400 // a file is read whole, in one sitting
	mostFunctionLines = 60  // the median should be near ten
	mostMainLines     = 30  // main is a stub around run
	mostExported      = 15  // few, deep packages
)

// manyNames are packages that may export more, each with its reason. Not counted: constants of a type, which are one
// idea with it, and error types, which carry facts that a caller branches on.
var manyNames = map[string]struct {
	most   int
	reason string
}{
	"manifest":        {45, "it owns the types of both documents, and a part of a document is a type"},
	"sandbox":         {19, "it owns what a process may do, what holds of it, how it ended and what is left of it; and the program has to call its helper"},
	"activate":        {30, "it shows what a plan says and what an upgrade changes, what a person grants, what is started and who is signed in, each a type"},
	"fetch/trust":     {22, "it owns two signed documents and what is remembered of them, and reads keys and signatures"},
	"activate/record": {24, "a record is a document, and a part of it is a type"},
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range tree(t) {
		if f.lines > mostFileLines {
			t.Errorf("%s has %d lines, more than %d; split it by meaning", f.path, f.lines, mostFileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test || fn.Body == nil {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > mostFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d; name its steps", f.at(fn), fn.Name.Name, n, mostFunctionLines)
			}
		}
	}
}

func TestMainIsAStub(t *testing.T) {
	found := false
	for _, f := range tree(t) {
		if f.path != "cmd/skald-connectors/main.go" {
			continue
		}
		found = true
		if f.lines > mostMainLines {
			t.Errorf("%s has %d lines, more than %d; it is one call and one os.Exit", f.path, f.lines, mostMainLines)
		}
	}
	if !found {
		t.Error("cmd/skald-connectors/main.go is missing")
	}
}

func TestPackagesExportFewNames(t *testing.T) {
	names := map[string][]string{}
	for _, f := range tree(t) {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, name := range exported(f.ast) {
			if !slices.Contains(names[f.dir], name) { // a name with one body per platform is one name
				names[f.dir] = append(names[f.dir], name)
			}
		}
	}
	for dir, have := range names {
		most := mostExported
		if row, ok := manyNames[dir]; ok {
			most = row.most
		}
		if len(have) > most {
			slices.Sort(have)
			t.Errorf("package %s exports %d names, more than %d; hide what only it needs, or give it a row in manyNames of rules_shape_test.go with the reason: %s",
				dir, len(have), most, strings.Join(have, " "))
		}
	}
}

// exported lists the exported top-level names of a file that count.
func exported(file *ast.File) []string {
	var names []string
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			if d.Tok == token.CONST && isEnumeration(d) {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if !strings.HasSuffix(spec.Name.Name, "Error") {
						add(spec.Name)
					}
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// isEnumeration tells whether a const block's first constant has a type named without a package.
func isEnumeration(d *ast.GenDecl) bool {
	spec := d.Specs[0].(*ast.ValueSpec)
	id, ok := spec.Type.(*ast.Ident)
	return ok && id.IsExported()
}
