package exactjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRepeats bounds what a hostile document can make us list.
const maxRepeats = 100

// pairwiseMembers is the object size up to which comparing every pair of
// hashes is cheaper than a map.
const pairwiseMembers = 32

// findRepeats compares the keys of one object, exactly and after case folding.
func (p *parser) findRepeats(members []Member) {
	if len(members) < 2 {
		return
	}
	if len(members) > pairwiseMembers {
		p.findRepeatsMapped(members)
		return
	}
	var hashes [pairwiseMembers]uint32
	for i := range members {
		hashes[i] = foldHash(members[i].Key)
		for j := range i {
			if hashes[j] == hashes[i] && strings.EqualFold(members[i].Key, members[j].Key) {
				p.report(members, firstOf(members[:i], j, members[i].Key), i)
				break
			}
		}
	}
}

func (p *parser) findRepeatsMapped(members []Member) {
	first := make(map[string]int, len(members))
	exact := make(map[string]int, len(members))
	for i := range members {
		key := members[i].Key
		folded := strings.Map(foldRune, key)
		j, twin := first[folded]
		if k, same := exact[key]; same {
			p.report(members, k, i)
		} else if twin {
			p.report(members, j, i)
		}
		if !twin {
			first[folded] = i
		}
		exact[key] = i
	}
}

// firstOf prefers an exact repeat over the case twin at j.
func firstOf(members []Member, j int, key string) int {
	for k := j; k < len(members); k++ {
		if members[k].Key == key {
			return k
		}
	}
	return j
}

func (p *parser) report(members []Member, first, second int) {
	if len(p.repeats) >= maxRepeats {
		return
	}
	key := members[second].Key
	p.repeats = append(p.repeats, Repeat{
		Key: key, First: members[first].KeyStart, Second: members[second].KeyStart, CaseTwin: members[first].Key != key,
	})
}

// pathTo finds the path of a repeat from the root down, by its offset.
func pathTo(v Value, rep Repeat) string {
	var b strings.Builder
	name := func(key string) {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(pathKey(key))
	}
	for {
		next := -1
		for i, item := range v.Items {
			if rep.Second > item.Start && rep.Second < item.End {
				next = i
			}
		}
		if next >= 0 {
			b.WriteString("[" + strconv.Itoa(next) + "]")
			v = v.Items[next]
			continue
		}
		for i, m := range v.Members {
			if m.KeyStart == rep.Second {
				name(m.Key)
				return b.String()
			}
			if rep.Second > m.Value.Start && rep.Second < m.Value.End {
				next = i
			}
		}
		if next < 0 {
			return b.String()
		}
		name(v.Members[next].Key)
		v = v.Members[next].Value
	}
}

// pathKey gives a key as it stands in a path: quoted when it holds what a
// terminal would not show.
func pathKey(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(key)
	}
	return key
}

// foldHash is FNV-1a over the folded key; keys equal under strings.EqualFold
// have equal hashes.
func foldHash(key string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(key); i++ {
		c := key[i]
		if c >= utf8.RuneSelf {
			return foldHashRunes(key)
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func foldHashRunes(key string) uint32 {
	h := uint32(2166136261)
	for _, r := range key {
		h = (h ^ uint32(foldRune(r))) * 16777619
	}
	return h
}

// foldRune gives one representative of the runes that simple case folding
// takes for the same: the smallest, an ASCII letter in lower case.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if least >= 'A' && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
