package keystore

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// masked writes text through a Masker in parts of the given size.
func masked(t *testing.T, r *Redactor, text []byte, size int) (string, []string) {
	t.Helper()
	var out bytes.Buffer
	var names []string
	w := r.Masker(&out, func(n string) { names = append(names, n) })
	for part := range slices.Chunk(text, size) {
		_, err := w.Write(part)
		must(t, err)
	}
	must(t, w.Close())
	must(t, w.Close())
	slices.Sort(names)
	return out.String(), slices.Compact(names)
}

func TestMaskKeepsLengths(t *testing.T) {
	r := NewRedactor(handles("A", "abcdefghij", "B", "ghijklmnopqrstuvw", "PEM", pemValue, "PIN", "42", "Q", `a"b`))
	for text, want := range map[string]string{
		`{"x":"-abcdefghij-"}`:              `{"x":"-**********-"}`,
		`abcdefghijklmnopqrstuvw!`:          `***********************!`,
		`{"pin":"42","n":42,"q":"a\"b"}`:    `{"pin":"**","n":42,"q":"****"}`,
		`{"s":"abcdefghi","t":"ghijklmno"}`: `{"s":"abcdefghi","t":"ghijklmno"}`,
		"":                                  "",
	} {
		for size := 1; size <= len(text); size++ {
			if got, _ := masked(t, r, []byte(text), size); got != want {
				t.Fatalf("%s in parts of %d:\n%s, want\n%s", text, size, got, want)
			}
		}
	}
	long := []byte(`{"pem":"` + asJSON(pemValue, true) + `","pin":"42","x":"` + strings.Repeat("y", 1<<20) + `abcdefghij"}`)
	whole, names := masked(t, r, long, len(long))
	if len(whole) != len(long) || r.Find([]byte(whole)) != nil || !slices.Equal(names, []string{"A", "PEM", "PIN"}) {
		t.Errorf("%d of %d bytes, %v found, %v left", len(whole), len(long), names, r.Find([]byte(whole)))
	}
	for _, size := range []int{1, 7, 4096} {
		if got, _ := masked(t, r, long, size); got != whole {
			t.Errorf("parts of %d give another text", size)
		}
	}
	if w := r.Masker(io.Discard, nil); w.Close() != nil {
		t.Error("an unused one does not close")
	}
}

func FuzzMask(f *testing.F) {
	f.Add("abcdefgh", "correct horse battery", "42", []byte(`{"a":"abcdefghabcdefg correct horse battery","b":"42"}`), 7)
	f.Add("aaaaaaaaaaaa", "aaaaaaaaabaaaaaaa", "\"", []byte(strings.Repeat("a", 60)+`b"\""`), 3)
	f.Fuzz(func(t *testing.T, a, b, short string, text []byte, size int) {
		if len(a) > 500 || len(b) > 500 || len(text) > 2000 {
			return
		}
		r := NewRedactor(handles("A", a, "B", b, "C", short))
		in := slices.Concat(text, []byte(a), text, []byte(b))
		whole, _ := masked(t, r, in, len(in)+1)
		if len(whole) != len(in) || r.Find(in) == nil && whole != string(in) {
			t.Fatalf("%q became %q", in, whole)
		}
		if parts, _ := masked(t, r, in, int(uint(size)%64)+1); parts != whole {
			t.Fatalf("in parts %q, whole %q", parts, whole)
		}
	})
}
