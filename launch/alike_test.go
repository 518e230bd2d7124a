package launch

import (
	"strings"
	"testing"
)

// FuzzAlike holds messages that begin alike to what a scanner finds that has seen none before.
func FuzzAlike(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":`), []byte(`1}}`), []byte(`23,"message":"\u00e9"}}`), true)
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/message","par`), []byte(`ams":{}}`), []byte(`ams":{},"method":"x"}`), true)
	f.Add([]byte(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","NAME":"b","arguments":{"x":tr`), []byte(`ue}},"id":1}`), []byte(`UE}}}`), false)
	f.Add([]byte(`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"caf`), []byte("\xc3\xa9\"}]},\"id\":7}"), []byte("\xc3\"}]},\"id\":8}"), true)
	f.Add([]byte(`{"jsonrpc":"2.0","result":{"text":"`+strings.Repeat("long ", 200)), []byte(`\"}}`), []byte(`","isError":true},"id":1}`), true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`), []byte(" \n"), []byte(`{}`), false)
	f.Fuzz(func(t *testing.T, begin, one, two []byte, replies bool) {
		var a alike
		var s scanner
		s.replies = replies
		for i, end := range [][]byte{one, two, one, two, one} {
			line := append(append([]byte(nil), begin...), end...)
			fresh := scanner{envelope: envelope{replies: replies}}
			want, got := fresh.scan(line), a.scan(&s, line)
			if got != want || s.base != fresh.base && want || s.tooDeep != fresh.tooDeep {
				t.Fatalf("line %d %q: valid %v, alone %v", i, line, got, want)
			}
			if s.at != fresh.at || s.repeated != fresh.repeated || s.twin != fresh.twin || s.twins != fresh.twins || s.doubt != fresh.doubt || s.array != fresh.array {
				t.Fatalf("line %d %q: another envelope:\n%+v\n%+v", i, line, s.at, fresh.at)
			}
		}
	})
}

// TestAlikeLearns shows that the short way is taken.
func TestAlikeLearns(t *testing.T) {
	var a alike
	var s scanner
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":30}}`,
	} {
		if !a.scan(&s, []byte(line)) {
			t.Fatalf("%s is refused", line)
		}
	}
	if want := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":`; string(a.begin) != want {
		t.Errorf("known is %q", a.begin)
	}
}
