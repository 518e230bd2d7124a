package catalog

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"skald-connectors/manifest"
)

// A hostile or careless tree: what was done to the base tree, who is blamed, by which rule.
var hostile = []struct {
	name      string
	spoil     func(t *testing.T, dir string)
	connector string
	rule      string
	file      string // of the finding
}{
	{"list is an object", func(t *testing.T, dir string) { write(t, dir, "index.json", `{"a":1}`) }, "", "list-unreadable", "index.json"},
	{"list is cut off", func(t *testing.T, dir string) { write(t, dir, "index.json", `["echo"`) }, "", "list-unreadable", "index.json"},
	{"list has a number", func(t *testing.T, dir string) { write(t, dir, "index.json", `[1]`) }, "1", "list-id", "index.json"},
	{"list leaves the tree", func(t *testing.T, dir string) { write(t, dir, "index.json", `["../echo"]`) }, "../echo", "list-id", "index.json"},
	{"id twice", func(t *testing.T, dir string) { write(t, dir, "index.json", `["echo","weather","echo"]`) }, "echo", "list-id", "index.json"},
	{"no such folder", func(t *testing.T, dir string) { write(t, dir, "index.json", `["weather","gone"]`) }, "gone", "fragment-unreadable", "gone/fragment.json"},
	{"fragment is not JSON", func(t *testing.T, dir string) { write(t, dir, "echo/fragment.json", "{'id'}") }, "echo", "fragment-unreadable", "echo/fragment.json"},
	{"fragment is a list", func(t *testing.T, dir string) { write(t, dir, "echo/fragment.json", "[]") }, "echo", "fragment-unreadable", "echo/fragment.json"},
	{"fragment too large", func(t *testing.T, dir string) {
		write(t, dir, "echo/fragment.json", strings.Repeat(" ", manifest.MaxManifestBytes+1))
	}, "echo", "fragment-unreadable", "echo/fragment.json"},
	{"fragment is a link", func(t *testing.T, dir string) { link(t, dir, "../weather/fragment.json", "echo/fragment.json") }, "echo", "fragment-unreadable", "echo/fragment.json"},
	{"key twice", func(t *testing.T, dir string) {
		edit(t, dir, "echo/fragment.json", `"id": "echo",`, `"id": "echo", "id": "echo",`)
	}, "echo", "repeated-key", "echo/fragment.json"},
	{"case twin", func(t *testing.T, dir string) {
		edit(t, dir, "echo/fragment.json", `"id": "echo",`, `"id": "echo", "ID": "echo",`)
	}, "echo", "case-twin", "echo/fragment.json"},
	{"id of another", func(t *testing.T, dir string) { edit(t, dir, "echo/fragment.json", `"id": "echo"`, `"id": "weather"`) }, "echo", "id-differs", "echo/fragment.json"},
	{"files by hand", func(t *testing.T, dir string) {
		edit(t, dir, "echo/fragment.json", `"tools": []`, `"tools": [], "files": []`)
	}, "echo", "files-by-hand", "echo/fragment.json"},
	{"folder above the tree", func(t *testing.T, dir string) { setFolder(t, dir, "../echo") }, "echo", "folder-invalid", "echo/fragment.json"},
	{"folder too deep", func(t *testing.T, dir string) { setFolder(t, dir, "echo/1/2/3") }, "echo", "folder-invalid", "echo/fragment.json"},
	{"folder is not there", func(t *testing.T, dir string) { setFolder(t, dir, "echo/1") }, "echo", "folder-unreadable", "echo/1"},
	{"folder is a link", func(t *testing.T, dir string) { setFolder(t, dir, "other"); link(t, dir, "weather", "other") }, "echo", "folder-unreadable", "other"},
	{"link out of the tree", func(t *testing.T, dir string) { link(t, dir, "/etc/passwd", "echo/passwd") }, "echo", "not-a-regular-file", "echo/passwd"},
	{"link inside the folder", func(t *testing.T, dir string) { link(t, dir, "icon.svg", "echo/again.svg") }, "echo", "not-a-regular-file", "echo/again.svg"},
	{"link to a folder", func(t *testing.T, dir string) { link(t, dir, "../weather/lib", "echo/lib") }, "echo", "not-a-regular-file", "echo/lib"},
	{"link with a source file's name", func(t *testing.T, dir string) { link(t, dir, "icon.svg", "echo/compile.py") }, "echo", "not-a-regular-file", "echo/compile.py"},
	{"reserved name", func(t *testing.T, dir string) { write(t, dir, "echo/.npmrc", "x") }, "echo", "file-path", "echo/.npmrc"},
	{"reserved name, deep", func(t *testing.T, dir string) { write(t, dir, "echo/a/sitecustomize.py", "x") }, "echo", "file-path", "echo/a/sitecustomize.py"},
	{"durable folder", func(t *testing.T, dir string) { write(t, dir, "echo/state/x", "x") }, "echo", "file-path", "echo/state/x"},
	{"names that clash", func(t *testing.T, dir string) { write(t, dir, "echo/ICON.svg", "x") }, "echo", "files-conflict", "echo"},
	{"file too large", func(t *testing.T, dir string) {
		write(t, dir, "echo/data.bin", strings.Repeat("x", manifest.MaxFileBytes+1))
	}, "echo", "file-size", "echo/data.bin"},
	{"manifest too large", func(t *testing.T, dir string) {
		write(t, dir, "echo/connector.json", strings.Repeat(" ", manifest.MaxManifestBytes+1))
	}, "echo", "file-size", "echo/connector.json"},
	{"too many files", func(t *testing.T, dir string) {
		for i := range manifest.MaxFiles {
			write(t, dir, "echo/f/"+strconv.Itoa(i), "")
		}
	}, "echo", "files-too-many", "echo"},
	{"no manifest", func(t *testing.T, dir string) { remove(t, dir, "echo/connector.json") }, "echo", "manifest-missing", "echo/connector.json"},
	{"no icon", func(t *testing.T, dir string) { remove(t, dir, "weather/icon_lg.svg") }, "weather", "icon-missing", "weather/connector.json"},
	{"no server file", func(t *testing.T, dir string) { remove(t, dir, "weather/server.py") }, "weather", "args-entry-not-shipped", "weather/connector.json"},
	{"no verify file", func(t *testing.T, dir string) { remove(t, dir, "weather/lib/verify.py") }, "weather", "verify-script-unpinned", "weather/connector.json"},
	{"server file left out", func(t *testing.T, dir string) {
		edit(t, dir, "weather/connector.json", `"args": ["server.py"]`, `"args": ["scripts/make.sh"]`)
	}, "weather", "args-entry-not-shipped", "weather/connector.json"},
	{"other version in the manifest", func(t *testing.T, dir string) {
		edit(t, dir, "weather/connector.json", `"version": 3`, `"version": 4`)
	}, "weather", "disagree-version", "weather/connector.json"},
	{"other scope in the manifest", func(t *testing.T, dir string) {
		edit(t, dir, "weather/connector.json", `"scope": "global"`, `"scope": "user"`)
	}, "weather", "disagree-scope", "weather/connector.json"},
	{"index is not JSON", func(t *testing.T, dir string) { write(t, dir, "connectors.json", "<<<<<<< ours") }, "", "previous-index-unreadable", "connectors.json"},
	{"index of a newer format", func(t *testing.T, dir string) {
		write(t, dir, "connectors.json", `{"version": 2, "connectors": []}`)
	}, "", "index-version-newer", "connectors.json"},
}

