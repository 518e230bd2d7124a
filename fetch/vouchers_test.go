package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// rotated is a site whose keys changed twice: other roots, then another index key.
func rotated() *press {
	p := signed()
	p.keys(keysOf(2, 1, []signer{root(3)}, 1, []signer{indexer(1)}), root(0), root(1), root(3))
	p.keys(keysOf(3, 1, []signer{root(3)}, 1, []signer{indexer(2)}), root(3))
	p.keysV = 3
	return p.index(indexer(2))
}

// exportCached writes a bundle file from what is cached; the error is Export's.
func exportCached(t *testing.T, o Options) (file string, err error) {
	t.Helper()
	m := open(t, o)
	ix := get(t, m, Offline)
	e, err := ix.Lookup("demo")
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Bundle(context.Background(), ix, e)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "demo.tar"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Name(), errors.Join(m.Export(context.Background(), b, "", f), f.Close())
}

// TestExportFromTheCache: a bundle of a signed marketplace needs nothing but the cache, and every machine that could judge the
// marketplace itself can judge it.
func TestExportFromTheCache(t *testing.T) {
	embedded := func(v *visitor) *visitor {
		v.o.Keys = signed().files[keysName]
		return v.pin(0)
	}
	for name, row := range map[string]struct {
		site         *press
		from, reader func(*visitor) *visitor
		want         string
	}{
		"the same keys":            {signed(), nil, nil, ""},
		"keys that sign the index": {plainPress(), func(v *visitor) *visitor { return v.pin(1, indexer(0)) }, nil, ""},
		"after rotations":          {rotated(), nil, nil, ""},
		"present roots read it":    {rotated(), nil, func(v *visitor) *visitor { return v.pin(1, root(3)) }, ""},
		"present roots wrote it":   {rotated(), func(v *visitor) *visitor { return v.pin(1, root(3)) }, func(v *visitor) *visitor { return v.pin(2, root(0), root(1)) }, ""},
		"built in":                 {signed(), embedded, nil, ""},
		"built in, read by a pin":  {signed(), embedded, func(v *visitor) *visitor { v.o.Keys = nil; return v.pin(2, root(0), root(1)) }, ""},
		"a stranger reads it":      {signed(), nil, func(v *visitor) *visitor { return v.pin(1, stranger()) }, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := visit(t).pin(2, root(0), root(1))
			if row.from != nil {
				row.from(v)
			}
			v.want(row.site, "")
			asked := len(v.site.asked)
			v.site.show(tree{})
			file, err := exportCached(t, v.o)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.site.asked) != asked {
				t.Errorf("the network was asked for %q", v.site.asked[asked:])
			}
			if row.reader != nil {
				row.reader(v)
			}
			m := open(t, elsewhere(t, v, file))
			defer m.Close()
			_, err = bundle(m, "demo")
			if got := kind(err); got != row.want {
				t.Errorf("read elsewhere: %q, want %q", got, row.want)
			}
		})
	}
}

// plainPress is a site whose index is signed by the pinned keys themselves.
func plainPress() *press {
	p := newPress()
	p.keysV = 0
	return p.index(indexer(0))
}

// TestVouchersAreNotBelieved: what stands in the cache is judged before it goes into a bundle, and asked for where it is gone or wrong.
func TestVouchersAreNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"gone":  func(t *testing.T, path string) { noError(t, os.Remove(path)) },
		"wrong": func(t *testing.T, path string) { noError(t, os.WriteFile(path, []byte("{}"), 0o600)) },
		"newer": func(t *testing.T, path string) {
			noError(t, os.WriteFile(path, []byte(`{"format": 2, "documents": {"1": {}}}`), 0o600))
		},
	} {
		for _, file := range []string{"*.minisig", "*.keys"} {
			t.Run(name+" "+file, func(t *testing.T) {
				t.Parallel()
				v := visit(t).pin(2, root(0), root(1))
				v.want(signed(), "")
				found, err := filepath.Glob(filepath.Join(v.o.CacheDir, indexDir, file))
				if err != nil || len(found) != 1 {
					t.Fatal(found, err)
				}
				spoil(t, found[0])
				asked := len(v.site.asked)
				path, err := exportCached(t, v.o)
				if err != nil {
					t.Fatal(err)
				}
				if len(v.site.asked) == asked {
					t.Error("the marketplace was not asked")
				}
				m := open(t, elsewhere(t, v, path))
				defer m.Close()
				if _, err := bundle(m, "demo"); err != nil {
					t.Error(err)
				}
				v.site.show(tree{})
				if _, err := exportCached(t, v.o); !errors.Is(err, errNoVoucher) {
					t.Errorf("without the marketplace: %v", err)
				}
			})
		}
	}
}

// TestVouchersOfANewerProgram: its file is left as it is.
func TestVouchersOfANewerProgram(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	v.want(signed(), "")
	found, _ := filepath.Glob(filepath.Join(v.o.CacheDir, indexDir, "*.keys"))
	newer := []byte(`{"format": 2, "documents": {}, "more": true}`)
	noError(t, os.WriteFile(found[0], newer, 0o600))
	v.want(rotated2(), "")
	if now, err := os.ReadFile(found[0]); err != nil || !slices.Equal(now, newer) {
		t.Errorf("%s %v", now, err)
	}
}

// rotated2 is rotated with a later number.
func rotated2() *press {
	p := rotated()
	p.seq = 2
	return p.index(indexer(2))
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzVouchers: whatever stands in the file, a bundle gets the document that is believed and what leads to it, or nothing.
func FuzzVouchers(f *testing.F) {
	p := rotated()
	now := p.files["keys/3.json"]
	good := vouchers{Format: vouchersFormat, Documents: map[int64]voucher{}}
	for n := int64(1); n <= 3; n++ {
		name := fmt.Sprintf("keys/%d.json", n)
		good.Documents[n] = voucher{p.files[name], p.files[name+".minisig"]}
	}
	data, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.Replace(data, []byte(`"2"`), []byte(`"1"`), 1))
	f.Add([]byte(`{"format": 1, "documents": {"3": null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		noError(t, os.MkdirAll(filepath.Join(dir, indexDir), 0o700))
		s := &store{dir: &cacheDir{path: dir}, name: "x"}
		noError(t, os.WriteFile(filepath.Join(dir, indexDir, s.vouchersFile()), data, 0o600))
		kept, _ := s.vouchers()
		list := chain(now, func(n int64) (voucher, bool) { v, ok := kept.Documents[n]; return v, ok })
		for i, v := range list {
			if want := good.Documents[int64(3-i)].Document; !bytes.Equal(v.Document, want) {
				t.Errorf("document %d is %q", 3-i, v.Document)
			}
		}
	})
}
