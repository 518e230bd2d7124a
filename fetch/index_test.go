package fetch

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// switching is a handler that can be exchanged, and counts.
type switching struct {
	mu   sync.Mutex
	now  http.Handler
	seen atomic.Int64
}

func (s *switching) set(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = h
}

func (s *switching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.now
	s.mu.Unlock()
	s.seen.Add(1)
	h.ServeHTTP(w, r)
}

func TestConditionalRequests(t *testing.T) {
	tr, _ := demo()
	var asked []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match"))
		tr.ServeHTTP(w, r)
	})
	c := newClock()
	o := options(t, serve(t, h))
	o.Now = c.now
	m := open(t, o)
	first := get(t, m, Cached)
	get(t, m, Cached)
	if len(asked) != 1 {
		t.Fatalf("a fresh index was asked for %d times", len(asked))
	}
	c.add(freshFor + time.Second)
	second := get(t, m, Cached)
	if len(asked) != 2 || asked[1] == "" || second.Digest() != first.Digest() || !second.Fetched().After(first.Fetched()) || second.FromCache() {
		t.Errorf("asked %q, fetched %v", asked, second.Fetched())
	}
	if get(t, m, Cached); len(asked) != 2 {
		t.Error("the confirmation was not kept")
	}
	c.add(-24 * time.Hour)
	if get(t, m, Cached); len(asked) != 3 {
		t.Error("an index from the future counts as fresh")
	}
	if ix := get(t, m, Offline); !ix.FromCache() || ix.Err() != nil || len(asked) != 3 {
		t.Errorf("offline: %d questions, %v", len(asked), ix.Err())
	}
}