func link(t *testing.T, dir, target, name string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	os.Remove(p)
	if err := os.Symlink(target, p); err != nil {
		if runtime.GOOS == "windows" {
			t.Skipf("no links for this user on windows: %v", err)
		}
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}

func setFolder(t *testing.T, dir, folder string) {
	t.Helper()
	edit(t, dir, "echo/fragment.json", `"tools": []`, `"tools": [], "folder": "`+folder+`"`)
}

func TestHostileTrees(t *testing.T) {
	for _, row := range hostile {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := base(t)
			row.spoil(t, dir)
			before, _ := os.ReadFile(filepath.Join(dir, indexName))
			r, err := Compile(t.Context(), dir, Options{})
			if _, ok := err.(*RefusedError); !ok {
				t.Fatalf("got %v, want it refused\n%s", err, said(r))
			}
			found := false
			for _, f := range r.Findings {
				found = found || f.Connector == row.connector && f.Rule == row.rule && f.File == row.file && f.Severity == manifest.Error && f.Message != ""
			}
			if !found {
				t.Errorf("no finding %q for connector %q, file %q:\n%s", row.rule, row.connector, row.file, said(r))
			}
			if after, _ := os.ReadFile(filepath.Join(dir, indexName)); string(after) != string(before) || r.Written {
				t.Error("the refused tree changed the index")
			}
		})
	}
}

