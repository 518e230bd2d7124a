package launch

import (
	"bytes"
	"hash/maphash"
	"time"
)

const (
	// maxInFlight bounds the requests without an answer: a client that sends
	// more without waiting is not one that a person uses.
	maxInFlight = 1 << 16
	// maxCancelled bounds those that the client has cancelled: most are never
	// answered, as the protocol advises.
	maxCancelled = 1024
)

// A call is one request that waits for its answer.
type call struct {
	raw     []byte // the id as the client spelt it
	key     []byte // idText of it
	tool    []byte // of tools/call: the tool's name, cut to what a receipt shows
	said    []byte // of what is remembered beyond the answer, see wish
	method  method
	own     ownRequest // the launcher sent it itself
	status  bool       // the launcher answers it itself
	started time.Time  // of tools/call
	bytesIn int

	cancelled bool
	used      bool
	hash      uint64
	next      int32 // the next call with this hash or free one, -1 at the end
}

// ledger holds the requests in flight of one direction. It allocates only when
// it grows beyond any earlier size.
type ledger struct {
	calls     []call
	byHash    map[uint64]int32
	free      int32
	waiting   int // neither cancelled nor the launcher's own
	total     int
	cancelled int
	seed      maphash.Seed
}

func newLedger() *ledger {
	return &ledger{byHash: map[uint64]int32{}, free: -1, seed: maphash.MakeSeed()}
}

// find gives the call with this idText, nil when there is none. The pointer is
// good until the next add.
func (l *ledger) find(key []byte) *call {
	i, has := l.byHash[maphash.Bytes(l.seed, key)]
	for has && i >= 0 {
		if c := &l.calls[i]; bytes.Equal(c.key, key) {
			return c
		}
		i = l.calls[i].next
	}
	return nil
}

// add enters a call; its key must not be there. The caller fills in the rest.
func (l *ledger) add(raw, key []byte, own ownRequest) *call {
	i := l.free
	if i >= 0 {
		l.free = l.calls[i].next
	} else {
		i = int32(len(l.calls))
		l.calls = append(l.calls, call{})
	}
	c := &l.calls[i]
	*c = call{raw: append(c.raw[:0], raw...), key: append(c.key[:0], key...), tool: c.tool[:0], said: c.said[:0],
		own: own, used: true, hash: maphash.Bytes(l.seed, key), next: -1}
	if first, has := l.byHash[c.hash]; has {
		c.next = first
	}
	l.byHash[c.hash] = i
	l.total++
	if own == ownNone {
		l.waiting++
	}
	return c
}

// remove takes a call out; its slices may be used until the next add.
func (l *ledger) remove(c *call) {
	first := l.byHash[c.hash]
	var at int32
	if &l.calls[first] == c {
		at = first
		if c.next < 0 {
			delete(l.byHash, c.hash)
		} else {
			l.byHash[c.hash] = c.next
		}
	} else {
		before := first
		for at = l.calls[before].next; &l.calls[at] != c; at = l.calls[before].next {
			before = at
		}
		l.calls[before].next = c.next
	}
	l.total--
	switch {
	case c.cancelled:
		l.cancelled--
	case c.own == ownNone:
		l.waiting--
	}
	c.used, c.next = false, l.free
	l.free = at
}

// cancel notes that the client no longer waits. Of those that were cancelled
// long before some are forgotten.
func (l *ledger) cancel(c *call) {
	c.cancelled = true
	l.waiting--
	if l.cancelled++; l.cancelled <= maxCancelled {
		return
	}
	for i := range l.calls {
		if old := &l.calls[i]; old.used && old.cancelled && old != c {
			l.remove(old)
			return
		}
	}
}

// each visits all calls; visit may remove the one that it is given.
func (l *ledger) each(visit func(*call)) {
	for i := range l.calls {
		if l.calls[i].used {
			visit(&l.calls[i])
		}
	}
}