func TestValidatorsThatLie(t *testing.T) {
	tr, _ := demo()
	other := tree{}
	other.index(other.connector("other", nil))
	same := func(tr tree) http.HandlerFunc { // the same tag for all bytes
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"always"`)
			w.Write(tr["connectors.json"])
		}
	}
	h := &switching{now: same(tr)}
	o := options(t, serve(t, h))
	m := open(t, o)
	first := get(t, m, Refresh)
	h.set(same(other))
	if ix := get(t, m, Refresh); ix.Digest() == first.Digest() || ix.Err() != nil {
		t.Errorf("new bytes under the old tag were not taken: %v", ix.Err())
	} else if _, err := ix.Lookup("other"); err != nil {
		t.Error(err)
	}
	h.set(status(http.StatusNotModified))
	for _, name := range cacheFiles(t, o, ".body") { // the cached index is another one now: its tag must not be used
		if err := os.WriteFile(name, []byte(`{"connectors": [{"id": "evil"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Index(t.Context(), Refresh); err == nil {
		t.Error("a cached index that does not match its digest was confirmed by a 304")
	}
	h.set(tr)
	if _, err := get(t, m, Refresh).Lookup("demo"); err != nil {
		t.Error(err)
	}
}

func cacheFiles(t *testing.T, o Options, ext string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(o.CacheDir, "index", "*"+ext))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s file in the cache: %v", ext, err)
	}
	return names
}

func TestDamagedCache(t *testing.T) {
	tr := twoConnectors()
	for _, row := range []struct {
		name, ext string
		damage    func([]byte) []byte
	}{
		{"side gone", "." + sideKind, nil},
		{"side empty", "." + sideKind, func([]byte) []byte { return nil }},
		{"side header", "." + sideKind, func(b []byte) []byte { b[20] ^= 1; return b }},
		{"side record", "." + sideKind, func(b []byte) []byte { b[headerSize+5] ^= 1; return b }},
		{"side text", "." + sideKind, func(b []byte) []byte { b[headerSize+2*recordSize+3] ^= 1; return b }},
		{"side table", "." + sideKind, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }},
		{"side cut", "." + sideKind, func(b []byte) []byte { return b[:len(b)-5] }},
		{"body gone", ".body", nil},
		{"body cut", ".body", func(b []byte) []byte { return b[:len(b)-5] }},
		{"body flipped", ".body", func(b []byte) []byte { b[len(b)/3] ^= 1; return b }},
		{"pointer empty", ".json", func([]byte) []byte { return nil }},
		{"pointer junk", ".json", func(b []byte) []byte { return b[:len(b)/2] }},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &switching{now: tr}
			o := options(t, serve(t, h))
			get(t, open(t, o), Refresh)
			for _, name := range cacheFiles(t, o, row.ext) {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				os.Remove(name)
				if row.damage != nil {
					if err := os.WriteFile(name, row.damage(data), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			m := open(t, o)
			ix := get(t, m, Cached)
			_, err := ix.Lookup("beta")
			_, err2 := ix.Lookup("alpha-mail")
			if row.ext != ".body" && errors.Join(err, err2) != nil {
				t.Errorf("lookup: %v, %v", err, err2)
			}
			ix = get(t, m, Cached) // what was damaged is fetched now
			if _, err := ix.Lookup("alpha-mail"); err != nil {
				t.Errorf("the second time: %v", err)
			}
			if row.ext == "."+sideKind && h.seen.Load() != 1 {
				t.Errorf("a side file is built from the index that is here; asked %d times", h.seen.Load())
			}
		})
	}
}

func TestPointerOfANewerProgram(t *testing.T) {
	tr, _ := demo()
	o := options(t, serve(t, tr))
	m := open(t, o)
	get(t, m, Refresh)
	name := cacheFiles(t, o, ".json")[0]
	edit := func(change func(map[string]any)) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		change(all)
		data, _ = json.Marshal(all)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(p map[string]any) { p["seq"] = 42 })
	get(t, m, Refresh)
	if data, _ := os.ReadFile(name); !strings.Contains(string(data), `"seq": 42`) {
		t.Errorf("an unknown member was lost: %s", data)
	}
	edit(func(p map[string]any) { p["format"] = 2 })
	before := snapshot(t, o.CacheDir)
	if _, err := m.Index(t.Context(), Refresh); err == nil || !strings.Contains(err.Error(), "written by a newer version") {
		t.Errorf("newer format: %v", err)
	}
	if snapshot(t, o.CacheDir) != before {
		t.Error("the file of a newer program was touched")
	}
}

func TestUnreachable(t *testing.T) {
	tr, _ := demo()
	h := &switching{now: tr}
	o := options(t, serve(t, h))
	c := newClock()
	o.Now = c.now
	m := open(t, o)
	if _, err := m.Index(t.Context(), Offline); errorKind(err) != "unreachable" {
		t.Errorf("offline without a cache: %v", err)
	}
	get(t, m, Refresh)
	c.add(48 * time.Hour)
	h.set(status(http.StatusForbidden))
	ix := get(t, m, Cached)
	if age := c.now().Sub(ix.Fetched()); !ix.FromCache() || ix.Err() == nil || age != 48*time.Hour {
		t.Errorf("fallback: %v, age %v", ix.Err(), age)
	}
	dead := options(t, "http://127.0.0.1:1/x")
	if _, err := open(t, dead).Index(t.Context(), Refresh); errorKind(err) != "unreachable" || !strings.Contains(err.Error(), "127.0.0.1:1 cannot be reached") {
		t.Errorf("dead host: %v", err)
	}
}

func TestIndexLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 128 MiB over loopback")
	}
	o := options(t, serve(t, http.HandlerFunc(endless)))
	_, err := open(t, o).Index(t.Context(), Refresh)
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("endless index: %v", err)
	}
	if left := snapshot(t, o.CacheDir); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	o = options(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10000000000")
		w.(http.Flusher).Flush()
	})))
	if _, err := open(t, o).Index(t.Context(), Refresh); err == nil || !strings.Contains(err.Error(), "10000000000 bytes") {
		t.Errorf("declared 10 GB: %v", err)
	}
}

func TestFolderChangesBetweenIndexAndFiles(t *testing.T) {
	old, _ := demo()
	tr := tree{}
	e := tr.connector("demo", map[string]string{"server.py": "print('new')\n"})
	e["name"] = "Newer"
	tr.index(e)
	gone := tree{}
	ge := gone.connector("demo", map[string]string{"main.py": "print('new')\n"})
	gone.index(ge)
	delete(gone, "demo/server.py")
	ge["files"] = ge["files"].([]any)[:2]
	gone.index(ge)
	for name, next := range map[string]tree{"file changed": tr, "file gone": gone} {
		t.Run(name, func(t *testing.T) {
			h := &switching{now: old}
			o := options(t, serve(t, h))
			var reread atomic.Int64
			o.Progress = func(e Event) {
				if e.IndexReread {
					reread.Add(1)
				}
			}
			m := open(t, o)
			ix := get(t, m, Refresh)
			stale, err := ix.Lookup("demo")
			if err != nil {
				t.Fatal(err)
			}
			h.set(next)
			b, err := m.Bundle(t.Context(), ix, stale)
			if err != nil {
				t.Fatal(err)
			}
			if reread.Load() != 1 || b.Index().Digest() == ix.Digest() || string(b.Entry().Raw) == string(stale.Raw) {
				t.Errorf("reread %d times, entry %q", reread.Load(), b.Entry().Name)
			}
		})
	}
}
