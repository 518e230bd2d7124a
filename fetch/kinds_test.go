package fetch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skald-connectors/manifest"
)

func twoConnectors() tree {
	tr := tree{}
	a := tr.connector("alpha-mail", map[string]string{"lib/a b.py": "x = 1\n", "icon_sm.svg": "<svg/>"})
	b := tr.connector("beta", map[string]string{"icon_sm.svg": "<svg/>", "page.html": "<html></html>"})
	return tr.index(a, b)
}

func TestAllKinds(t *testing.T) {
	eachKind(t, twoConnectors(), func(t *testing.T, o Options) {
		var mu sync.Mutex
		var last Event
		cached := 0
		o.Progress = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.FromCache {
				cached++
			}
			last = e
		}
		m := open(t, o)
		ix := get(t, m, Cached)
		if ix.Len() != 2 || ix.FromCache() || ix.Err() != nil || !isDigest(ix.Digest()) || ix.Location() != m.Location() {
			t.Fatalf("index: %d entries, cache %v, %v", ix.Len(), ix.FromCache(), ix.Err())
		}
		if found, err := ix.Diagnostics(); err != nil {
			t.Errorf("diagnostics: %v %v", found, err)
		}
		e, err := ix.Lookup("beta")
		if err != nil {
			t.Fatal(err)
		}
		if pre, err := m.Preview(t.Context(), ix, e); err != nil || pre.Manifest.ID != "beta" || pre.Unpinned || last.Files != 1 {
			t.Errorf("preview: %v, %+v", err, last)
		}
		b, err := bundle(m, "alpha-mail")
		if err != nil {
			t.Fatal(err)
		}
		if b.Manifest().ID != "alpha-mail" || b.Entry().ID != "alpha-mail" || b.Index().Digest() != ix.Digest() || len(b.Unpinned()) != 0 {
			t.Errorf("bundle is of %q, %q", b.Manifest().ID, b.Entry().ID)
		}
		if got := read(t, b, "lib/a b.py"); got != "x = 1\n" {
			t.Errorf("file: %q", got)
		}
		if _, err := b.Open("absent"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("absent file: %v", err)
		}
		if len(b.Files()) != 4 || last.Files != 4 || last.TotalFiles != 4 || last.Bytes != last.TotalBytes || cached != 0 {
			t.Errorf("files %v, last event %+v, %d cached", b.Files(), last, cached)
		}
		if _, err := bundle(m, "alpha-mail"); err != nil || cached != 4 {
			t.Errorf("second time: %v, %d files from the cache", err, cached)
		}
		if _, err := bundle(m, "beta"); err != nil {
			t.Errorf("a page that is pinned is a file: %v", err)
		}
	})
}

func TestCacheIsNotBelieved(t *testing.T) {
	eachKind(t, twoConnectors(), func(t *testing.T, o Options) {
		m := open(t, o)
		b, err := bundle(m, "beta")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(o.CacheDir, filepath.FromSlash(filePath(digestOf("print('beta')\n"))))
		for _, damage := range []string{"print('bexx')\n", "", "print('beta')\n#"} {
			if err := os.WriteFile(file, []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := b.Open("server.py")
			if err == nil {
				_, err = io.ReadAll(r)
				r.Close()
			}
			var pin *PinError
			if !errors.As(err, &pin) || pin.File != "server.py" {
				t.Errorf("reading %q: %v", damage, err)
			}
			if b, err = bundle(m, "beta"); err != nil {
				t.Fatalf("after %q: %v", damage, err)
			}
			if got := read(t, b, "server.py"); got != "print('beta')\n" {
				t.Errorf("after %q: %q", damage, got)
			}
		}
	})
}

func TestLookup(t *testing.T) {
	tr := tree{}
	tr.index(tr.connector("gmail", nil), tr.connector("imap", nil), tr.connector("twin", nil), tr.connector("twin", nil),
		tr.connector("whatsapp", nil), tr.connector("whatsApp", nil), map[string]any{"name": "no id"}, map[string]any{"id": "bad", "files": 7},
		tr.connector("-rf", nil), tr.connector("../../x", nil))
	eachKind(t, tr, func(t *testing.T, o Options) {
		ix := get(t, open(t, o), Refresh)
		for _, row := range []struct{ id, broken, near string }{
			{"gmail", "", ""},
			{"gmial", "", "gmail"},
			{"GMAIL", "", "gmail"},
			{"mail", "", "gmail"},
			{"zzzzzz", "", "-"},
			{"", "", "-"},
			{strings.Repeat("a", 5000), "", "-"},
			{"twin", "2 entries", ""},
			{"whatsapp", "2 entries", ""},
			{"bad", "files", ""},
			{"-rf", "id", ""},
			{"../../x", "id", ""},
		} {
			e, err := ix.Lookup(row.id)
			var missing *NotFoundError
			var broken *BrokenError
			switch {
			case row.broken != "":
				if !errors.As(err, &broken) || !strings.Contains(broken.Reason, row.broken) || e.Broken == "" {
					t.Errorf("%q: %v, want broken: %s", row.id, err, row.broken)
				}
			case row.near != "":
				if !errors.As(err, &missing) || row.near != "-" && (len(missing.Near) == 0 || missing.Near[0] != row.near) || row.near == "-" && len(missing.Near) > 0 {
					t.Errorf("%q: %v, want near %q", row.id, err, row.near)
				}
			case err != nil || e.ID != row.id:
				t.Errorf("%q: %q, %v", row.id, e.ID, err)
			}
		}
		versions, err := ix.Versions([]string{"gmail", "twin", "absent", "imap"})
		if err != nil || len(versions) != 2 || versions["gmail"] != manifest.Version(1) {
			t.Errorf("versions: %v, %v", versions, err)
		}
		all, err := ix.Search(Query{})
		if err != nil || len(all) != ix.Len() {
			t.Errorf("%d of %d entries are listed, %v", len(all), ix.Len(), err)
		}
	})
}

func TestLookupByAnEscapedID(t *testing.T) {
	tr, _ := demo()
	tr["connectors.json"] = []byte(strings.Replace(string(tr["connectors.json"]), `"id": "demo"`, `"\u0069d": "\u0064emo"`, 1))
	ix := get(t, open(t, options(t, serve(t, tr))), Refresh)
	if e, err := ix.Lookup("demo"); err != nil || e.ID != "demo" {
		t.Errorf("%q, %v", e.ID, err)
	}
}

func TestFolderLinksAndSpecialFiles(t *testing.T) {
	tr, _ := demo()
	dir := writeTree(t, tr)
	file := filepath.Join(dir, "demo", "server.py")
	moved := filepath.Join(dir, "elsewhere.py")
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, file); err != nil {
		t.Skip("no symbolic links here")
	}
	o := options(t, dir)
	if _, err := bundle(open(t, o), "demo"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link was read: %v", err)
	}
}

func TestInterruptedIsQuietAndQuick(t *testing.T) {
	eachKind(t, twoConnectors(), func(t *testing.T, o Options) {
		m := open(t, o)
		ix := get(t, m, Refresh)
		e, err := ix.Lookup("beta")
		if err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, o.CacheDir)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := m.Bundle(ctx, ix, e); !errors.Is(err, context.Canceled) {
			t.Errorf("bundle: %v", err)
		}
		if _, err := m.Index(ctx, Refresh); !errors.Is(err, context.Canceled) {
			t.Errorf("index: %v", err)
		}
		if after := snapshot(t, o.CacheDir); after != before {
			t.Errorf("left behind:\n%s", after)
		}
	})
}
