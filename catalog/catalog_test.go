package catalog

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"skald-connectors/manifest"
)

var update = flag.Bool("update", false, "write what the golden trees compile to into their archives")

// wantDir holds, in an archive, what a tree compiles to.
const wantDir = "want/"

// extract writes an archive's tree into a new folder.
func extract(t testing.TB, a *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Name, wantDir) {
			write(t, dir, f.Name, string(f.Data))
		}
	}
	return dir
}

func write(t testing.TB, dir, name, data string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readBack(t testing.TB, dir, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// edit replaces text in a file of the tree; the text must be there.
func edit(t testing.TB, dir, name, old, new string) {
	t.Helper()
	src := readBack(t, dir, name)
	if !strings.Contains(src, old) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	write(t, dir, name, strings.ReplaceAll(src, old, new))
}

// base is a fresh copy of the tree of two.txtar.
func base(t testing.TB) string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/trees/two.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return extract(t, a)
}

func compileOK(t testing.TB, dir string) Report {
	t.Helper()
	r, err := Compile(t.Context(), dir, Options{})
	if err != nil {
		t.Fatalf("compiling: %v\n%s", err, said(r))
	}
	return r
}

// said is a report's findings, one a line.
func said(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.Connector + "| " + f.Diagnostic.String() + "\n")
	}
	return b.String()
}

func hasRule(r Report, connector, rule string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Connector == connector && f.Rule == rule })
}

func TestGoldenTrees(t *testing.T) {
	archives, err := filepath.Glob("testdata/trees/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden trees: %v", err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir := extract(t, a)
			r, err := Compile(t.Context(), dir, Options{})
			got := map[string]string{wantDir + "findings": said(r)}
			if err == nil {
				got[wantDir+"connectors.json"] = readBack(t, dir, indexName)
			}
			if *update {
				rewrite(t, name, a, got)
			}
			compareGolden(t, a, got)
		})
	}
}

func compareGolden(t *testing.T, a *txtar.Archive, got map[string]string) {
	t.Helper()
	want := map[string]string{}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, wantDir) {
			want[f.Name] = string(f.Data)
		}
	}
	if len(want) == 0 {
		t.Error("the archive says nothing about what it compiles to; run go test with -update and read the result")
	}
	for _, name := range []string{wantDir + "connectors.json", wantDir + "findings"} {
		if got[name] != want[name] {
			t.Errorf("%s:\n got:\n%s\nwant:\n%s", name, got[name], want[name])
		}
	}
}

func rewrite(t *testing.T, name string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, wantDir) })
	for _, n := range []string{wantDir + "connectors.json", wantDir + "findings"} {
		if got[n] != "" {
			a.Files = append(a.Files, txtar.File{Name: n, Data: []byte(got[n])})
		}
	}
	if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCompileIsDeterministic(t *testing.T) {
	var first string
	for _, jobs := range []int{1, 2, 16} {
		dir := base(t)
		r, err := Compile(t.Context(), dir, Options{Jobs: jobs})
		if err != nil || !r.Written {
			t.Fatalf("%d jobs: written %v, %v\n%s", jobs, r.Written, err, said(r))
		}
		got := readBack(t, dir, indexName)
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%d jobs compile to other bytes", jobs)
		}
		again := compileOK(t, dir)
		if again.Written || readBack(t, dir, indexName) != first {
			t.Errorf("compiling an unchanged tree: written %v", again.Written)
		}
		if r.Connectors != 2 || r.Files != 8 || r.Bytes == 0 {
			t.Errorf("report: %d connectors, %d files, %d bytes", r.Connectors, r.Files, r.Bytes)
		}
	}
}

// What an editor on Windows writes means the same; only the pins of the files differ.
func TestByteOrderMarkAndCRLF(t *testing.T) {
	const bom = "\xef\xbb\xbf"
	dir := base(t)
	compileOK(t, dir)
	want := readBack(t, dir, indexName)
	for _, name := range []string{"index.json", "weather/fragment.json", "echo/fragment.json"} {
		write(t, dir, name, bom+strings.ReplaceAll(readBack(t, dir, name), "\n", "\r\n"))
	}
	if r := compileOK(t, dir); r.Written || readBack(t, dir, indexName) != want {
		t.Errorf("a byte order mark and CRLF in the sources change the index:\n%s", readBack(t, dir, indexName))
	}
	os.Remove(filepath.Join(dir, indexName)) // or the changed manifest would need a new version
	name := "weather/connector.json"
	write(t, dir, name, bom+strings.ReplaceAll(readBack(t, dir, name), "\n", "\r\n"))
	compileOK(t, dir)
}

func TestUnknownMembersOfTheIndexAreKept(t *testing.T) {
	dir := base(t)
	compileOK(t, dir)
	want := readBack(t, dir, indexName)
	edit(t, dir, indexName, "{\n  \"version\": 1,", "{\n  \"seq\": 41,\n  \"version\": 1,\n  \"revoked\": [],")
	edit(t, dir, "weather/fragment.json", `"user_description": "Forecasts"`, `"user_description": "Forecasts and more"`)
	compileOK(t, dir)
	got := readBack(t, dir, indexName)
	expected := strings.Replace(want, "{\n  \"version\": 1,", "{\n  \"seq\": 41,\n  \"version\": 1,\n  \"revoked\": [],", 1)
	expected = strings.Replace(expected, `"Forecasts"`, `"Forecasts and more"`, 1)
	if got != expected {
		t.Errorf("got:\n%s\nwant:\n%s", got, expected)
	}
}

func TestErrorTexts(t *testing.T) {
	dir := base(t)
	edit(t, dir, "index.json", `"echo"`, `"Echo"`)
	_, err := Compile(t.Context(), dir, Options{})
	var refused *RefusedError
	if !errors.As(err, &refused) || err.Error() != `marketplace "`+dir+`": 1 error` {
		t.Errorf("got %v", err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Compile(t.Context(), none, Options{}); err == nil || err.Error() != `compiling "`+none+`": open `+none+`: no such file or directory` {
		t.Errorf("got %v", err)
	}
	if _, err := Verify(t.Context(), t.TempDir(), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without index.json: %v", err)
	}
}

func TestCancelledCompileWritesNothing(t *testing.T) {
	dir := base(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compile(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, indexName)); err == nil {
		t.Error("an index was written")
	}
}

func TestSeverityOfFindings(t *testing.T) {
	dir := base(t)
	write(t, dir, "stray/fragment.json", "{}")
	r := compileOK(t, dir)
	for _, f := range r.Findings {
		if f.Severity == manifest.Error {
			t.Errorf("an error was let through: %v", f)
		}
	}
	if !hasRule(r, "stray", "not-listed") || !hasRule(r, "weather", "left-out") {
		t.Errorf("missing findings:\n%s", said(r))
	}
}
