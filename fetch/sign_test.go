package fetch

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// signed is a site with keys and index as they should be.
func signed() *press { return newPress().keys(three(), root(0), root(1)).index(indexer(0)) }

// raw changes the bytes of the index before they are signed.
func raw(old, new string) func([]byte) []byte {
	return func(src []byte) []byte {
		if !bytes.Contains(src, []byte(old)) {
			panic("no " + old)
		}
		return bytes.Replace(src, []byte(old), []byte(new), 1)
	}
}

// A signingCase shows one thing that must hold. Each step publishes something and says what a user then gets: "" is an
// installed connector.
type signingCase struct {
	name string
	run  func(v *visitor)
}

// signingCases are the rules of security.md 2.3 about one index after another.
var signingCases = []signingCase{
	{"good", func(v *visitor) { v.want(signed(), "") }},
	{"unchanged is asked again", func(v *visitor) { v.want(signed(), ""); v.want(signed(), "") }},
	{"no signature", func(v *visitor) {
		p := signed()
		delete(p.files, "connectors.json.minisig")
		v.want(p, "signature")
	}},
	{"signature dropped later", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.seq++
		delete(p.index(indexer(0)).files, "connectors.json.minisig")
		v.want(p, "signature")
	}},
	{"back to an unsigned index", func(v *visitor) {
		v.want(signed(), "")
		t, _ := demo()
		v.want(&press{files: t}, "signature")
	}},
	{"signature empty", func(v *visitor) {
		p := signed()
		p.files["connectors.json.minisig"] = []byte("\n")
		v.want(p, "signature")
	}},
	{"signature of 17 KiB", func(v *visitor) {
		p := signed()
		p.files["connectors.json.minisig"] = append(p.files["connectors.json.minisig"], bytes.Repeat([]byte("\n"), 17<<10)...)
		v.want(p, "document")
	}},
	{"stranger's key", func(v *visitor) { v.want(newPress().keys(three(), root(0), root(1)).index(stranger()), "signature") }},
	{"root key signs the index", func(v *visitor) { v.want(newPress().keys(three(), root(0), root(1)).index(root(0)), "signature") }},
	{"one byte added", func(v *visitor) {
		p := signed()
		p.files["connectors.json"] = append(p.files["connectors.json"], '\n')
		v.want(p, "signature")
	}},
	{"one byte of the signature", func(v *visitor) {
		p := signed()
		sig := bytes.Clone(p.files["connectors.json.minisig"])
		at := bytes.IndexByte(sig, '\n') + 30
		sig[at] ^= 1
		p.files["connectors.json.minisig"] = sig
		v.want(p, "signature")
	}},
	{"trusted comment changed", func(v *visitor) {
		p := signed()
		p.files["connectors.json.minisig"] = bytes.Replace(p.files["connectors.json.minisig"], []byte("timestamp:1"), []byte("timestamp:2"), 1)
		v.want(p, "signature")
	}},
	{"signature over the bare bytes", func(v *visitor) {
		p := signed()
		p.files["connectors.json.minisig"] = minisign.Sign(indexer(0).private, p.files["connectors.json"])
		v.want(p, "signature")
	}},
	{"signature of the hash as a bare file", func(v *visitor) { // one kind must not stand for the other
		p := signed()
		p.files["connectors.json.minisig"] = bytes.Replace(p.files["connectors.json.minisig"], []byte("\nRU"), []byte("\nRW"), 1)
		v.want(p, "signature")
	}},
	{"blocks of the old and of the new index", func(v *visitor) { // files, then signatures, then the index: no broken moment
		before, after := signed(), signed()
		after.seq = 2
		after.index(indexer(0))
		both := append(bytes.Clone(before.files["connectors.json.minisig"]), after.files["connectors.json.minisig"]...)
		before.files["connectors.json.minisig"], after.files["connectors.json.minisig"] = both, both
		v.want(before, "")
		v.want(after, "")
	}},
	{"line ends of Windows", func(v *visitor) {
		p := signed()
		p.files["connectors.json.minisig"] = bytes.ReplaceAll(p.files["connectors.json.minisig"], []byte("\n"), []byte("\r\n"))
		v.want(p, "")
	}},
	{"two of two index keys", func(v *visitor) {
		doc := keysOf(1, 1, []signer{root(0)}, 2, []signer{indexer(0), indexer(1)})
		p := newPress().keys(doc, root(0))
		v.pin(1, root(0)).want(p.index(indexer(0), indexer(1)), "")
	}},
	{"one index key twice", func(v *visitor) {
		doc := keysOf(1, 1, []signer{root(0)}, 2, []signer{indexer(0), indexer(1)})
		v.pin(1, root(0)).want(newPress().keys(doc, root(0)).index(indexer(0), indexer(0)), "signature")
	}},
	{"rollback", func(v *visitor) {
		p := signed()
		p.seq = 42
		v.want(p.index(indexer(0)), "")
		p.seq = 41
		v.want(p.index(indexer(0)), "rollback")
		p.seq = 43
		v.want(p.index(indexer(0)), "")
	}},
	{"fork", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.more = map[string]any{"prev": strings.Repeat("a", 64)}
		v.want(p.index(indexer(0)), "fork")
	}},
	{"freeze: run out", func(v *visitor) {
		p := signed()
		v.clock.add(31 * 24 * time.Hour)
		v.want(p, "freeze")
	}},
	{"freeze: run out since", func(v *visitor) {
		p := signed()
		v.want(p, "")
		v.clock.add(31 * 24 * time.Hour)
		v.want(p, "freeze")
	}},
	{"clock set back", func(v *visitor) {
		old := signed()
		p := signed()
		p.seq, p.begun = 2, p.begun.Add(40*24*time.Hour)
		v.clock.add(41 * 24 * time.Hour)
		v.want(p.index(indexer(0)), "")
		v.clock.add(-41 * 24 * time.Hour)
		p.seq, p.begun = 3, old.begun // run out, by the newest date that was ever signed
		v.want(p.index(indexer(0)), "freeze")
	}},
	{"issued tomorrow", func(v *visitor) {
		p := signed()
		p.begun = p.begun.Add(24 * time.Hour)
		v.want(p.index(indexer(0)), "freeze")
	}},
	{"issued in five minutes", func(v *visitor) {
		p := signed()
		p.begun = p.begun.Add(5 * time.Minute)
		v.want(p.index(indexer(0)), "")
	}},
	{"good for ten years", func(v *visitor) {
		p := signed()
		p.more = map[string]any{"expires": stamp(p.begun.AddDate(10, 0, 0))}
		v.want(p.index(indexer(0)), "freeze")
	}},
	{"ends before it begins", func(v *visitor) {
		p := signed()
		p.more = map[string]any{"expires": stamp(p.begun.Add(-time.Hour))}
		v.want(p.index(indexer(0)), "freeze")
	}},
	{"no date", func(v *visitor) {
		p := signed()
		p.more = map[string]any{"expires": nil}
		v.want(p.index(indexer(0)), "document")
	}},
	{"keys served as index", func(v *visitor) {
		p := signed()
		p.files["connectors.json"] = p.files["keys.json"]
		p.files["connectors.json.minisig"] = blocks(p.files["keys.json"], indexer(0))
		if got := kind(v.look(p)); !strings.Contains(got, `no member "connectors"`) {
			v.t.Errorf("got %q", got)
		}
	}},
	{"index of another type", func(v *visitor) {
		p := signed()
		p.more = map[string]any{"type": "skald.index/v2"}
		v.want(p.index(indexer(0)), "document")
	}},
	{"member twice", func(v *visitor) {
		p := signed()
		p.raw = raw(`"seq": 1,`, `"seq": 1, "seq": 2,`)
		v.want(p.index(indexer(0)), "document")
	}},
	{"member in two spellings", func(v *visitor) {
		p := signed()
		p.raw = raw(`"seq": 1,`, `"seq": 1, "Seq": 2,`)
		v.want(p.index(indexer(0)), "document")
	}},
	{"member of an entry twice", func(v *visitor) {
		p := signed()
		p.raw = raw(`"id": "demo",`, `"id": "demo", "id": "demo",`)
		v.want(p.index(indexer(0)), "broken")
	}},
	{"deep member in two spellings", func(v *visitor) {
		p := signed()
		p.raw = raw(`"path": "connector.json",`, `"path": "connector.json", "Path": "x",`)
		v.want(p.index(indexer(0)), "broken")
	}},
	{"connectors twice", func(v *visitor) {
		p := signed()
		p.raw = raw(`"seq": 1,`, `"seq": 1, "Connectors": [],`)
		v.want(p.index(indexer(0)), "broken")
	}},
	{"something after the document", func(v *visitor) {
		p := signed()
		p.raw = func(src []byte) []byte { return append(src, "\n{}"...) }
		if got := kind(v.look(p.index(indexer(0)))); !strings.Contains(got, "data after the document") {
			v.t.Errorf("got %q", got)
		}
	}},
	{"thief's number, and how new keys heal it", func(v *visitor) {
		p := signed()
		p.seq = 1<<53 - 1
		v.want(p.index(indexer(0)), "")
		p.seq = 2
		v.want(p.index(indexer(0)), "rollback")
		p.keysV = 2
		p.keys(keysOf(2, 2, []signer{root(0), root(1), root(2)}, 1, []signer{indexer(1)}), root(0), root(2))
		v.want(p.index(indexer(1)), "")
	}},
	{"number beyond what JSON holds", func(v *visitor) {
		p := signed()
		p.seq = 1 << 53
		v.want(p.index(indexer(0)), "document")
	}},
	{"number as text", func(v *visitor) {
		p := signed()
		p.more = map[string]any{"seq": "1"}
		v.want(p.index(indexer(0)), "document")
	}},
	{"index of older keys", func(v *visitor) {
		p := signed()
		v.want(p, "")
		p.keys(keysOf(2, 2, []signer{root(0), root(1), root(2)}, 1, []signer{indexer(0)}), root(0), root(1))
		v.want(p, "signature")
	}},
	{"index of keys that nobody shows", func(v *visitor) { // a host that answers 404 for new keys gains nothing
		p := signed()
		v.want(p, "")
		p.keysV, p.seq = 2, 2
		v.want(p.index(indexer(0)), "signature")
	}},
}

func TestSigning(t *testing.T) {
	all := slices.Concat(signingCases, keyCases)
	if len(all) < 29 {
		t.Fatalf("%d cases", len(all))
	}
	for _, row := range all {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(visit(t).pin(2, root(0), root(1)))
		})
	}
}
