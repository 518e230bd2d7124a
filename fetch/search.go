package fetch

import (
	"bytes"
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A hit is a line of the text that matches, with its rank.
type hit struct {
	textOff int64
	score   int
}

// A matcher is a query in the form of the text records.
type matcher struct {
	words                     [][]byte
	anchor                    []byte // the longest word: it is looked for first, as it is the rarest
	rare                      int    // place of its rarest byte
	filters                   bool
	tag, typ, scope, requires []byte
}

func newMatcher(q Query) *matcher {
	m := &matcher{tag: []byte(fold(q.Tag)), typ: []byte(fold(q.Type)), scope: []byte(fold(q.Scope)), requires: []byte(fold(q.Requires))}
	m.filters = q.Tag+q.Type+q.Scope+q.Requires != ""
	for _, w := range q.Words {
		for _, part := range strings.Fields(fold(w)) {
			m.words = append(m.words, []byte(part))
		}
	}
	for _, w := range m.words {
		if len(w) > len(m.anchor) {
			m.anchor = w
		}
	}
	for i, c := range m.anchor {
		if commonness.rank(c) > commonness.rank(m.anchor[m.rare]) {
			m.rare = i
		}
	}
	return m
}

// letters are ordered from common to rare, as English has them.
type letters string

const commonness letters = " etaoinsrhl0123456789dcumfgpywbvkxjqz"

// rank is greater for rarer bytes. What is not in the list, such as the bytes of other scripts, counts as common.
func (l letters) rank(c byte) int { return strings.IndexByte(string(l), c) }

// find is bytes.Index for the anchor. Looking for its rarest byte first stops less often than looking for its first one;
// where it does stop often, bytes.Index is the better of the two.
func (m *matcher) find(text []byte) int {
	stops := 0
	for at := m.rare; at < len(text); at++ {
		n := bytes.IndexByte(text[at:], m.anchor[m.rare])
		if n < 0 {
			return -1
		}
		at += n
		if bytes.HasPrefix(text[at-m.rare:], m.anchor) {
			return at - m.rare
		}
		if stops++; stops > 16+at/8 {
			from := at - m.rare
			if n = bytes.Index(text[from:], m.anchor); n >= 0 {
				n += from
			}
			return n
		}
	}
	return -1
}

// hits gives the matching lines, best first, then by id; at most limit when that is not 0. The text is cut into a part
// for each processor; blocks that cannot have the words are passed over, where that is most of them.
func (s *side) hits(m *matcher, limit int) ([]hit, error) {
	parts, err := s.walks(m.words, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	found, errs := make([][]hit, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, walk := range parts {
		wg.Go(func() {
			errs[i] = walk(func(off int64, lines []byte) {
				found[i] = m.scan(found[i], off, lines)
				if limit > 0 && len(found[i]) > 4*limit+1000 {
					found[i] = best(found[i], limit)
				}
			})
		})
	}
	wg.Wait()
	return best(slices.Concat(found...), limit), errors.Join(errs...)
}

// A walk calls look with pieces of the text, each made of whole lines.
type walk func(look func(off int64, lines []byte)) error

// walks are at most n walks that together see all lines that may have the words.
func (s *side) walks(words [][]byte, n int) (all []walk, err error) {
	set, err := s.marked(words)
	if err != nil {
		return nil, err
	}
	if blocks := s.blocks(); set != nil && set.count() <= blocks/2 {
		for i := range n {
			all = append(all, func(look func(int64, []byte)) error { return s.linesOf(set, blocks*i/n, blocks*(i+1)/n, look) })
		}
		return all, nil
	}
	bounds, err := s.parts(n)
	if err != nil {
		return nil, err
	}
	for i := range len(bounds) - 1 {
		all = append(all, func(look func(int64, []byte)) error { return s.chunks(bounds[i], bounds[i+1], look) })
	}
	return all, nil
}

// best sorts hits and keeps the first limit.
func best(hits []hit, limit int) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.textOff, b.textOff))
	})
	if limit > 0 && len(hits) > limit {
		hits = hits[:limit]
	}
	return hits
}

// scan appends the hits among whole lines, which start at off in the text.
func (m *matcher) scan(hits []hit, off int64, lines []byte) []hit {
	for at := 0; at < len(lines); {
		start := at
		if len(m.anchor) > 0 {
			n := m.find(lines[at:])
			if n < 0 {
				break
			}
			start = bytes.LastIndexByte(lines[at:at+n], lineEnd) + 1 + at
		}
		end := start + bytes.IndexByte(lines[start:], lineEnd)
		if score, ok := m.match(lines[start:end]); ok {
			hits = append(hits, hit{off + int64(start), score})
		}
		at = end + 1
	}
	return hits
}

