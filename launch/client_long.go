package launch

import (
	"bytes"
	"math"
)

// skipLong reads past a line of the client that is longer than 64 MiB and refuses
// it; line is the whole of it where it is at hand. It is scanned to its end all the
// same, in chunks: nothing answers a notification. more is false when the input
// has ended.
func (t *turn) skipLong(in *lines, line []byte, first bool) (more bool) {
	t.begin(nil)
	sc := &t.scanner
	sc.reset()
	sc.lax = true // an endless line must not be remembered key by key
	defer func() { sc.lax = false }()
	var id []byte
	feed := func(part []byte) {
		before := sc.base
		sc.feed(part)
		if at := sc.at[fieldID]; id == nil && sc.ended(fieldID) && sc.base < math.MaxInt32 && int(at.start) >= before {
			id = append([]byte{}, part[int(at.start)-before:int(at.end)-before]...)
		}
	}
	more = true
	if line == nil {
		line = in.rest()
		in.start, more = in.end, false
	}
	if first {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	feed(line)
	for !more {
		part, last, err := in.chunk()
		if feed(part); last || err != nil {
			more = err == nil
			break
		}
	}
	t.refuseLong(id)
	return more
}

// refuseLong decides about the long line that was scanned.
func (t *turn) refuseLong(id []byte) {
	sc, s := &t.scanner, t.s
	valid := sc.state == lexEnd && !sc.doubt
	s.mu.Lock()
	defer s.mu.Unlock()
	t.flaw = flawLong
	if key, ok := idText(t.key[:0], id); ok && valid && sc.shape() == request {
		t.key, t.id = key, id
	}
	e := event{kind: clientFlaw, answering: !valid || sc.shape() != notification}
	if !e.answering && !s.longTold {
		s.longTold = true
		s.notes.say(s.redactor, "kept from %sa notification of the client's: %s", s.notes.tag, flawLong)
	}
	t.decide(e)
}
