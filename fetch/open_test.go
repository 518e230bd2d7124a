package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEntryMustBeOfTheIndex(t *testing.T) {
	tr, _ := demo()
	m := open(t, options(t, serve(t, tr)))
	ix := get(t, m, Refresh)
	e, err := ix.Lookup("demo")
	if err != nil {
		t.Fatal(err)
	}
	e.Raw = append([]byte(nil), e.Raw...)
	e.Raw[len(e.Raw)-1] = ' '
	if _, err := m.Bundle(t.Context(), ix, e); errorKind(err) != "broken" {
		t.Errorf("a made-up entry: %v", err)
	}
}

func TestPathsArePercentEncoded(t *testing.T) {
	names := []string{"a b.py", "100%.txt", "q?x=1", "h#1", "ü/é.txt", "semi;colon", "plus+and&", "per%2Fcent"}
	files := map[string]string{}
	for _, n := range names {
		files[n] = "content of " + n
	}
	tr := tree{}
	tr.index(tr.connector("demo", files))
	based := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/some/base path")
		tr.ServeHTTP(w, r)
	})
	o := options(t, serve(t, based)+"/some/base%20path/")
	b, err := bundle(open(t, o), "demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if got := read(t, b, n); got != files[n] {
			t.Errorf("%q: %q", n, got)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	tr := twoConnectors()
	next := tree{}
	next.index(next.connector("alpha-mail", nil), next.connector("beta", nil), next.connector("gamma", nil))
	for p, data := range tr { // both states stay available, as on a site that is being deployed
		if p != "connectors.json" {
			next[p] = data
		}
	}
	h := &switching{now: tr}
	o := options(t, serve(t, h))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() { // each like a process of its own: nothing is shared but the folder
			m, err := Open(o)
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 6 {
				ix, err := m.Index(t.Context(), Freshness((i+k)%2))
				if err != nil {
					t.Errorf("index: %v", err)
					return
				}
				e, err := ix.Lookup("beta")
				if err != nil || e.ID != "beta" {
					t.Errorf("lookup: %v", err)
				}
				if _, err := ix.Search(Query{Words: []string{"beta"}}); err != nil {
					t.Errorf("search: %v", err)
				}
				if k == 2 && i == 0 {
					h.set(next)
				}
			}
			if _, err := bundle(m, "beta"); err != nil {
				t.Errorf("bundle: %v", err)
			}
		})
	}
	wg.Wait()
	for line := range strings.Lines(snapshot(t, o.CacheDir)) {
		if strings.Contains(line, tempPrefix) {
			t.Errorf("left behind: %s", line)
		}
	}
	if n := len(cacheFiles(t, o, ".body")); n != 1 {
		t.Errorf("%d indexes in the cache", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, row := range []struct{ location, want string }{
		{"", "no location"},
		{"builtin", "no built-in"},
		{"ftp://host/x", `scheme "ftp"`},
		{"http://market.example", "loopback only"},
		{"http://localhost.evil.example", "loopback only"},
		{"https:///x", "no host"},
		{"https://host/x?token=abc", "no query"},
		{"https://host/x#frag", "no query"},
		{"file://elsewhere/x", "not a file URL"},
		{"https://user:hunter2@host/%zz", "not a URL"},
	} {
		_, err := Open(Options{Location: row.location, CacheDir: "x", Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", row.location, err, row.want)
		}
	}
	for _, location := range []string{"http://localhost:1", "http://127.0.0.1", "http://[::1]:8", "https://HOST/x/", `C:\tree`, "./dir"} {
		if _, err := Open(Options{Location: location, CacheDir: "x", Now: time.Now}); err != nil {
			t.Errorf("%q: %v", location, err)
		}
	}
}

func TestCacheNames(t *testing.T) {
	seen := map[string]string{}
	for _, location := range []string{"https://host", "https://host/", "https://host:444", "https://host/a", "https://host/b", "http://localhost", "https://h_st"} {
		m := open(t, options(t, location))
		_, name := m.src.id()
		if strings.ContainsAny(name, `/\:`) {
			t.Errorf("%s: %s", location, name)
		}
		if old, ok := seen[name]; ok && strings.TrimRight(location, "/") != old {
			t.Errorf("%s and %s share %s", location, old, name)
		}
		seen[name] = strings.TrimRight(location, "/")
	}
	if u, _ := url.Parse("https://host"); seen[u.Host] != "https://host" {
		t.Error(fmt.Sprint(seen))
	}
}

func TestLargeFolderIsKept(t *testing.T) {
	tr := tree{}
	tr["connectors.json"] = syntheticIndex(1200)
	dir := writeTree(t, tr)
	file := filepath.Join(dir, "connectors.json")
	o := options(t, dir)
	touch := func(age time.Duration) {
		if err := os.Chtimes(file, time.Time{}, o.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	touch(time.Hour)
	m := open(t, o)
	first := get(t, m, Cached)
	before := snapshot(t, o.CacheDir)
	if !strings.Contains(before, ".side3 ") {
		t.Fatalf("nothing was kept:\n%s", before)
	}
	if ix := get(t, m, Cached); ix.Digest() != first.Digest() || snapshot(t, o.CacheDir) != before {
		t.Error("an unchanged folder was read again")
	}
	tr["connectors.json"] = syntheticIndex(1201)
	if err := os.WriteFile(file, tr["connectors.json"], 0o644); err != nil {
		t.Fatal(err)
	}
	touch(time.Second) // too young to be told by its time from one that is still being written
	for range 2 {
		if ix := get(t, m, Cached); ix.Len() != 1201 {
			t.Errorf("the changed folder was not read: %d entries", ix.Len())
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Index(t.Context(), Cached); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without an index: %v", err)
	}
}

func TestOldTemporaryFilesAreSwept(t *testing.T) {
	tr, _ := demo()
	o := options(t, serve(t, tr))
	m := open(t, o)
	get(t, m, Refresh)
	shard := filepath.Dir(filepath.Join(o.CacheDir, filepath.FromSlash(filePath(digestOf(goodFile)))))
	for _, d := range []string{shard, filepath.Join(o.CacheDir, "index")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, age := range map[string]time.Duration{"old": tempAge + time.Hour, "young": time.Hour} {
			p := filepath.Join(d, tempPrefix+name)
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(p, time.Time{}, o.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := bundle(m, "demo"); err != nil {
		t.Fatal(err)
	}
	left := snapshot(t, o.CacheDir)
	if strings.Contains(left, tempPrefix+"old") || strings.Count(left, tempPrefix+"young") != 2 {
		t.Error(left)
	}
}