// One bad connector does not hide what is wrong with the next, and all are named in one run.
func TestAllFindingsInOneRun(t *testing.T) {
	dir := base(t)
	write(t, dir, "weather/.npmrc", "x")
	write(t, dir, "echo/fragment.json", "{")
	r, err := Compile(t.Context(), dir, Options{})
	if err == nil || !hasRule(r, "weather", "file-path") || !hasRule(r, "echo", "fragment-unreadable") {
		t.Errorf("%v\n%s", err, said(r))
	}
}

func TestFindingsNameTheLine(t *testing.T) {
	dir := base(t)
	edit(t, dir, "echo/fragment.json", `"icon_small": "echo/icon.svg"`, `"icon_small": "echo/none.svg"`)
	r, _ := Compile(t.Context(), dir, Options{})
	const want = `echo| echo/fragment.json:6:17: icon_small: error: no file "echo/none.svg" below the root of the marketplace [icon-missing]`
	if !strings.Contains(said(r), want) {
		t.Errorf("got:\n%swant:\n%s", said(r), want)
	}
}

func TestVersionMustRise(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		rule   string // "" = accepted
	}{
		{"a changed file", func(t *testing.T, dir string) { write(t, dir, "weather/server.py", "other") }, "version-not-raised"},
		{"a new file", func(t *testing.T, dir string) { write(t, dir, "weather/more.py", "more") }, "version-not-raised"},
		{"a file less", func(t *testing.T, dir string) { remove(t, dir, "weather/server/notes.txt") }, "version-not-raised"},
		{"raised", func(t *testing.T, dir string) { write(t, dir, "weather/server.py", "other"); setVersion(t, dir, "4") }, ""},
		{"raised, nothing else", func(t *testing.T, dir string) { setVersion(t, dir, "4") }, ""},
		{"lowered", func(t *testing.T, dir string) { setVersion(t, dir, "2") }, "version-not-raised"},
		{"only the fragment", func(t *testing.T, dir string) {
			edit(t, dir, "weather/fragment.json", `"Forecasts"`, `"All forecasts"`)
		}, ""},
		{"only what is not shipped", func(t *testing.T, dir string) { write(t, dir, "weather/compile.py", "other") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := base(t)
			compileOK(t, dir)
			tt.change(t, dir)
			r, err := Compile(t.Context(), dir, Options{})
			if refused := err != nil; refused != (tt.rule != "") || refused && !hasRule(r, "weather", tt.rule) {
				t.Errorf("got %v, want rule %q\n%s", err, tt.rule, said(r))
			}
		})
	}
}

// setVersion changes the version in both documents, so the manifest is a changed file as well.
func setVersion(t *testing.T, dir, version string) {
	t.Helper()
	edit(t, dir, "weather/fragment.json", `"version": 3`, `"version": `+version)
	edit(t, dir, "weather/connector.json", `"version": 3`, `"version": `+version)
}

// A connector that is new in the index, or leaves it, needs no version.
func TestConnectorsComeAndGo(t *testing.T) {
	dir := base(t)
	write(t, dir, "index.json", `["weather"]`)
	compileOK(t, dir)
	write(t, dir, "index.json", `["echo", "weather"]`)
	compileOK(t, dir)
	write(t, dir, "index.json", `["echo"]`)
	compileOK(t, dir)
	write(t, dir, "index.json", `[]`)
	compileOK(t, dir)
	if got := readBack(t, dir, indexName); got != "{\n  \"version\": 1,\n  \"connectors\": []\n}\n" {
		t.Errorf("an empty list compiles to %q", got)
	}
}
