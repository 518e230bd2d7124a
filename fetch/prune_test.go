package fetch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	now := newClock().now()
	put := func(name string, age time.Duration) string {
		digest := digestOf(name)
		path := filepath.Join(dir, filesDir, digest[:2], digest)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	kept := put("kept", 90*24*time.Hour)
	put("old", 31*24*time.Hour)
	put("young", 29*24*time.Hour)
	freed, err := Prune(dir, map[string]bool{kept: true}, now)
	if err != nil || freed != 3 {
		t.Errorf("freed %d, %v", freed, err)
	}
	left := snapshot(t, filepath.Join(dir, filesDir))
	for name, want := range map[string]bool{"kept": true, "old": false, "young": true} {
		if strings.Contains(left, "/"+digestOf(name)) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	put("old", 31*24*time.Hour)
	if freed, err := Prune(dir, nil, now.Add(time.Hour)); err != nil || freed != 0 {
		t.Errorf("it looked twice a day: %d %v", freed, err)
	}
	if freed, err := Prune(dir, nil, now.Add(25*time.Hour)); err != nil || freed == 0 {
		t.Errorf("it did not look the next day: %d %v", freed, err)
	}
	if _, err := Prune(filepath.Join(dir, "none"), nil, now); err != nil {
		t.Error(err)
	}
}

// Several processes read a signed marketplace while it is published again and again: each sees a whole state, and the
// floor never falls.
func TestManyReadersOfASignedMarketplace(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	p := signed()
	v.site.show(p.files)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			seen := int64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				m, err := Open(v.o) // as another process
				if err != nil {
					t.Error(err)
					return
				}
				ix, err := m.Index(context.Background(), Refresh)
				m.src.(*webSource).c.http.CloseIdleConnections()
				if err != nil {
					if k := kind(err); k != "rollback" { // an answer that came late, after a newer one was seen
						t.Errorf("%v", err)
						return
					}
					continue
				}
				if n := ix.Trust().Seq; n < seen {
					t.Errorf("number %d after %d", n, seen)
				} else {
					seen = n
				}
				if _, err := ix.Lookup("demo"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 30 {
		before := p.files["connectors.json.minisig"]
		p.seq = i + 2
		p.index(indexer(0))
		next := p.files["connectors.json"]
		p.files["connectors.json.minisig"] = append(p.files["connectors.json.minisig"], before...)
		p.files["connectors.json.minisig"] = p.files["connectors.json.minisig"][:min(len(p.files["connectors.json.minisig"]), 2*len(before))]
		_ = next
		v.site.show(p.files)
	}
	close(stop)
	readers.Wait()
	if ix := get(t, open(t, v.o), Refresh); ix.Trust().Seq != 31 {
		t.Errorf("number %d at the end", ix.Trust().Seq)
	}
}
