package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"skald-connectors/manifest"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// indexIn makes an index of bytes in memory.
func indexIn(t testing.TB, body, built []byte) (*Index, error) {
	s, err := openSide(bytes.NewReader(built), int64(len(built)))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return &Index{location: "memory", digest: hex.EncodeToString(sum[:]), size: int64(len(body)), body: bytes.NewReader(body), side: s, drop: func() {}}, nil
}

// buildSideOf is buildSide for bytes in memory.
func buildSideOf(body []byte, strict bool) (side, head []byte, err error) {
	s, head, err := buildSide(bytes.NewReader(body), int64(len(body)), sha256.Sum256(body), strict)
	if err != nil {
		return nil, nil, err
	}
	return s.bytes(), head, nil
}

func built(t testing.TB, body []byte) []byte {
	t.Helper()
	b, _, err := buildSideOf(body, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryEntryIsFound(t *testing.T) {
	const n = 3000
	body := syntheticIndex(n)
	ix, err := indexIn(t, body, built(t, body))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range rand.Perm(n)[:500] {
		if e, err := ix.Lookup(syntheticID(i)); err != nil || e.ID != syntheticID(i) || len(e.Files) != 5 {
			t.Fatalf("entry %d: %q, %v", i, e.ID, err)
		}
	}
	all, err := ix.Search(Query{})
	if err != nil || len(all) != n || ix.Len() != n {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b manifest.Entry) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("equal ranks are not in the order of their ids")
	}
	if _, err := ix.Lookup("connector-00000"); err == nil {
		t.Error("a prefix was found")
	}
}

// TestIDsThatGrow: ids as long as they get in the text, many of them, so that each search for another id meets one.
func TestIDsThatGrow(t *testing.T) {
	for name, id := range map[string]string{
		"no UTF-8":        strings.Repeat("\xff", 2*keyLimit),
		"longer in small": strings.Repeat("Ⱥ", keyLimit),
		"halves":          strings.Repeat(`\ud800`, 2*keyLimit),
	} {
		bad := strings.Repeat(`{"id": "`+id+`", "name": "other", "user_description": "`+id+`"}, `, 40)
		body := []byte(`{"connectors": [` + bad + `{"id": "plain", "name": "other"}, ` + strings.TrimSuffix(bad, ", ") + `]}`)
		ix, err := indexIn(t, body, built(t, body))
		if err != nil {
			t.Fatal(err)
		}
		var broken *BrokenError // it pins nothing
		if _, err := ix.Lookup("plain"); err != nil && !errors.As(err, &broken) {
			t.Errorf("%s: plain: %v", name, err)
		}
		var missing *NotFoundError
		if _, err := ix.Lookup("zzz"); !errors.As(err, &missing) {
			t.Errorf("%s: zzz: %v", name, err)
		}
		if found, err := ix.Search(Query{Words: []string{"other"}}); err != nil || len(found) != 81 {
			t.Errorf("%s: %d found, %v", name, len(found), err)
		}
	}
}

func TestSideBuildIsTheSameEachTime(t *testing.T) {
	body := syntheticIndex(700)
	if !bytes.Equal(built(t, body), built(t, body)) {
		t.Error("two builds differ")
	}
}

func TestOddIndexes(t *testing.T) {
	for _, row := range []struct {
		body string
		n    int // -1 = refused
	}{
		{`{"connectors": []}`, 0},
		{"\xef\xbb\xbf{\"connectors\": []}", 0},
		{`{"version": 7, "connectors": [{}, null, 1, "x", [], {"id": null}, {"id": ""}, {"id": "a\nb"}]}`, 8},
		{`{"connectors": [{"id": "a", "id": "b"}, {"ID": "c"}]}`, 2},
		{`{"connectors": {"a": 1}}`, -1},
		{`{"connectors": [{]}`, -1},
		{`{"connectors": [1 2]}`, -1},
		{`[]`, -1},
		{``, -1},
		{`null`, -1},
		{`{"connectors": []} x`, -1},
	} {
		b, _, err := buildSideOf([]byte(row.body), false)
		if (err != nil) != (row.n < 0) {
			t.Errorf("%s: %v", row.body, err)
			continue
		}
		if err != nil {
			continue
		}
		ix, err := indexIn(t, []byte(row.body), b)
		if err != nil || ix.Len() != row.n {
			t.Errorf("%s: %v", row.body, err)
			continue
		}
		found, err := ix.Search(Query{})
		if err != nil || len(found) != row.n {
			t.Errorf("%s: %d found, %v", row.body, len(found), err)
		}
		for _, e := range found {
			if e.Broken == "" && e.ID != "a" {
				t.Errorf("%s: %q is not broken", row.body, e.ID)
			}
		}
	}
}

func TestSearchRanks(t *testing.T) {
	tr := tree{}
	entry := func(id, name, description string, tags ...string) map[string]any {
		e := tr.connector(id, nil)
		e["name"], e["user_description"], e["tags"] = name, description, tags
		return e
	}
	remote := entry("remote-one", "Far Mail", "Über die Grenze")
	remote["type"], remote["scope"], remote["requires"] = "mcp_remote", "global", []string{"OAUTH"}
	tr.index(
		entry("gmail", "Gmail", "Read and send mail of Google", "email", "google"),
		entry("mail", "Plain", "IMAP and SMTP", "email"),
		entry("notes", "Notes", "Keeps mail-like notes", "text"),
		entry("mailbox", "Box", "Files", "storage"),
		remote,
	)
	ix := get(t, open(t, options(t, serve(t, tr))), Refresh)
	for _, row := range []struct {
		q    Query
		want string
	}{
		{Query{Words: []string{"mail"}}, "mail remote-one mailbox gmail notes"},
		{Query{Words: []string{"MAIL"}, Limit: 2}, "mail remote-one"},
		{Query{Words: []string{"google", "read"}}, "gmail"},
		{Query{Words: []string{"google read"}}, "gmail"},
		{Query{Words: []string{"über"}}, "remote-one"},
		{Query{Words: []string{"ÜBER"}}, "remote-one"},
		{Query{Words: []string{"mcp_remote"}}, ""},
		{Query{Words: []string{"absent"}}, ""},
		{Query{Tag: "Email"}, "gmail mail"},
		{Query{Tag: "mail"}, ""},
		{Query{Type: "mcp_remote"}, "remote-one"},
		{Query{Type: "mcp_local", Words: []string{"mail"}, Tag: "storage"}, "mailbox"},
		{Query{Scope: "global"}, "remote-one"},
		{Query{Requires: "oauth"}, "remote-one"},
		{Query{Requires: "OAUTH", Scope: "user"}, ""},
		{Query{Words: []string{"\x1f"}}, "gmail mail mailbox notes remote-one"}, // white space only: no word
	} {
		found, err := ix.Search(row.q)
		var ids []string
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != row.want || err != nil {
			t.Errorf("%+v: %q, %v, want %q", row.q, got, err, row.want)
		}
	}
}

// reseal gives a damaged side file valid checksums, so that what lies behind them is tried too.
func reseal(b []byte) {
	if len(b) < headerSize {
		return
	}
	le := binary.LittleEndian
	data := int64(le.Uint32(b[48:]))*recordSize + int64(le.Uint32(b[52:])) + markRows*markWidth(int64(le.Uint32(b[52:])))
	pages := (data + pageSize - 1) / pageSize
	if int64(len(b)) != headerSize+data+4*pages {
		return
	}
	table := b[headerSize+data:]
	for p := range pages {
		le.PutUint32(table[4*p:], crc(b[headerSize+p*pageSize:headerSize+min((p+1)*pageSize, data)]))
	}
	le.PutUint32(b[56:], crc(table))
	le.PutUint32(b[60:], crc(b[:60]))
}

func FuzzSideFile(f *testing.F) {
	const marked = 1900 // entries, of which the text is long enough for marks
	small, large := syntheticIndex(40), syntheticIndex(marked)
	goodSmall, goodLarge := built(f, small), built(f, large)
	if s, err := openSide(bytes.NewReader(goodLarge), int64(len(goodLarge))); err != nil || markWidth(s.textLen) == 0 {
		f.Fatal("the large one has no marks", err)
	}
	f.Add(0, []byte{}, false, false)
	f.Add(headerSize+recordSize+4, []byte{9, 9}, true, false)
	f.Add(headerSize, []byte{0, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255}, true, false)
	f.Add(48, []byte{255, 255, 255, 255}, true, false)
	f.Add(headerSize+40*recordSize+3, []byte{fieldSep, lineEnd, fieldSep}, true, false)
	f.Add(40, []byte{1, 2, 3, 4, 5, 6, 7, 8}, true, false)
	f.Add(headerSize+marked*recordSize+pageSize, bytes.Repeat([]byte{lineEnd}, 2*pageSize), true, true)
	f.Add(headerSize+marked*recordSize+pageSize, bytes.Repeat([]byte{'x'}, 2*pageSize), true, true)
	f.Add(headerSize+marked*recordSize+pageSize, bytes.Repeat([]byte{'x'}, 300*pageSize), true, true)
	f.Add(len(goodLarge)-20000, bytes.Repeat([]byte{255}, 9000), true, true)
	f.Fuzz(func(t *testing.T, at int, patch []byte, seal, big bool) {
		body, good := small, goodSmall
		if big {
			body, good = large, goodLarge
		}
		bad := slices.Clone(good)
		if at >= 0 && at < len(bad) {
			copy(bad[at:], patch)
		}
		if seal {
			reseal(bad)
		}
		ix, err := indexIn(t, body, bad)
		if err != nil {
			return
		}
		if big { // entries are read as in the small one
			_, _ = ix.side.hits(newMatcher(Query{Words: []string{"connector-0000", "39"}}), 0)
			return
		}
		for _, id := range []string{syntheticID(0), syntheticID(17), syntheticID(39), "absent", ""} {
			e, err := ix.Lookup(id)
			if err == nil && (e.ID != id || !bytes.Contains(body, e.Raw)) {
				t.Errorf("%q gave the entry of %q", id, e.ID)
			}
			var missing *NotFoundError
			if !seal && !bytes.Equal(bad, good) && id != "absent" && id != "" && errors.As(err, &missing) {
				t.Errorf("%q got lost", id)
			}
		}
		_, _ = ix.Search(Query{Words: []string{"mail"}})
		_, _ = ix.Search(Query{Tag: "mcp", Limit: 3})
		_, _ = ix.Versions([]string{syntheticID(3)})
	})
}

func FuzzBuildSide(f *testing.F) {
	f.Add([]byte(`{"connectors": [{"id": "a", "tags": ["x", "\u0041"], "user_description": "d\n"}]}`))
	f.Add([]byte(`{"connectors": [{"id": "a"}, {"id": "A"}, 3, [}`))
	f.Add([]byte(`{"connectors": [{"id" "a", "name": "\ud800"}, {"x": {"id": "b"}}]}`))
	f.Add(syntheticIndex(3))
	f.Add([]byte(`{"connectors": [{"id": "` + strings.Repeat("\xff", 2*keyLimit) + `"}, {"id": "a"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, _, err := buildSideOf(body, false)
		if err != nil {
			return
		}
		ix, err := indexIn(t, body, b)
		if err != nil {
			t.Fatalf("a fresh side file cannot be opened: %v", err)
		}
		found, err := ix.Search(Query{})
		if err != nil || len(found) != ix.Len() {
			t.Fatalf("%d of %d entries, %v", len(found), ix.Len(), err)
		}
		for _, e := range found {
			if got, err := ix.Lookup(e.ID); e.Broken == "" && (err != nil || got.ID != e.ID) {
				t.Fatalf("%q is listed but not found: %v", e.ID, err)
			}
		}
	})
}

func FuzzFind(f *testing.F) {
	f.Add("connector needle connector", "needle")
	f.Add(strings.Repeat("q", 400), "qa")
	f.Add(strings.Repeat("zzza", 100)+"zzzb", "zzzb")
	f.Add("über ü", "ü")
	f.Fuzz(func(t *testing.T, text, word string) {
		for _, w := range strings.Fields(fold(word)) {
			if got, want := newMatcher(Query{Words: []string{w}}).find([]byte(text)), strings.Index(text, w); got != want {
				t.Errorf("%q in %q at %d, want %d", w, text, got, want)
			}
		}
	})
}

func TestEveryLineHasItsRecord(t *testing.T) {
	var b strings.Builder
	for i := range 2000 { // lines of very different length
		fmt.Fprintf(&b, `,{"id": "c%04d", "name": %q}`, i, strings.Repeat("x", i*i%1000*(i/1500)))
	}
	side := built(t, []byte(`{"connectors": [`+b.String()[1:]+`]}`))
	s, err := openSide(bytes.NewReader(side), int64(len(side)))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2*pageSize)
	for i := range s.count {
		p, err := s.place(buf, i)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.at(buf, p.textOff); got != i || err != nil {
			t.Fatalf("record %d at %d: %d, %v", i, p.textOff, got, err)
		}
		if _, _, err := s.at(buf, p.textOff+1); err != errDamaged {
			t.Fatalf("inside a line: %v", err)
		}
	}
	if _, _, err := s.at(buf, s.textLen); err != errDamaged {
		t.Error(err)
	}
}