// match judges one line. A line that is not a text record matches nothing.
func (m *matcher) match(line []byte) (score int, ok bool) {
	var f [fieldCount][]byte
	for i := range fieldCount - 1 {
		n := bytes.IndexByte(line, fieldSep)
		if n < 0 {
			return 0, false
		}
		f[i], line = line[:n], line[n+1:]
	}
	f[fieldKind] = line
	if m.filters && !m.passes(&f) {
		return 0, false
	}
	for _, w := range m.words {
		n := rank(&f, w)
		if n == 0 {
			return 0, false
		}
		score += n
	}
	return score, true
}

// passes applies the filters.
func (m *matcher) passes(f *[fieldCount][]byte) bool {
	typ, rest, _ := bytes.Cut(f[fieldKind], []byte{itemSep})
	scope, requires, _ := bytes.Cut(rest, []byte{itemSep})
	return (len(m.typ) == 0 || bytes.Equal(m.typ, typ)) &&
		(len(m.scope) == 0 || bytes.Equal(m.scope, scope)) &&
		(len(m.requires) == 0 || hasItem(requires, m.requires)) &&
		(len(m.tag) == 0 || hasItem(f[fieldTags], m.tag))
}

// rank says how well a word fits: where it stands matters most, then whether it is a whole word or begins one.
func rank(f *[fieldCount][]byte, w []byte) int {
	if bytes.Equal(f[fieldKey], w) {
		return 100
	}
	top := 0
	for i := range weights {
		if r := &weights[i]; r[whole] > top { // else the field cannot do better
			top = max(top, r[fit(f[i], w)])
		}
	}
	return top
}

// weights are the ranks of a word by field (fieldKey to fieldDescription) and fitness.
var weights = [...][4]int{{0, 25, 45, 60}, {0, 20, 40, 50}, {0, 12, 22, 35}, {0, 5, 10, 15}}

type fitness uint8

const (
	absent fitness = iota
	inside
	begins
	whole
)

// fit gives the best way in which w occurs in text.
func fit(text, w []byte) (best fitness) {
	for at := 0; ; {
		n := bytes.Index(text[at:], w)
		if n < 0 {
			return best
		}
		i := at + n
		switch {
		case !boundary(text, i-1):
			best = max(best, inside)
		case !boundary(text, i+len(w)):
			best = max(best, begins)
		default:
			return whole
		}
		at = i + 1
	}
}

// boundary tells whether no word goes on at this byte. Bytes of other scripts count as letters.
func boundary(text []byte, i int) bool {
	if i < 0 || i >= len(text) {
		return true
	}
	c := text[i]
	return c < '0' || c > '9' && c < 'a' || c > 'z' && c < 0x80
}

func hasItem(list, item []byte) bool {
	for one := range bytes.SplitSeq(list, []byte{itemSep}) {
		if bytes.Equal(one, item) {
			return true
		}
	}
	return false
}

// nearMost and nearDistance bound what is offered for a mistyped id.
const (
	nearMost     = 3
	nearDistance = 2
)

// near gives the ids that look like key, nearest first.
func (s *side) near(key string) []string {
	type candidate struct {
		id   string
		cost int
	}
	var found []candidate
	_ = s.chunks(0, s.textLen, func(_ int64, lines []byte) {
		for line := range bytes.Lines(lines) {
			k, _, _ := bytes.Cut(line, []byte{fieldSep})
			if cost, ok := nearness(key, k); ok && len(found) < 1000 {
				found = append(found, candidate{string(k), cost})
			}
		}
	})
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	var ids []string
	for _, c := range found[:min(len(found), nearMost)] {
		ids = append(ids, c.id)
	}
	return ids
}

// nearness tells whether an id is worth offering: a few typing errors apart, or one holds the other.
func nearness(want string, have []byte) (cost int, ok bool) {
	if len(want) == 0 || len(have) == 0 {
		return 0, false
	}
	if d := len(want) - len(have); d >= -nearDistance && d <= nearDistance {
		if cost = distance(want, have); cost <= nearDistance && cost < len(want) {
			return cost, true
		}
	}
	if len(want) >= 3 && bytes.Contains(have, []byte(want)) || len(have) >= 3 && strings.Contains(want, string(have)) {
		return nearDistance + 1, true
	}
	return 0, false
}

// distance is the number of changed, added or missing bytes between two short texts.
func distance(a string, b []byte) int {
	var rows [2][2*keyLimit + 2]int
	if len(b) > 2*keyLimit {
		return nearDistance + 1
	}
	prev, cur := &rows[0], &rows[1]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}
