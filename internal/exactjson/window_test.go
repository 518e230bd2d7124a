package exactjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// inPieces reads a document through a window of this size and gives what ReadElements gives.
func inPieces(r io.Reader, size int) (at [][2]int, parts []string, outside string, err error) {
	var b strings.Builder
	for e, err := range readElements(window{r: r, keep: -1, outside: func(p []byte) { b.Write(p) }, size: size}, "list") {
		if err != nil {
			return at, parts, b.String(), err
		}
		at, parts = append(at, [2]int{e.Start, e.Start + len(e.Raw)}), append(parts, string(e.Raw))
	}
	return at, parts, b.String(), nil
}

// checkPieces holds ReadElements to ArrayElements, which has the whole document in memory.
func checkPieces(t *testing.T, src []byte) {
	t.Helper()
	var want [][2]int
	var wantErr error
	for r, err := range ArrayElements(src, "list") {
		if wantErr = err; err == nil {
			want = append(want, r)
		}
	}
	for _, size := range []int{1, 3, 16, windowSize} {
		at, parts, outside, err := inPieces(bytes.NewReader(src), size)
		if !reflect.DeepEqual(at, want) || !reflect.DeepEqual(err, wantErr) {
			t.Fatalf("window %d on %.200q: %v, %v; want %v, %v", size, src, at, err, want, wantErr)
		}
		for i, r := range want {
			if parts[i] != string(src[r[0]:r[1]]) {
				t.Fatalf("window %d on %.200q: element %d is %q", size, src, i, parts[i])
			}
		}
		if err == nil {
			checkOutside(t, src, want, outside)
		}
	}
}

// checkOutside holds what surrounds the elements to the document without them, white space aside.
func checkOutside(t *testing.T, src []byte, at [][2]int, outside string) {
	t.Helper()
	want := string(src)
	if n := len(at); n > 0 {
		want = string(src[:at[0][0]]) + string(src[at[n-1][1]:])
	}
	squeeze := func(s string) string {
		return strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "").Replace(s)
	}
	if squeeze(outside) != squeeze(want) {
		t.Fatalf("outside of %.200q: %.200q; want %.200q", src, outside, want)
	}
}

func TestReadElementsInPieces(t *testing.T) {
	long := strings.Repeat(`ab\\\"`, 40)
	for _, src := range []string{
		``, ` `, "\xef\xbb", "\xef\xbb\xbf{\"list\":[]}", `{"list":[]}`, `{"list":[1,2 , 3],"z":{"list":[4]}}`, `{"a":"` + long + `","list":["` + long + `",{"b":["` + long + `"]}]}`,
		"{\n\n\"list\"\n:\n[\n1,\n2 3]}", `{"list":[1],"LIST":[]}`, `{"LIST":[1],"x":1,"list":[]}`, `{"list":[1]} x`, `{"list":["` + long, `{"list":[` + strings.Repeat("7", 99),
		`{"` + long + `":1,"list":[1]}`, `{"\q":1}`, `{"list":{}}`, `{"list":[{]}`, `{"list":[1,]}`, strings.Repeat(" ", 99) + "\n" + strings.Repeat("\n  ", 50) + `{"list":[1 2`,
	} {
		checkPieces(t, []byte(src))
	}
}

func TestReadElementsOfALongDocument(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("{\"head\": 1,\n\"list\": [")
	for i := range 3000 {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"id": %d, "text": %q}`, i, strings.Repeat("x\n", rand.IntN(400)))
	}
	b.WriteString("],\n\"tail\": 2 }")
	checkPieces(t, b.Bytes())
	checkPieces(t, append(b.Bytes(), '}')) // the error is far behind the first window
}

func TestReadElementsOfABadReader(t *testing.T) {
	src := `{"list":[1,2,3]}`
	broken := errors.New("broken")
	if at, _, _, err := inPieces(io.MultiReader(strings.NewReader(src), iotest.ErrReader(broken)), 64); err != broken || len(at) != 3 {
		t.Errorf("%v, %v", at, err)
	}
	if _, _, _, err := inPieces(io.MultiReader(strings.NewReader(src[:9]), iotest.ErrReader(broken)), 64); err != broken {
		t.Error(err)
	}
	for _, r := range []io.Reader{iotest.OneByteReader(strings.NewReader(src)), iotest.DataErrReader(strings.NewReader(src)), iotest.HalfReader(strings.NewReader(src))} {
		if at, _, _, err := inPieces(r, 64); err != nil || len(at) != 3 {
			t.Errorf("%v, %v", at, err)
		}
	}
}

func TestReadElementsKeepsASmallWindow(t *testing.T) {
	pieces := io.MultiReader(strings.NewReader(`{"list":[0`), io.LimitReader(&endless{part: ",12345678"}, 9<<20), strings.NewReader(`]}`))
	w := window{r: pieces, keep: -1, size: 1 << 10}
	s := &skipper{window: w, first: -1, key: "list", yield: func(int, int) bool { return true }}
	if err := s.document(); err != nil || cap(s.src) > 4<<10 {
		t.Errorf("a window of %d bytes, %v", cap(s.src), err)
	}
}

// endless repeats a text.
type endless struct {
	part string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.part[e.at%len(e.part)]
		e.at++
	}
	return len(p), nil
}
