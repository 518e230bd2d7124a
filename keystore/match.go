package keystore

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// The search looks at one place in many. Every pattern has a fragment of F bytes. The
// text is sampled at every S-th place, S = F-B+1, where a block of B bytes is
// hashed and looked up in a bit set: an occurrence of a fragment covers S
// places at which a block of it begins, so one of them is sampled. Only a block that is
// known leads to a comparison. The time is linear in the text, with a factor
// that falls with the length of the shortest pattern, so patterns are put into
// two classes by length, each with its own matcher.
type matcher struct {
	size   int // F
	stride int // S
	block  int // B
	mask   uint64
	shift  int
	filter []uint64
	table  map[uint64][]sample
	frags  []fragment
}

// sample says that a block stands off bytes behind the start of a fragment.
type sample struct{ frag, off int32 }

type fragment struct {
	text string
	uses []use
}

// use says that a pattern has the fragment off bytes behind its start.
type use struct {
	text string
	off  int
	id   int // what the pattern stands for
}

// span is a place in a text where a pattern is.
type span struct{ start, end, id int }

const (
	// wideFragment and narrowFragment part the classes; patterns of the
	// first class have at least wideFragment bytes, of the second minPattern.
	wideFragment   = 16
	narrowFragment = minPattern
	maxFragment    = 32
	// filterDensity: one bit in so many is set, so about that share of the
	// samples is looked up in the table by chance.
	filterDensity = 64
	hashFactor    = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
)

// newMatcher prepares the search for patterns, a map from text to id. All
// have at least least bytes. It is nil when there are none.
func newMatcher(patterns map[string]int, least int) *matcher {
	if len(patterns) == 0 {
		return nil
	}
	m := &matcher{size: maxFragment, table: map[uint64][]sample{}}
	for p := range patterns {
		m.size = max(least, min(m.size, len(p)))
	}
	m.block = min(8, m.size-3)
	if m.size <= narrowFragment {
		m.block = 4
	}
	m.stride = m.size - m.block + 1
	m.mask = ^uint64(0) >> (64 - 8*m.block)
	m.addAll(patterns)
	m.fillFilter()
	return m
}

func (m *matcher) addAll(patterns map[string]int) {
	index := map[string]int{}
	for _, p := range sortedKeys(patterns) {
		off := anchor(p, m.size)
		text := p[off : off+m.size]
		i, has := index[text]
		if !has {
			i = len(m.frags)
			index[text] = i
			m.frags = append(m.frags, fragment{text: text})
			for o := range m.stride {
				x := m.load([]byte(text[o:]))
				m.table[x] = append(m.table[x], sample{int32(i), int32(o)})
			}
		}
		m.frags[i].uses = append(m.frags[i].uses, use{text: p, off: off, id: patterns[p]})
	}
}

// anchor gives the start of the fragment of p: the first run of letters and digits that
// is long enough, which the escaped forms of a value share, else the start.
func anchor(p string, size int) int {
	run := 0
	for i := 0; i < len(p); i++ {
		if !isAlnum(p[i]) {
			run = 0
			continue
		}
		if run++; run == size {
			return i + 1 - size
		}
	}
	return 0
}

func (m *matcher) fillFilter() {
	width := max(9, bits.Len(uint(len(m.table)*filterDensity)))
	m.shift = 64 - width
	m.filter = make([]uint64, 1<<width/64)
	for x := range m.table {
		h := x * hashFactor >> m.shift
		m.filter[h/64] |= 1 << (h % 64)
	}
}

// load reads the block at the start of b, which may be shorter than 8 bytes
// but not than a block.
func (m *matcher) load(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b) & m.mask
	}
	var pad [8]byte
	copy(pad[:], b)
	return binary.LittleEndian.Uint64(pad[:]) & m.mask
}

// find appends the places of all patterns in b. Places that overlap may be
// given as one.
func (m *matcher) find(b []byte, out []span) []span {
	if m == nil || len(b) < m.size {
		return out
	}
	filter, mask, shift, stride := m.filter, m.mask, m.shift, m.stride
	i := stride - 1
	for ; i+8 <= len(b); i += stride {
		x := binary.LittleEndian.Uint64(b[i:i+8]) & mask
		if h := x * hashFactor >> shift; filter[h/64]&(1<<(h%64)) != 0 {
			out = m.compare(b, i, x, out)
		}
	}
	for ; i+m.block <= len(b); i += stride {
		out = m.compare(b, i, m.load(b[i:]), out)
	}
	return out
}

// compare looks at the fragments that have block x where b has it at i.
func (m *matcher) compare(b []byte, i int, x uint64, out []span) []span {
	for _, s := range m.table[x] {
		at := i - int(s.off)
		f := &m.frags[s.frag]
		if at < 0 || at+m.size > len(b) || string(b[at:at+m.size]) != f.text {
			continue
		}
		for _, u := range f.uses {
			start, end := at-u.off, at-u.off+len(u.text)
			if start < 0 || end > len(b) || covered(out, start, end, u.id) || string(b[start:end]) != u.text {
				continue
			}
			out = add(out, span{start, end, u.id})
		}
	}
	return out
}

// add appends v, or joins it to the newest span of the same id that it overlaps, so
// that a text of one repeated letter gives no more spans than it has samples.
func add(out []span, v span) []span {
	if len(out) > 0 {
		last := &out[len(out)-1]
		if last.id == v.id && v.start <= last.end && last.start <= v.end {
			last.start, last.end = min(last.start, v.start), max(last.end, v.end)
			return out
		}
	}
	return append(out, v)
}

// covered reports that the newest span says it all already.
func covered(out []span, start, end, id int) bool {
	if len(out) == 0 {
		return false
	}
	last := out[len(out)-1]
	return last.id == id && last.start <= start && end <= last.end
}

// merge sorts spans and joins those that overlap or touch; the first gives the id.
func merge(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return a.id - b.id
	})
	out := spans[:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.start <= last.end {
			last.end = max(last.end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// prefixes knows which texts a pattern may begin with.
type prefixes struct {
	sorted  []string
	quads   []uint64 // bit set of hashed first four bytes
	single  [256]bool
	longest int
}

const (
	quad      = 4
	quadShift = 64 - 18 // 32 KiB: stays in the cache
)

func quadHash(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) * hashFactor >> quadShift
}

func newPrefixes(patterns map[string]int) *prefixes {
	p := &prefixes{sorted: sortedKeys(patterns), quads: make([]uint64, 1<<(64-quadShift)/64)}
	for _, s := range p.sorted {
		h := quadHash([]byte(s[:quad]))
		p.quads[h/64] |= 1 << (h % 64)
		p.single[s[0]] = true
		p.longest = max(p.longest, len(s))
	}
	return p
}

// hold gives the start of the longest end of b with which a pattern may begin;
// len(b) when there is none. What stands before it is decided.
func (p *prefixes) hold(b []byte) int {
	i := max(0, len(b)-p.longest+1)
	for ; i+quad <= len(b); i++ {
		if h := quadHash(b[i : i+quad]); p.quads[h/64]&(1<<(h%64)) != 0 && p.begins(b[i:]) {
			return i
		}
	}
	for ; i < len(b); i++ {
		if p.single[b[i]] && p.begins(b[i:]) {
			return i
		}
	}
	return len(b)
}

// begins reports whether end is shorter than a pattern that begins with it.
func (p *prefixes) begins(end []byte) bool {
	text := string(end)
	i, has := slices.BinarySearch(p.sorted, text)
	if has {
		i++
	}
	return i < len(p.sorted) && len(p.sorted[i]) > len(text) && strings.HasPrefix(p.sorted[i], text)
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
