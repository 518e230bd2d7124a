// Package skaldconnectors_test holds the habits of this project as tests: which package may import which, what only
// one place may call, how long things may get. It reads the tree with go/parser and starts no tool.
// Every rule says in its message what to do instead; an exception is a row in a table here, with its reason.
package skaldconnectors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "skald-connectors"

// levels is the import order of DESIGN.md: a package imports only packages of a smaller level. Folders that are not
// here are refused, so that a new package gets its place on purpose. "internal/" stands for the rest of internal.
var levels = map[string]int{
	"cmd/skald-connectors": 8,
	"activate":             7,
	"activate/record":      6, // what is true of each activation, on disk
	"login":                6, "serve": 6,
	"login/pairing": 6, // the other way of signing in; neither knows the other
	"install":       5, "form": 5, "launch": 5, "catalog": 5,
	"install/deps": 4, // reads lists of packages and starts npm and pip; install keeps what they make
	"fetch":        3, "keystore": 3, "mount": 3,
	"manifest": 2, "sandbox": 2, "fetch/trust": 2,
	"internal/":           1,
	"internal/exactjson":  0,
	"internal/atomicfile": 0,
	"connectors":          0,
}

// neverImports are edges that the levels would allow and the design refuses.
var neverImports = map[[2]string]string{
	{"launch", "sandbox"}:   "launch is given two connections; it starts nothing",
	{"fetch", "sandbox"}:    "fetch starts no process",
	{"keystore", "sandbox"}: "keystore starts no process",
	{"mount", "sandbox"}:    "mount starts no process",
}

// leafUsers are the only folders whose non-test files may import the built-in marketplace.
var leafUsers = []string{"cmd/skald-connectors"}

// A goFile is one parsed Go file of the tree.
type goFile struct {
	path  string // relative to the root, slash-separated
	dir   string // its package folder, "." for the root
	test  bool
	lines int
	fset  *token.FileSet
	ast   *ast.File
	names map[string]string // local import name → import path
}

func (f *goFile) at(n ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

// inCmd tells whether the file belongs to the command, which alone knows the environment, the clock and the streams.
func (f *goFile) inCmd() bool { return f.dir == "cmd" || strings.HasPrefix(f.dir, "cmd/") }

// skippedDirs are not part of the program's source.
var skippedDirs = []string{".git", "bin", "dist", "testdata", "node_modules", "__pycache__", ".pydeps"}

// tree gives every Go file below the root, testdata left out, parsed once for all tests.
func tree(t *testing.T) []*goFile {
	t.Helper()
	files, err := parseTree()
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	return files
}

var parseTree = sync.OnceValues(func() (files []*goFile, err error) {
	err = fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && slices.Contains(skippedDirs, d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(p) != ".go":
			return nil
		}
		f, err := parseFile(p)
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	return files, err
})

func parseFile(p string) (*goFile, error) {
	src, err := os.ReadFile(filepath.FromSlash(p))
	if err != nil {
		return nil, err
	}
	f := &goFile{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), fset: token.NewFileSet(), names: map[string]string{}}
	f.lines = strings.Count(string(src), "\n")
	if f.ast, err = parser.ParseFile(f.fset, p, src, parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range f.ast.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.names[name] = target
	}
	return f, nil
}

// ours gives the folder of an import of this module.
func ours(target string) (string, bool) {
	return strings.CutPrefix(target, modulePath+"/")
}

// level gives the place of a folder in the import order.
func level(dir string) (int, bool) {
	n, ok := levels[dir]
	if !ok && strings.HasPrefix(dir, "internal/") {
		n, ok = levels["internal/"]
	}
	return n, ok
}

func TestImportsPointOneWay(t *testing.T) {
	for _, f := range tree(t) {
		if f.dir == "." {
			continue
		}
		from, known := level(f.dir)
		if !known {
			t.Errorf("%s: folder %q has no place in the import order; give it one in docs/layout.md and in levels of rules_test.go", f.path, f.dir)
			continue
		}
		for _, target := range f.names {
			if dir, ok := ours(target); ok {
				checkEdge(t, f, from, dir)
			}
		}
	}
}

func checkEdge(t *testing.T, f *goFile, from int, dir string) {
	t.Helper()
	to, known := level(dir)
	switch reason, never := neverImports[[2]string{f.dir, dir}]; {
	case !known:
		t.Errorf("%s imports %q, which has no place in the import order", f.path, dir)
	case dir == f.dir && f.test: // an external test of its own package
	case dir == "connectors":
		if !f.test && !slices.Contains(leafUsers, f.dir) {
			t.Errorf("%s imports the built-in marketplace; only cmd does, and hands it on as an fs.FS", f.path)
		}
	case never && !f.test:
		t.Errorf("%s imports %q: %s", f.path, dir, reason)
	case to >= from:
		t.Errorf("%s imports %q: imports go down only (cmd, activate, login and serve, install and form and launch and catalog, "+
			"fetch and keystore and mount, manifest and sandbox, internal); move the shared piece down or hand it in as a parameter", f.path, dir)
	}
}

// importBans are packages that nobody imports.
var importBans = map[string]string{
	"io/ioutil":                    "it is deprecated; use io and os",
	"github.com/pkg/errors":        "use fmt.Errorf with %w",
	"github.com/stretchr/testify/": "compare with == and t.Errorf",
	"github.com/golang/mock/":      "write a small fake by hand",
	"go.uber.org/mock/":            "write a small fake by hand",
	"html/template":                "it keeps every exported method in the program; escape with package html",
	"text/template":                "it keeps every exported method in the program; use fmt or strings.NewReplacer",
}

func TestBannedImports(t *testing.T) {
	for _, f := range tree(t) {
		for _, target := range f.names {
			for ban, instead := range importBans {
				if target == ban || strings.HasSuffix(ban, "/") && strings.HasPrefix(target, ban) {
					t.Errorf("%s imports %s: %s", f.path, target, instead)
				}
			}
		}
	}
}

func TestPackagesOpenWithTheirLaw(t *testing.T) {
	docs := map[string]string{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		if _, seen := docs[f.dir]; !seen {
			docs[f.dir] = ""
		}
		if f.ast.Doc != nil {
			docs[f.dir] += f.ast.Doc.Text()
		}
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "shared", "constants"}, f.ast.Name.Name) {
			t.Errorf("%s: a package called %q says nothing about its job", f.path, f.ast.Name.Name)
		}
	}
	for dir, doc := range docs {
		want := "Package " + path.Base(dir) + " "
		if strings.HasPrefix(dir, "cmd/") {
			want = "Command " + path.Base(dir) + " "
		}
		if !strings.HasPrefix(doc, want) {
			t.Errorf("%s: no doc comment that begins with %q; say its one job, its spec section and what it never does", dir, want)
		}
	}
}
