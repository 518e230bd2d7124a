package fetch

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
)

// keyCases are the rules about keys: rotation, roles, what is pinned and what comes with the program.
var keyCases = []signingCase{
	{"one of two roots", func(v *visitor) { v.want(newPress().keys(three(), root(0)).index(indexer(0)), "signature") }},
	{"one root twice", func(v *visitor) { v.want(newPress().keys(three(), root(0), root(0)).index(indexer(0)), "signature") }},
	{"keys without a signature", func(v *visitor) {
		p := signed()
		delete(p.files, "keys.json.minisig")
		delete(p.files, "keys/1.json.minisig")
		v.want(p, "signature")
	}},
	{"new root: old ones and new ones sign", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.keysV, p.seq = 2, 2
		p.keys(keysOf(2, 2, []signer{root(3), root(4)}, 1, []signer{indexer(1)}), root(0), root(1), root(3), root(4))
		v.want(p.index(indexer(1)), "")
	}},
	{"new root: only old ones sign", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.keysV, p.seq = 2, 2
		p.keys(keysOf(2, 2, []signer{root(3), root(4)}, 1, []signer{indexer(1)}), root(0), root(1))
		v.want(p.index(indexer(1)), "signature")
	}},
	{"new root: only new ones sign", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.keysV, p.seq = 2, 2
		p.keys(keysOf(2, 2, []signer{root(3), root(4)}, 1, []signer{indexer(1)}), root(3), root(4))
		v.want(p.index(indexer(1)), "signature")
	}},
	{"a version left out", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.keysV, p.seq = 3, 2
		p.keys(keysOf(3, 2, []signer{root(0), root(1)}, 1, []signer{indexer(1)}), root(0), root(1))
		v.want(p.index(indexer(1)), "signature") // it is never looked for
		p.files["keys/2.json"], p.files["keys/2.json.minisig"] = p.files["keys/3.json"], p.files["keys/3.json.minisig"]
		v.want(p, "document")
	}},
	{"three rotations at once", func(v *visitor) {
		p := signed()
		v.want(p, "")
		for n := 2; n <= 4; n++ {
			p.keys(keysOf(n, 2, []signer{root(0), root(n)}, 1, []signer{indexer(n - 1)}), root(0), root(1), root(max(n-1, 1)), root(n))
		}
		p.keysV, p.seq = 4, 2
		v.want(p.index(indexer(3)), "")
	}},
	{"a key in two roles", func(v *visitor) {
		v.want(newPress().keys(keysOf(1, 2, []signer{root(0), root(1)}, 1, []signer{root(0)}), root(0), root(1)).index(root(0)), "document")
	}},
	{"a key twice", func(v *visitor) {
		v.want(newPress().keys(keysOf(1, 2, []signer{root(0), root(0)}, 1, []signer{indexer(0)}), root(0), root(1)).index(indexer(0)), "document")
	}},
	{"more signatures wanted than keys", func(v *visitor) {
		doc := three()
		doc["index_threshold"] = 2
		v.want(newPress().keys(doc, root(0), root(1)).index(indexer(0)), "document")
	}},
	{"keys that have run out", func(v *visitor) {
		doc := three()
		doc["expires"] = "2026-07-01T00:00:00Z"
		v.want(newPress().keys(doc, root(0), root(1)).index(indexer(0)), "freeze")
	}},
	{"keys of 65 KiB", func(v *visitor) {
		p := signed()
		for _, name := range []string{"keys.json", "keys/1.json"} {
			p.files[name] = append(bytes.Clone(p.files[name]), bytes.Repeat([]byte(" "), 65<<10)...)
		}
		v.want(p, "document")
	}},
	{"a web page for the next keys", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.files["keys/2.json"] = []byte("<!doctype html><html>Please sign in")
		var page *WebPageError
		if err := v.look(p); err != nil { // the cached index stands in, as for any network that lies
			v.t.Error(err)
		}
		v.o.CacheDir += "2"
		if err := v.look(p); !errors.As(err, &page) {
			v.t.Errorf("got %v", err)
		}
	}},
	{"pinned key signs the index itself", func(v *visitor) {
		p := newPress()
		p.keysV = 0
		v.pin(1, indexer(0)).want(p.index(indexer(0)), "")
		p.seq = 2
		v.want(p.index(stranger()), "signature")
	}},
	{"pinned keys move to a keys document", func(v *visitor) {
		p := newPress()
		p.keysV = 0
		v.pin(1, root(0)).want(p.index(root(0)), "")
		p.keysV = 1
		p.keys(keysOf(1, 1, []signer{root(0), root(1)}, 1, []signer{indexer(0)}), root(0))
		v.want(p.index(indexer(0)), "")
		for name := range maps.Clone(p.files) { // and never back
			if strings.HasPrefix(name, "keys") {
				delete(p.files, name)
			}
		}
		p.keysV, p.seq = 0, 2
		v.want(p.index(root(0)), "signature")
	}},
	{"pinned keys are of the present roots", func(v *visitor) { // the history before them needs no belief
		p := signed()
		p.keys(keysOf(2, 1, []signer{root(3)}, 1, []signer{indexer(1)}), root(0), root(1), root(3))
		p.keysV = 2
		v.pin(1, root(3)).want(p.index(indexer(1)), "")
	}},
	{"pinned keys are of the first roots", func(v *visitor) {
		p := signed()
		p.keys(keysOf(2, 1, []signer{root(3)}, 1, []signer{indexer(1)}), root(0), root(1), root(3))
		p.keys(keysOf(3, 1, []signer{root(3)}, 1, []signer{indexer(2)}), root(3))
		p.keysV = 3
		v.want(p.index(indexer(2)), "")
	}},
	{"pinned keys are somebody else's", func(v *visitor) { v.pin(1, stranger()).want(signed(), "signature") }},
	{"built-in keys need no first document", func(v *visitor) {
		p := signed()
		for name := range maps.Clone(p.files) {
			if strings.HasPrefix(name, "keys") {
				delete(p.files, name)
			}
		}
		v.pin(0).embed(three()).want(p, "")
	}},
	{"newer built-in keys win", func(v *visitor) {
		p := signed()
		v.pin(0).embed(three()).want(p, "")
		v.embed(keysOf(2, 1, []signer{root(3)}, 1, []signer{indexer(1)})).want(p, "signature")
		p.keysV = 2
		v.want(p.index(indexer(1)), "")
		v.embed(three()).want(p, "") // an older program afterwards
	}},
	{"signed for ever, also when nobody pins it any more", func(v *visitor) {
		v.want(signed(), "")
		t, _ := demo()
		v.pin(0).want(&press{files: t}, "signature")
	}},
	{"keys of nobody's choice are ignored", func(v *visitor) {
		v.pin(0).want(newPress().keys(three(), stranger()).index(stranger()), "")
		ix := get(v.t, open(v.t, v.o), Cached)
		if tr := ix.Trust(); !tr.Ignored || tr.Signed {
			v.t.Errorf("%+v", tr)
		}
	}},
	{"unsigned stays possible", func(v *visitor) {
		t, _ := demo()
		v.pin(0).want(&press{files: t}, "")
		if tr := get(v.t, open(v.t, v.o), Cached).Trust(); tr.Ignored || tr.Signed {
			v.t.Errorf("%+v", tr)
		}
	}},
	{"unsigned, then pinned: the old cache is not used", func(v *visitor) {
		t, _ := demo()
		v.pin(0).want(&press{files: t}, "")
		v.pin(2, root(0), root(1)).want(&press{files: t}, "signature")
		if _, err := open(v.t, v.o).Index(context.Background(), Offline); err == nil {
			v.t.Error("an index that nobody signed was used")
		}
		v.want(signed(), "")
	}},
}
