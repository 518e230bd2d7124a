package manifest

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"skald-connectors/internal/exactjson"
)

// benchEntries is the size of the speed goals.
const benchEntries = 100_000

// bigIndex makes an index of n entries of about 1,180 bytes each: 100,000 of
// them are the 118 MB of the speed goals.
func bigIndex(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"version":1,"connectors":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"connector-%d","name":"Connector %d","type":"mcp_local","scope":"user","icon_small":"connector-%d/icon_sm.svg","icon_large":"connector-%d/icon_lg.svg",`, i, i, i, i)
		fmt.Fprintf(&b, `"user_description":"Read, send, and manage the messages of service number %d with \"care\".","requires":["OAUTH","PYTHON"],"tags":["email","mcp","local","google"],`, i)
		b.WriteString(`"auth":{"type":"oauth2","provider":"google","scopes":["https://www.googleapis.com/auth/gmail.modify"]},"version":7,"version_string":"1.2.3","version_release_date":"2026-07-19","files":[`)
		for j, name := range []string{"connector.json", "server.py", "icon_lg.svg", "icon_sm.svg", "requirements.txt"} {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"path":%q,"sha256":%q,"size":%d}`, name, sum64, 1000+i)
		}
		b.WriteString("]}")
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func BenchmarkIndexStream(b *testing.B) {
	src := bigIndex(benchEntries)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for at, err := range exactjson.ArrayElements(src, "connectors") {
			if err != nil {
				b.Fatal(err)
			}
			if e, _ := ParseEntry(src[at[0]:at[1]]); e.Broken != "" {
				b.Fatal(e.Broken)
			}
			n++
		}
		if n != benchEntries {
			b.Fatal(n)
		}
	}
}

func BenchmarkIndexElementsOnly(b *testing.B) {
	src := bigIndex(benchEntries)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range exactjson.ArrayElements(src, "connectors") {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkIndexParse(b *testing.B) {
	src := bigIndex(benchEntries)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, diags, err := ParseIndex(src, true); err != nil || len(diags) > 0 {
			b.Fatal(err, diags)
		}
	}
}

// BenchmarkIndexJSONMap is the anchor: encoding/json into a map.
func BenchmarkIndexJSONMap(b *testing.B) {
	src := bigIndex(benchEntries)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		var m map[string]any
		if err := json.Unmarshal(src, &m); err != nil {
			b.Fatal(err)
		}
	}
}

// TestStreamingIsBounded: walking an index keeps nothing of it.
func TestStreamingIsBounded(t *testing.T) {
	src := bigIndex(20_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	n := 0
	for at, err := range exactjson.ArrayElements(src, "connectors") {
		if err != nil {
			t.Fatal(err)
		}
		ParseEntry(src[at[0]:at[1]])
		if n++; n%1000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			most = max(most, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
		}
	}
	if limit := uint64(len(src) / 10); most > limit {
		t.Errorf("%d bytes are kept while %d are walked; at most %d", most, len(src), limit)
	}
}
