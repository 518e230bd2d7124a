package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

const testDepth = 50

func TestParseValues(t *testing.T) {
	for _, c := range []struct {
		src  string
		kind Kind
		str  string
	}{
		{`null`, Null, ""},
		{" true\n", Bool, "true"},
		{`false`, Bool, "false"},
		{`-0.5e+10`, Number, "-0.5e+10"},
		{`9007199254740993`, Number, "9007199254740993"},
		{`1e400`, Number, "1e400"},
		{`""`, String, ""},
		{`"a\"\\\/\b\f\n\r\tz"`, String, "a\"\\/\b\f\n\r\tz"},
		{`"\u00e9\ud83d\ude00"`, String, "é😀"},
		{`"\ud800"`, String, "\ufffd"},
		{`"\ud800\u0041\udc00"`, String, "\ufffdA\ufffd"},
		{"\xef\xbb\xbf\"bom\"", String, "bom"},
	} {
		v, repeats, err := Parse([]byte(c.src), 0)
		if err != nil || len(repeats) != 0 || v.Kind != c.kind || v.Str != c.str {
			t.Errorf("Parse(%q) = %v %q, %v, %v; want %v %q", c.src, v.Kind, v.Str, repeats, err, c.kind, c.str)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for src, want := range map[string]string{
		``:                         "line 1, column 1: the document ends where a value was expected",
		`{"a":1} x`:                "line 1, column 9: data after the document",
		"{\n  \"a\": 01}":          `line 2, column 9: expected "," or "}"`,
		`{"a":1,}`:                 "line 1, column 8: expected a key in double quotes",
		`[1,]`:                     "line 1, column 4: expected a value",
		`[1 2]`:                    `line 1, column 4: expected "," or "]"`,
		`{"a" 1}`:                  `line 1, column 6: expected ":"`,
		`"a` + "\n" + `"`:          "line 1, column 3: a control character inside a string",
		`"\n` + "\t" + `"`:         "line 1, column 4: a control character inside a string",
		`"abc`:                     "line 1, column 5: the document ends inside a string",
		`"\n`:                      "line 1, column 4: the document ends inside a string",
		`"\x"`:                     "line 1, column 3: an unknown escape inside a string",
		`"\u12G4"`:                 `line 1, column 4: expected four hexadecimal digits after "\u"`,
		`-`:                        "line 1, column 2: expected a digit",
		`1.`:                       "line 1, column 3: expected a digit after the decimal point",
		`1e`:                       "line 1, column 3: expected a digit in the exponent",
		`tru`:                      "line 1, column 1: expected a value",
		"\"\xff\"":                 "line 1, column 2: invalid UTF-8",
		`{"a":[{"b":[1]}]}`:        "line 1, column 12: nested deeper than 3",
		`NaN`:                      "line 1, column 1: expected a value",
		"{\"a\":\x00}":             "line 1, column 6: expected a value",
		"[\"\xef\xbb\xbf\"]\ufeff": "line 1, column 8: data after the document",
	} {
		_, _, err := Parse([]byte(src), 3)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("Parse(%q): %v; want %s", src, err, want)
		}
	}
}

func TestDeepNestingIsRefusedNotRecursed(t *testing.T) {
	src := []byte(strings.Repeat("[", 1<<20))
	if _, _, err := Parse(src, testDepth); err == nil {
		t.Error("a million brackets were accepted")
	}
}

func TestRepeats(t *testing.T) {
	many := func(extra string) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range 40 {
			b.WriteString(`"k` + strings.Repeat("x", i) + `":0,`)
		}
		return b.String() + extra + "}"
	}
	for _, c := range []struct {
		src  string
		want []Repeat
	}{
		{`{"a":1,"b":2}`, nil},
		{`{"a":{"a":1}}`, nil},
		{`{"a":1,"a":2}`, []Repeat{{"a", "a", 1, 7, false}}},
		{`{"a":1,"A":2,"a":3}`, []Repeat{{"A", "A", 1, 7, true}, {"a", "a", 1, 13, false}}},
		{`{"a":1,"\u0061":2}`, []Repeat{{"a", "a", 1, 7, false}}},
		{`{"K":1,"\u212a":2}`, []Repeat{{"\u212a", "\u212a", 1, 7, true}}},
		{`{"straße":1,"STRASSE":2}`, nil},
		{`{"list":[0,{"x":{"É":1,"é":2}}]}`, []Repeat{{"list[1].x.é", "é", 17, 24, true}}},
		{"{\"a\\u001b\":{\"b\":1,\"b\":2}}", []Repeat{{`"a\x1b".b`, "b", 12, 18, false}}},
		{many(`"k":1`), []Repeat{{"k", "k", 1, 1021, false}}},
		{many(`"K":1,"K":1`), []Repeat{{"K", "K", 1, 1021, true}, {"K", "K", 1021, 1027, false}}},
	} {
		_, got, err := Parse([]byte(c.src), testDepth)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Parse(%.60s): repeats %+v, %v; want %+v", c.src, got, err, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	src := []byte("\xef\xbb\xbf{\n \"a\": [10, {\"b\": \"é\"}]\n}")
	v, _, err := Parse(src, testDepth)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := v.Get("a")
	b, _ := a.Items[1].Get("b")
	if got := string(src[b.Start:b.End]); got != `"é"` {
		t.Errorf("b covers %q", got)
	}
	if got := string(src[a.Start:a.End]); got != `[10, {"b": "é"}]` {
		t.Errorf("a covers %q", got)
	}
	if line, col := Position(src, b.Start); line != 2 || col != 18 {
		t.Errorf("b stands at %d:%d, want 2:18", line, col)
	}
	if _, ok := v.Get("A"); ok {
		t.Error(`Get("A") found "a"`)
	}
	if line, col := Position(src, 1<<30); line != 3 || col != 2 {
		t.Errorf("behind the end: %d:%d, want 3:2", line, col)
	}
}

func elements(src string) (parts []string, err error) {
	for r, e := range ArrayElements([]byte(src), "list") {
		if e != nil {
			return parts, e
		}
		parts = append(parts, src[r[0]:r[1]])
	}
	return parts, nil
}

func TestArrayElements(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`{"list":[]}`, nil},
		{`{"list":[ ]}`, nil},
		{"\xef\xbb\xbf{ \"v\": 1 , \"list\" : [ 1 , \"a]\\\"\\\\\" ,{\"x\":[\"}\"]}, null ] , \"z\":[[]]}",
			[]string{"1", `"a]\"\\"`, `{"x":["}"]}`, "null"}},
		{`{"x":{"list":[1]},"list":[2]}`, []string{"2"}},
		{`{"l\u0069st":[3]}`, []string{"3"}},
		{`{"list":[{"bad" x},{"good":1}]}`, []string{`{"bad" x}`, `{"good":1}`}},
	} {
		got, err := elements(c.src)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("elements of %s: %q, %v; want %q", c.src, got, err, c.want)
		}
	}
}

