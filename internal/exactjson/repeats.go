package exactjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// step is one part of a path: a key, or an index when that is not negative.
type step struct {
	key   string
	index int
}

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
	key := members[second].Key
	p.repeats = append(p.repeats, Repeat{
		Path: pathText(p.path, key), Key: key,
		First: members[first].KeyStart, Second: members[second].KeyStart,
		CaseTwin: members[first].Key != key,
	})
}

func pathText(path []step, key string) string {
	var b strings.Builder
	for _, s := range append(path[:len(path):len(path)], step{key: key, index: -1}) {
		if s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.key)
	}
	return b.String()
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
