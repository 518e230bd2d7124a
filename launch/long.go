package launch

import (
	"io"
	"strings"
)

// longLine deals with a line of the upstream that is longer than what is held:
// when its head says enough, it streams; else it is held to its end. It gives the
// line when it was held, no line and no error when it was dealt with.
func (s *Session) longLine(t *turn, l *link, in *lines) (line []byte, err error) {
	t.begin(in.rest())
	defer func() {
		if line == nil { // what was decided about it, also when nothing follows
			t.carryOut()
			t.begin(nil)
		}
	}()
	sc := &t.scanner
	if t.fed == 0 {
		sc.reset()
	}
	if !sc.feed(in.rest()[t.fed:]) {
		return nil, s.skipForeign(t, l, in)
	}
	t.fed = len(in.rest())
	if !s.mayStream(t, l) {
		return in.next(lineLimit)
	}
	return nil, s.stream(t, l, in)
}

// skipForeign reads past a long line that is no message. What it is stands in what is
// at hand of it, and so does the request that it was meant to answer.
func (s *Session) skipForeign(t *turn, l *link, in *lines) error {
	s.mu.Lock()
	if s.link == l { // else it was parked meanwhile
		t.link = l
		t.unreadable(l, true)
	}
	s.mu.Unlock()
	t.carryOut()
	size := len(in.rest())
	t.begin(nil)
	in.start = in.end
	for {
		part, last, err := in.chunk()
		if size += len(part); size > lineLimit {
			return errLong
		}
		if last || err != nil {
			return err
		}
	}
}

// mayStream tells whether the head at hand says what the line is, and that
// nothing of it is to be changed.
func (s *Session) mayStream(t *turn, l *link) bool {
	sc := &t.scanner
	if string(sc.raw(t.line, fieldJSONRPC)) != `"2.0"` || sc.repeated || sc.twin {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.link != l:
		return false
	case sc.ended(fieldMethod):
		return true
	case sc.ended(fieldID) && (sc.has(fieldResult) || sc.has(fieldError)):
		c := t.lookUp()
		return c != nil && c.own == ownNone && !c.status && c.method != initialize && c.method != toolsList && c.method != resourcesList
	}
	return false
}

// streamed carries long lines of one upstream to the client.
type streamed struct {
	o     *out
	mask  io.WriteCloser // writes to it
	size  int
	names []string // of the values that were met
}

func newStreamed(o *out, l *link) *streamed {
	w := &streamed{o: o}
	w.mask = unmasked{w}
	if l.redact != nil {
		w.mask = l.redact.Masker(w, w.found)
	}
	return w
}

func (w *streamed) Write(b []byte) (int, error) {
	w.o.part(b)
	return len(b), nil
}

func (w *streamed) found(name string) {
	if len(w.names) == 0 || w.names[len(w.names)-1] != name {
		w.names = append(w.names, name)
	}
}

// stream passes a long line on while it is read. The scanner follows: when it
// meets what makes the message another one, the line is cut off, so that no
// reader takes it for a message.
func (s *Session) stream(t *turn, l *link, in *lines) error {
	t.id = append([]byte(nil), t.scanner.raw(t.line, fieldID)...)
	if t.long == nil {
		t.long = newStreamed(s.client, l)
	}
	w := t.long
	w.size, w.names = len(t.line), w.names[:0]
	s.client.begin()
	mask := w.mask
	_, _ = mask.Write(t.line) // errors are the client's, and kept by its out
	in.start = in.end
	good, err := s.streamRest(t, in, mask, w)
	_ = mask.Close()
	if !good {
		s.client.part([]byte{'\n'})
	}
	if s.client.end() != nil {
		s.clientFailed()
	}
	if len(w.names) > 0 {
		s.notes.say(l.redact, "overwritten for the client: %sa message with the secret value of %s", s.notes.tag, strings.Join(w.names, ", "))
	}
	s.streamEnded(t, l, good, w.size)
	return err
}

type unmasked struct{ io.Writer }

func (unmasked) Close() error { return nil }

// streamRest passes the rest of the line on; good says that the whole of it is
// a message, err that nothing follows.
func (s *Session) streamRest(t *turn, in *lines, mask io.Writer, w *streamed) (good bool, tooLong error) {
	sc := &t.scanner
	good = true
	for {
		part, last, err := in.chunk()
		if w.size += len(part); w.size > lineLimit {
			return false, errLong
		}
		last = last || err != nil
		good = good && sc.feed(part) && !sc.repeated && !sc.twin && (!last || sc.state == lexEnd)
		if good {
			_, _ = mask.Write(part)
		}
		if good && err != nil {
			_, _ = mask.Write([]byte{'\n'})
		}
		if last {
			return good, nil // the next read says when nothing follows
		}
	}
}

// streamEnded settles what a streamed line answered.
func (s *Session) streamEnded(t *turn, l *link, good bool, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l {
		return
	}
	if !good {
		s.notes.report(l.redact, l, foreignCut, nil)
	}
	if t.scanner.has(fieldMethod) {
		return
	}
	key, _ := idText(t.key[:0], t.id)
	t.key = key
	c := s.ledger.find(key)
	if c == nil {
		return
	}
	t.call, t.size = c, size
	t.adapted = answer{streamed: good}
	if !good {
		t.adapted = answer{text: appendError(nil, c.raw, internalError, textUnreadable, codeInternal), failed: true}
	}
	t.replied(c)
}
