package fetch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unevenIndex has entries of very different length, some longer than a block of the text, and other scripts.
func unevenIndex(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString(`{"connectors": [`)
	for i := range n {
		var text strings.Builder
		for range r.IntN(120) {
			fmt.Fprintf(&text, "%s ", []string{"mail", "Ünïcode", "日本語", "a", "zz", fmt.Sprint(r.IntN(99999)), syntheticWords[r.IntN(len(syntheticWords))]}[r.IntN(7)])
		}
		tags := strings.Repeat(fmt.Sprintf(`"tag%d", `, i), r.IntN(2)*r.IntN(500)) + `"last"`
		fmt.Fprintf(&b, `%s{"id": "u%05d", "name": "N %d", "user_description": %q, "tags": [%s], "files": []}`, map[bool]string{true: ",", false: ""}[i > 0], i, i, text.String(), tags)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// TestMarksLoseNothing searches for pieces of the text with marks, and by looking through all of it.
func TestMarksLoseNothing(t *testing.T) {
	for name, body := range map[string][]byte{"even": syntheticIndex(4000), "uneven": unevenIndex(1500)} {
		ix, err := indexIn(t, body, built(t, body))
		if err != nil {
			t.Fatal(err)
		}
		s := ix.side
		text, err := s.read(nil, int64(s.count)*recordSize, s.textLen)
		if err != nil || markWidth(s.textLen) == 0 {
			t.Fatal(err, s.textLen)
		}
		r, passed := rand.New(rand.NewPCG(3, 4)), 0
		for range 400 {
			at := r.IntN(len(text) - 20)
			words := [][]byte{text[at : at+1+r.IntN(14)]}
			if r.IntN(3) == 0 {
				at += r.IntN(6)
				words = append(words, text[at:at+3])
			}
			m := matcherOf(words)
			got, err := s.hits(m, 0)
			var want []hit
			errAll := s.chunks(0, s.textLen, func(off int64, lines []byte) { want = m.scan(want, off, lines) })
			if want = best(want, 0); err != nil || errAll != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %q: %d hits of %d, %v %v", name, words, len(got), len(want), err, errAll)
			}
			if set, _ := s.marked(words); set != nil && set.count() <= s.blocks()/2 {
				passed++
			}
		}
		if passed < 50 {
			t.Errorf("%s: the short way was taken %d times", name, passed)
		}
	}
}

func matcherOf(words [][]byte) *matcher {
	var q Query
	for _, w := range words {
		q.Words = append(q.Words, string(w))
	}
	return newMatcher(q)
}
