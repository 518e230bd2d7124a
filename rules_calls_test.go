package skaldconnectors_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// A place tells whether a file may do something.
type place func(*goFile) bool

func onlyIn(paths ...string) place {
	return func(f *goFile) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return f.path == p || f.dir == p })
	}
}

func onlyCmd(f *goFile) bool { return f.inCmd() }

// selectorBans are names of the standard library that only one place may use. Tests are free.
var selectorBans = []struct {
	names   []string // import path, a dot, the name
	allowed place
	instead string
}{
	{[]string{"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", "runtime.Goexit"}, onlyIn("cmd/skald-connectors/main.go"),
		"return an error or an exit code; only main.go ends the program"},
	{[]string{"os.Args", "os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Setenv", "os.Unsetenv"}, onlyCmd,
		"take it as a parameter; only cmd knows the environment"},
	{[]string{"os.Stdin", "os.Stdout", "os.Stderr"}, onlyCmd, "take a reader or writer as a parameter"},
	{[]string{"os.UserHomeDir", "os.UserConfigDir", "os.UserCacheDir", "os.TempDir"}, onlyCmd, "take the folder as a parameter; cmd/skald-connectors/home.go knows where things live"},
	{[]string{"net/http.DefaultClient", "net/http.DefaultTransport", "net/http.Get", "net/http.Post", "net/http.PostForm", "net/http.Head"}, onlyIn(),
		"use a client with our limits, made by fetch or handed in"},
	{[]string{"os/exec.Command", "os/exec.CommandContext", "os.StartProcess", "syscall.Exec", "syscall.ForkExec", "syscall.StartProcess"}, onlyIn("sandbox"),
		"start processes through package sandbox"},
	{[]string{"os/exec.LookPath"}, onlyIn("sandbox"), "use sandbox.LookPath, which never looks into the current folder"},
	{[]string{"os.WriteFile", "os.Create"}, onlyIn("internal/atomicfile"), "use atomicfile.Write, or a root handle's OpenFile with O_EXCL in a folder that is staged"},
	{[]string{"time.Sleep"}, onlyIn("sandbox/spawn_unix.go"), // a program that was just written is busy for a moment, and nothing tells when it is free
		"wait for the thing itself, with a context or a timer that ends"},
	{[]string{"encoding/json.Unmarshal", "encoding/json.NewDecoder"}, func(f *goFile) bool { return f.dir != "launch" }, "launch reads JSON with internal/exactjson only"},
}

// clockUsers may read the clock themselves; everyone else is given a time or a func() time.Time.
var clockUsers = map[string]string{
	"sandbox": "measures how long a child ran and arms its kill timer; nothing is stored",
}

func TestOnlyOnePlaceKnows(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || f.dir == "." {
			continue
		}
		eachSelector(f, func(n *ast.SelectorExpr, name string) {
			for _, ban := range selectorBans {
				if slices.Contains(ban.names, name) && !ban.allowed(f) {
					t.Errorf("%s uses %s: %s", f.at(n), name, ban.instead)
				}
			}
			if _, may := clockUsers[f.dir]; name == "time.Now" && !f.inCmd() && !may {
				t.Errorf("%s uses time.Now: take a func() time.Time from cmd, or add the package to clockUsers of rules_calls_test.go with its reason", f.at(n))
			}
		})
	}
}

// eachSelector calls visit for every pkg.Name of an imported package, named by its import path.
func eachSelector(f *goFile, visit func(n *ast.SelectorExpr, name string)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if name := qualified(f, sel); name != "" {
				visit(sel, name)
			}
		}
		return true
	})
}

// qualified gives "import/path.Name" for a selector on an imported package, else "".
func qualified(f *goFile, e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok || id.Obj != nil { // Obj is set when a local variable has the import's name
		return ""
	}
	if target, ok := f.names[id.Name]; ok {
		return target + "." + sel.Sel.Name
	}
	return ""
}

// eachCall calls visit for every call of an imported package's function.
func eachCall(f *goFile, visit func(c *ast.CallExpr, name string)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if name := qualified(f, c.Fun); name != "" {
				visit(c, name)
			}
		}
		return true
	})
}

func TestTemporaryFilesStandBesideTheirTarget(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || f.dir == "internal/atomicfile" {
			continue
		}
		eachCall(f, func(c *ast.CallExpr, name string) {
			if (name == "os.MkdirTemp" || name == "os.CreateTemp") && len(c.Args) > 0 && isEmptyString(c.Args[0]) {
				t.Errorf("%s: %s in the system's temporary folder; make it beside the target, so that one rename can finish it", f.at(c), name)
			}
		})
	}
}

func isEmptyString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && len(lit.Value) == 2
}

func TestReadsAreBounded(t *testing.T) {
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		eachCall(f, func(c *ast.CallExpr, name string) {
			if name == "io.ReadAll" && !mentionsLimit(c.Args[0]) {
				t.Errorf("%s: io.ReadAll without a limit in sight; wrap its reader in io.LimitReader with a named constant", f.at(c))
			}
		})
	}
}

// mentionsLimit looks for a limiting reader, by call or by the variable's name.
func mentionsLimit(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			name := strings.ToLower(id.Name)
			found = found || strings.Contains(name, "limit") || strings.Contains(name, "bounded") || name == "maxbytesreader"
		}
		return !found
	})
	return found
}

func TestNothingRegistersItself(t *testing.T) {
	for _, f := range tree(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init; build the thing where it is used", f.at(fn))
			}
		}
	}
}

func TestAdviceIsGivenInCmdOnly(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || f.inCmd() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(strings.ToLower(lit.Value), "hint:") {
				t.Errorf("%s: the word hint: outside cmd; return a typed error, cmd adds the advice", f.at(lit))
			}
			return true
		})
	}
}

func TestInterfacesAreSmall(t *testing.T) {
	const most = 4
	for _, f := range tree(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if it, ok := n.(*ast.InterfaceType); ok && it.Methods.NumFields() > most {
				t.Errorf("%s: an interface of %d methods; at most %d, declared where it is used", f.at(it), it.Methods.NumFields(), most)
			}
			return true
		})
	}
}
