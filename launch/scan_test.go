package launch

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var scanSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,-0.5e+3,null,true,false,"\u00e9\ud83d\ude00\ud800"]}}}`,
	`{"id":-0,"result":{"isError":true,"content":[[],{},[{}]]}}`,
	`{"method":"a","meth\u006fd":"b"}`, `{"Params":{}}`, `{"param\u017f":{}}`, `{"params":{"n\u0061me":"x","NAME":"y"}}`, "{\"\u212a\":1,\"k\":2}",
	"\t{ } \r\n", `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xe2\x82\"}",
	`{"a":[1,]}`, `{,}`, `{"a"}`, `{"a":1 "b":2}`, `[{"id":1}]`, `{} {}`, "\xef\xbb\xbf{}", `{"a":"` + strings.Repeat("plain text ", 20) + `"}`,
	strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513), strings.Repeat(`{"a":`, 512) + "1" + strings.Repeat("}", 512),
	`{"a":"aaaaaaa\u20acbbbbbbb` + "€€€€" + `\\\"\n"}`,
}

func TestScanKnowsTheDepth(t *testing.T) {
	var s scanner
	if deep := scanSeeds[len(scanSeeds)-3]; s.scan([]byte(deep)) || s.flaw([]byte(deep), false) != flawDepth {
		t.Error("513 levels are accepted, or not named")
	}
	if !s.scan([]byte(scanSeeds[len(scanSeeds)-2])) {
		t.Error("512 levels are refused")
	}
}

// FuzzScan holds the scanner to encoding/json: the same lines are messages, and
// a line that passes says the same to both, also to a reader that ignores case.
func FuzzScan(f *testing.F) {
	for _, seed := range scanSeeds {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, line []byte, cut int) {
		var whole scanner
		valid := whole.scan(line)
		trimmed := bytes.TrimLeft(line, " \t\r\n")
		want := json.Valid(line) && utf8.Valid(line) && len(trimmed) > 0 && trimmed[0] == '{'
		if valid != want && !whole.tooDeep {
			t.Fatalf("valid %v, encoding/json says %v", valid, want)
		}
		checkChunks(t, line, &whole, valid, cut)
		if valid && whole.flaw(line, valid) == "" {
			checkReaders(t, &whole, line)
		}
	})
}

// checkChunks feeds the line in two parts and byte by byte.
func checkChunks(t *testing.T, line []byte, whole *scanner, valid bool, cut int) {
	t.Helper()
	at := int(uint(cut) % uint(len(line)+1))
	for _, parts := range [][][]byte{{line[:at], line[at:]}, single(line)} {
		var s scanner
		s.reset()
		good := true
		for _, part := range parts {
			good = good && s.feed(part)
		}
		if good = good && s.state == lexEnd; good != valid {
			t.Fatalf("in parts (cut at %d) valid %v, whole %v", at, good, valid)
		}
		if valid && (s.at != whole.at || s.repeated != whole.repeated || s.twin != whole.twin || s.twins != whole.twins || s.doubt != whole.doubt) {
			t.Fatalf("in parts (cut at %d) another envelope:\n%+v\n%+v", at, s.at, whole.at)
		}
	}
}

func single(line []byte) (parts [][]byte) {
	for i := range line {
		parts = append(parts, line[i:i+1])
	}
	return parts
}

// checkReaders compares what was judged with what three kinds of reader see:
// the last of repeated keys, the first, and one that ignores case.
func checkReaders(t *testing.T, s *scanner, line []byte) {
	t.Helper()
	var exact map[string]json.RawMessage
	var folding struct {
		Method json.RawMessage
		ID     json.RawMessage
		Params json.RawMessage
	}
	if err := json.Unmarshal(line, &exact); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &folding); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f      field
		folded json.RawMessage
	}{"method": {fieldMethod, folding.Method}, "id": {fieldID, folding.ID}, "params": {fieldParams, folding.Params}} {
		raw := s.raw(line, c.f)
		if !bytes.Equal(raw, exact[name]) || !bytes.Equal(raw, c.folded) {
			t.Fatalf("%s: judged %q, an exact reader sees %q, a folding one %q", name, raw, exact[name], c.folded)
		}
	}
	method, _ := s.text(line, fieldMethod)
	var text string
	if s.has(fieldMethod) && (json.Unmarshal(exact["method"], &text) != nil || text != string(method)) {
		t.Fatalf("method: judged %q, a reader sees %q", method, text)
	}
	if methodOf(method) != toolsCall {
		return
	}
	var params struct{ Name any }
	if json.Unmarshal(exact["params"], &params) != nil {
		return // not an object: nothing to call
	}
	called, ok := s.text(line, fieldName)
	if seen, is := params.Name.(string); is != ok || is && seen != string(called) {
		t.Fatalf("name: judged %q, a reader that ignores case sees %q", called, params.Name)
	}
}

func TestIDText(t *testing.T) {
	for raw, want := range map[string]string{
		`1`: "1", `-0`: "0", `-7`: "-7", `123456789012345678901234567890`: "123456789012345678901234567890", `"1"`: `"1`, `"a\u0062\n"`: "\"ab\n", `""`: `"`,
		`1.0`: "no", `1e2`: "no", `1E2`: "no", `null`: "no", `true`: "no", `{}`: "no", `[]`: "no", ``: "no",
	} {
		text, ok := idText(nil, []byte(raw))
		if got := map[bool]string{true: string(text), false: "no"}[ok]; got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte("abcabcABCaBcx"))
	f.Add([]byte("aAaAaA\x00\x01\x02\xff"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		l := newLedger()
		want := map[string]bool{}
		for _, op := range ops {
			key := []byte{'"', op % 32}
			c := l.find(key)
			if (c != nil) != want[string(key)] {
				t.Fatalf("%q: there %v, want %v", key, c != nil, want[string(key)])
			}
			switch {
			case c == nil:
				l.add(key, key, ownNone)
			case op >= 128 && !c.cancelled:
				l.cancel(c)
				continue
			default:
				l.remove(c)
			}
			want[string(key)] = c == nil
		}
		total := 0
		l.each(func(c *call) { total++ })
		if l.total != total || l.waiting != total-l.cancelled {
			t.Fatalf("%d calls, counted %d, waiting %d, cancelled %d", total, l.total, l.waiting, l.cancelled)
		}
	})
}
