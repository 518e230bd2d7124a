package install

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skald-connectors/fetch"
	"skald-connectors/manifest"
)

// market writes a folder marketplace with one connector, and opens it.
func market(t *testing.T, b fakeBundle) (cache string, m *fetch.Marketplace) {
	t.Helper()
	dir, cache := tempDir(t), tempDir(t)
	type file struct {
		Path   string `json:"path"`
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	}
	var files []file
	for _, f := range b.Files() {
		files = append(files, file(f))
		write(t, filepath.Join(dir, b.id, filepath.FromSlash(f.Path)), b.content[f.Path])
	}
	index, err := json.Marshal(map[string]any{"version": 1, "connectors": []any{map[string]any{
		"id": b.id, "name": "Mail", "type": "mcp_local", "scope": "user", "version": b.version, "files": files,
	}}})
	check(t, err)
	write(t, filepath.Join(dir, "connectors.json"), string(index))
	m, err = fetch.Open(fetch.Options{Location: dir, CacheDir: cache, Now: time.Now})
	check(t, err)
	return cache, m
}

func bundleOf(t *testing.T, m *fetch.Marketplace, id string) *fetch.Bundle {
	t.Helper()
	ix, err := m.Index(context.Background(), fetch.Refresh)
	check(t, err)
	e, err := ix.Lookup(id)
	check(t, err)
	b, err := m.Bundle(context.Background(), ix, e)
	check(t, err)
	return b
}

// A real bundle, from a folder on disk to a folder that runs.
func TestStageOfRealBundle(t *testing.T) {
	want := v1()
	want.content["connector.json"] = `{"id":"mail","name":"Mail","type":"mcp_local","scope":"user","version":1,"mcp_config":{"command":"python3","args":["index.py"]}}`
	_, m := market(t, want)
	b := bundleOf(t, m, "mail")
	s := Open(tempDir(t))
	st, err := s.Stage(context.Background(), b, nil)
	check(t, err)
	done, err := st.Commit("mail")
	check(t, err)
	if done.Ref != want.ref() {
		t.Errorf("ref %v, want %v", done.Ref, want.ref())
	}
	clean(t, s, want, "mail")
	for p, data := range want.content {
		content(t, filepath.Join(done.Dir, filepath.FromSlash(p)), data)
		content(t, filepath.Join(done.Work, filepath.FromSlash(p)), data)
	}

	// A byte that changes in the cache after the bundle was made is not installed.
	want.version, want.content["index.py"] = 2, "print(22)\n"
	want.content["connector.json"] = `{"id":"mail","name":"Mail","type":"mcp_local","scope":"user","version":2,"mcp_config":{"command":"python3","args":["index.py"]}}`
	cache, m := market(t, want)
	b = bundleOf(t, m, "mail")
	flip(t, cache, "print(22)\n", "print(23)\n")
	before := snapshot(t, s.home)
	_, err = s.Stage(context.Background(), b, nil)
	var pin *fetch.PinError
	if !errors.As(err, &pin) {
		t.Errorf("staged changed bytes: %v", err)
	}
	same(t, "refused", snapshot(t, s.home), before)
}

// flip changes the file with the given content below dir.
func flip(t *testing.T, dir, old, new string) {
	t.Helper()
	done := false
	check(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		check(t, err)
		if d.IsDir() {
			return nil
		}
		if data, err := os.ReadFile(p); err == nil && string(data) == old {
			check(t, os.Chmod(p, 0o600))
			check(t, os.WriteFile(p, []byte(new), 0o600))
			done = true
		}
		return nil
	}))
	if !done {
		t.Fatalf("no file with %q in the cache", old)
	}
}

func BenchmarkStageAndCommit(b *testing.B) {
	bundle := v1()
	for range 100 {
		bundle.content["lib/"+newToken()[:8]+".py"] = "x = 1\n"
	}
	s := Open(tempDir(b))
	for i := 0; b.Loop(); i++ {
		bundle.version = manifest.Version(i)
		if err := put(s, bundle, "work", nil, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