func TestArrayElementsRefuses(t *testing.T) {
	for src, want := range map[string]string{
		``:                       "line 1, column 1: expected an object",
		`[]`:                     "line 1, column 1: expected an object",
		`{}`:                     `line 1, column 3: no member "list"`,
		`{"List":[1]}`:           `line 1, column 13: no member "list"`,
		`{"list":{}}`:            `line 1, column 9: expected "list" to be an array`,
		`{"list":[],"list":[1]}`: `line 1, column 12: the key "list" stands here a second time`,
		`{"list":[],"LIST":[1]}`: `line 1, column 12: the key "LIST" stands here a second time`,
		`{"LIST":[],"list":[1]}`: `line 1, column 12: the key "list" stands here a second time`,
		`{"list":[1,]}`:          "line 1, column 12: expected a value",
		`{"list":[1 2]}`:         `line 1, column 12: expected "," or "]"`,
		`{"list":[{"a":[}`:       "line 1, column 17: the document ends inside a value",
		`{"list":["a]}`:          "line 1, column 10: the document ends inside a string",
		`{"list":[1]} {}`:        "line 1, column 14: data after the document",
		`{"list":[1]`:            `line 1, column 12: expected "," or "}"`,
		`{"list"`:                `line 1, column 8: expected ":"`,
		`{"list":`:               `line 1, column 9: expected "list" to be an array`,
		`{list:[]}`:              "line 1, column 2: expected a key in double quotes",
	} {
		if _, err := elements(src); err == nil || err.Error() != want {
			t.Errorf("elements of %s: %v; want %s", src, err, want)
		}
	}
	_, err := elements(`{"list":[],"LIST":[]}`)
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Repeat == nil || !syntax.Repeat.CaseTwin {
		t.Errorf("the twin is not told: %v", err)
	}
}

func TestArrayElementsStops(t *testing.T) {
	n := 0
	for range ArrayElements([]byte(`{"list":[1,2,3]}`), "list") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d elements after a break at 2", n)
	}
}

// plain turns a Value into what encoding/json makes of the same document.
func plain(v Value) any {
	switch v.Kind {
	case Bool:
		return v.Str == "true"
	case Number:
		return json.Number(v.Str)
	case String:
		return v.Str
	case Array:
		list := []any{}
		for _, item := range v.Items {
			list = append(list, plain(item))
		}
		return list
	case Object:
		m := map[string]any{}
		for _, member := range v.Members {
			m[member.Key] = plain(member.Value)
		}
		return m
	}
	return nil
}

// FuzzParse compares with encoding/json: the same documents are accepted (but
// for a byte order mark, invalid UTF-8 and depth), with the same values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00\ud800"],"b":{"c":null,"C":true}}`, `[]`, `{}`, `"\"\\"`, `0`, ` [ 1 , 2 ] `,
		`{"a":1,"a":2}`, `{"":""}`, `[1,]`, `01`, "\"\x7f\"", "\xef\xbb\xbf1", `{"list":[{"a":"]"},2]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, repeats, err := Parse(src, testDepth)
		checkElements(t, src)
		if bytes.HasPrefix(src, []byte(byteOrderMark)) {
			src = src[len(byteOrderMark):]
		}
		valid := json.Valid(src) && utf8.Valid(src)
		if err != nil {
			if valid && !strings.Contains(err.Error(), "nested deeper") {
				t.Fatalf("refused a valid document: %v", err)
			}
			return
		}
		if !valid {
			t.Fatal("accepted what encoding/json refuses")
		}
		dec := json.NewDecoder(bytes.NewReader(src))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := plain(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, encoding/json says %#v (repeats %v)", got, want, repeats)
		}
	})
}

// checkElements holds ArrayElements to Parse on documents without repeats.
func checkElements(t *testing.T, src []byte) {
	t.Helper()
	checkPieces(t, src)
	v, repeats, err := Parse(src, testDepth)
	list, ok := v.Get("list")
	if err != nil || len(repeats) > 0 || !ok || list.Kind != Array {
		for range ArrayElements(src, "list") { // must end and not panic
		}
		return
	}
	i := 0
	for r, err := range ArrayElements(src, "list") {
		if err != nil || i >= len(list.Items) || r != [2]int{list.Items[i].Start, list.Items[i].End} {
			t.Fatalf("element %d at %v, %v", i, r, err)
		}
		i++
	}
	if i != len(list.Items) {
		t.Fatalf("%d elements, Parse says %d", i, len(list.Items))
	}
}
