package launch

import "bytes"

const (
	// alikeLeast is the least beginning worth keeping: every message begins with
	// some of the same bytes.
	alikeLeast = 32
	// alikeMost bounds what is kept of a message.
	alikeMost = 512
	// alikeTries and alikeBack: where a beginning cannot be begun from, one that is
	// so many bytes shorter is tried.
	alikeTries, alikeBack = 3, 16
)

// alike makes reading messages cheap that begin as others before them did, such as
// the notifications of one kind: what the scanner knows after the same bytes is the
// same, so it begins where the beginning ends. It decides nothing about the rest.
type alike struct {
	last  []byte // the beginning of the last message that was read from its first byte
	begin []byte // the beginning that is known; empty = none
	known scanner
}

// scan is the scanner's own scan.
func (a *alike) scan(s *scanner, line []byte) bool {
	if len(a.begin) > 0 && bytes.HasPrefix(line, a.begin) {
		s.become(&a.known)
		return s.feed(line[len(a.begin):]) && s.state == lexEnd
	}
	if !s.scan(line) {
		return false
	}
	same := commonLength(a.last, line)
	a.last = append(a.last[:0], line[:min(len(line), alikeMost)]...)
	for range alikeTries {
		if same < alikeLeast || a.learn(s.replies, line[:same]) {
			break
		}
		same -= alikeBack
	}
	return true
}

// learn reads a beginning and tells whether it can be begun from: not inside a key or
// a character, nor behind the end, where what is known is more than become copies.
func (a *alike) learn(replies bool, begin []byte) bool {
	k := &a.known
	k.replies = replies
	k.reset()
	a.begin = a.begin[:0]
	if !k.feed(begin) {
		return false
	}
	switch k.state {
	case lexEscape, lexHex, lexRune, lexEnd:
		return false
	case lexString:
		if k.inKey {
			return false
		}
	}
	for i := range k.keys {
		if k.keys[i].many != nil {
			return false
		}
	}
	a.begin = append(a.begin, begin...)
	return true
}

// become makes s what other is, with its own memory.
func (s *scanner) become(other *scanner) {
	key, decoded, keys := s.key, s.decoded, s.keys
	*s = *other
	s.key, s.decoded = key, decoded
	for i := range keys {
		s.keys[i] = keySet{few: append(keys[i].few[:0], other.keys[i].few...)}
	}
}

// commonLength is the length of the longest common beginning.
func commonLength(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
