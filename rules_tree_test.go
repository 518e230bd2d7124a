package skaldconnectors_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEveryDependencyHasItsReason(t *testing.T) {
	required := directModules(t)
	reasons := documentedModules(t)
	for _, m := range required {
		if strings.TrimSpace(reasons[m]) == "" {
			t.Errorf("go.mod requires %s; docs/dependencies.md has no row with its reason", m)
		}
	}
	for m := range reasons {
		if !slices.Contains(required, m) {
			t.Errorf("docs/dependencies.md has a row for %s, which go.mod does not require directly", m)
		}
	}
}

// directModules lists the modules that go.mod requires for our own imports, and those of its tool lines.
func directModules(t *testing.T) []string {
	t.Helper()
	var direct, all, tools []string
	for line := range strings.Lines(readText(t, "go.mod")) {
		code, comment, _ := strings.Cut(line, "//")
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(code), "require "))
		switch {
		case len(fields) == 2 && fields[0] == "tool":
			tools = append(tools, fields[1])
		case len(fields) == 2 && strings.HasPrefix(fields[1], "v"):
			all = append(all, fields[0])
			if !strings.Contains(comment, "indirect") {
				direct = append(direct, fields[0])
			}
		}
	}
	for _, tool := range tools {
		i := slices.IndexFunc(all, func(m string) bool { return strings.HasPrefix(tool, m+"/") })
		if i < 0 {
			t.Fatalf("go.mod: no requirement for tool %s", tool)
		}
		direct = append(direct, all[i])
	}
	if len(direct) == 0 {
		t.Fatal("go.mod: no direct requirement found")
	}
	return direct
}

var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|([^|]*)\\|")

func documentedModules(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, m := range dependencyRow.FindAllStringSubmatch(readText(t, "docs/dependencies.md"), -1) {
		rows[m[1]] = m[2]
	}
	return rows
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFixturesExist holds that each fixture that a test names is there: a glob that matches nothing passes in silence.
func TestFixturesExist(t *testing.T) {
	for _, f := range tree(t) {
		if !f.test || f.dir == "." {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			pattern, _ := strconv.Unquote(lit.Value)
			if !strings.HasPrefix(pattern, "testdata/") && !strings.HasPrefix(pattern, "../testdata/") || strings.ContainsAny(pattern, "%\n") {
				return true
			}
			if found, err := filepath.Glob(filepath.Join(f.dir, pattern)); err != nil || len(found) == 0 {
				t.Errorf("%s: fixture %q matches nothing", f.at(lit), pattern)
			}
			return true
		})
	}
}

func TestFuzzTargetsHaveSeeds(t *testing.T) {
	for _, f := range tree(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.test || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			seeds, _ := filepath.Glob(filepath.Join(f.dir, "testdata", "fuzz", fn.Name.Name, "*"))
			if !addsSeeds(fn) && len(seeds) == 0 {
				t.Errorf("%s: %s has no seed; call f.Add or commit testdata/fuzz/%s", f.at(fn), fn.Name.Name, fn.Name.Name)
			}
		}
	}
}

// addsSeeds looks for a call of .Add, or of a helper that is given the *testing.F.
func addsSeeds(fn *ast.FuncDecl) bool {
	found := false
	param := fn.Type.Params.List[0].Names[0].Name
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Add" {
			found = true
		}
		for _, arg := range call.Args {
			if id, ok := arg.(*ast.Ident); ok && id.Name == param {
				found = true
			}
		}
		return !found
	})
	return found
}

// foreignPlaces are folders of one machine and hosts of package registries: both are settings of whoever builds,
// read from npm's, pip's and Go's own configuration. They are written in pieces here, so that this file passes.
var foreignPlaces = []struct{ what, pattern string }{
	{"a machine's folder", `(^|[\s"'` + "`" + `=(:])/(root(/|["'\s` + "`" + `]|$)|work/(main|shared|\.library)\b)`},
	{"a machine's folder", `/tmp/` + `(plan|bash_jobs)`},
	{"a registry's host", `registry\.` + `npmjs|registry\.` + `yarnpkg`},
	{"a registry's host", `proxy\.` + `golang\.org|sum\.` + `golang\.org`},
	{"a registry's host", `pypi\.` + `(org|io)|files\.` + `pythonhosted`},
	{"a registry's host", `(deb|security)\.` + `debian\.org`},
}

func TestTreeNamesNoMachine(t *testing.T) {
	const largest = 1 << 20 // a text that a person wrote is smaller
	res := make([]*regexp.Regexp, len(foreignPlaces))
	for i, p := range foreignPlaces {
		res[i] = regexp.MustCompile("(?m)" + p.pattern)
	}
	walk := func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != "testdata" && slices.Contains(skippedDirs, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular(), p == "rules_tree_test.go", p == ".git": // .git is a file in a linked working tree
			return nil
		}
		src, err := os.ReadFile(filepath.FromSlash(p))
		if err != nil || len(src) > largest || bytes.IndexByte(src, 0) >= 0 {
			return err
		}
		for i, re := range res {
			if at := re.FindIndex(src); at != nil {
				t.Errorf("%s:%d names %s: %q", path.Clean(p), 1+bytes.Count(src[:at[0]], []byte("\n")), foreignPlaces[i].what, src[at[0]:at[1]])
			}
		}
		return nil
	}
	if err := fs.WalkDir(os.DirFS("."), ".", walk); err != nil {
		t.Fatal(err)
	}
}
