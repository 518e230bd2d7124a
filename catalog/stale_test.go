package catalog

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

func TestVerifySaysWhatIsStale(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   []string // parts of the findings
	}{
		{"no index", func(t *testing.T, dir string) { remove(t, dir, indexName) },
			[]string{`| connectors.json: error: there is no compiled index [stale]`}},
		{"a changed file", func(t *testing.T, dir string) { write(t, dir, "weather/server.py", "other") },
			[]string{`weather| weather/server.py: error: the index pins sha256`, `version-not-raised`}},
		{"a new file", func(t *testing.T, dir string) { write(t, dir, "echo/new.txt", "new") },
			[]string{`echo| echo/new.txt: error: the index does not pin it [stale]`}},
		{"a file less", func(t *testing.T, dir string) { remove(t, dir, "weather/server/notes.txt") },
			[]string{`weather| weather/server/notes.txt: error: the index pins it, the folder does not have it [stale]`}},
		{"a changed fragment", func(t *testing.T, dir string) {
			edit(t, dir, "weather/fragment.json", `"Forecasts"`, `"All forecasts"`)
		}, []string{`weather| weather/fragment.json: error: user_description differs from the index [stale]`}},
		{"a connector more", func(t *testing.T, dir string) {
			edit(t, dir, indexName, `"id": "echo"`, `"id": "other"`)
		}, []string{`echo| echo: error: the index does not list it [stale]`, `other| connectors.json: error: the index lists it, the tree does not have it [stale]`}},
		{"another order", func(t *testing.T, dir string) { write(t, dir, "index.json", `["echo", "weather"]`) },
			[]string{`the order differs: position 1 is "weather", index.json has "echo" [stale]`}},
		{"edited by hand", func(t *testing.T, dir string) { edit(t, dir, indexName, "  ", "\t") },
			[]string{`the same content in other bytes; it was edited by hand or written by another program [stale]`}},
		{"an index that cannot be read", func(t *testing.T, dir string) { write(t, dir, indexName, "{") },
			[]string{`[previous-index-unreadable]`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := base(t)
			compileOK(t, dir)
			tt.change(t, dir)
			before := snapshot(t, dir)
			r, err := Verify(t.Context(), dir, Options{})
			if err == nil {
				t.Error("a stale index was accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(said(r), want) {
					t.Errorf("got:\n%swant:\n%s", said(r), want)
				}
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("verifying changed the tree:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// A current tree is opened through package fetch with a cache that is not in the tree.
func TestVerifyCurrentTree(t *testing.T) {
	dir := base(t)
	compileOK(t, dir)
	before := snapshot(t, dir)
	r, err := Verify(t.Context(), dir, Options{CacheDir: t.TempDir(), Now: time.Now})
	if err != nil || r.Written {
		t.Errorf("got %v, written %v\n%s", err, r.Written, said(r))
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("verifying changed the tree:\n%s\nbefore:\n%s", after, before)
	}
}

// snapshot lists names, kinds, sizes and times of everything below dir.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			b.WriteString(p + " " + fi.Mode().String() + " " + fi.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
