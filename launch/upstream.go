package launch

import (
	"bytes"
	"strings"
)

const (
	textWithheld   = "the connector wrote one of its secret values into this answer, so it was withheld"
	textUnreadable = "the connector wrote an answer that cannot be read"
	textEnded      = "the connector ended before it answered"
)

// pumpUpstream reads one upstream's lines to their end.
func (s *Session) pumpUpstream(l *link) {
	defer s.readers.Done()
	t := &turn{s: s}
	t.scanner.replies = true
	in := newLines(l.Output)
	in.early = func(part []byte) { t.early(in.given, part) }
	var r run
	fresh, dirty, first := true, false, true
	flush := func() {
		if r.to > r.from {
			t.toTheClient(in.buf[r.from:r.to])
		}
		r = run{}
	}
	for {
		line, err := in.next(heldLimit)
		if err == errLong && line == nil {
			line, err = s.longLine(t, l, in)
			if line == nil && err == nil {
				in.given, t.fed = 0, 0
				continue
			}
			fresh = true
		}
		if line == nil {
			s.tooLong(l, err)
			break
		}
		if fresh {
			// One search for all lines at hand: they are searched one by one
			// only when there is something.
			all := in.buf[in.start-len(line) : in.start+len(in.whole())]
			dirty, fresh = l.redact != nil && l.redact.Find(all) != nil, false
		}
		if first {
			line, first = bytes.TrimPrefix(line, byteOrderMark), false
		}
		t.fromUpstream(l, line, dirty)
		in.given, t.fed = 0, 0
		if !t.pass {
			flush() // a run has no gaps
		} else {
			if r.to == r.from {
				r.from = in.start - len(line)
			}
			r.to = in.start
		}
		if fresh = !in.more(); fresh {
			flush()
		}
		if t.pass && !bytes.HasSuffix(line, []byte{'\n'}) {
			t.toTheClient([]byte{'\n'})
		}
		t.carryOut()
	}
	flush()
	s.upstreamEnded(t, l)
}

// early scans what is there of a long line, while the rest is being written.
func (t *turn) early(before int, part []byte) {
	if before == 0 {
		t.scanner.reset()
	}
	t.scanner.feed(part)
	t.fed = before + len(part)
}

// scanned scans the message at hand, or the rest of it.
func (t *turn) scanned(line []byte) bool {
	if t.fed == 0 || t.fed > len(line) || t.scanner.base != t.fed {
		return t.alike.scan(&t.scanner, line)
	}
	return t.scanner.feed(line[t.fed:]) && t.scanner.state == lexEnd
}

func (t *turn) toTheClient(b []byte) {
	if t.s.client.write(b) != nil {
		t.s.clientFailed()
	}
}

// tooLong ends an upstream whose line has no end.
func (s *Session) tooLong(l *link, err error) {
	if err != errLong {
		return
	}
	s.mu.Lock()
	current := s.link == l
	s.mu.Unlock()
	if current {
		s.explain("the connector wrote a line of more than 64 MiB")
		s.happen(event{kind: upstreamTooLong})
	}
	skim := make([]byte, firstBuffer)
	for { // it may want to write before it ends
		if _, err := l.Output.Read(skim); err != nil {
			return
		}
	}
}

func (s *Session) upstreamEnded(t *turn, l *link) {
	t.begin(nil)
	s.mu.Lock()
	s.notes.total(l.redact, l)
	if s.link == l {
		if s.state.phase == waking {
			s.notes.say(l.redact, "%sit ended before it answered initialize; the session stays parked", s.notes.tag)
		}
		t.decide(event{kind: upstreamEnd, waiting: s.ledger.waiting})
	}
	s.mu.Unlock()
	t.carryOut()
	s.end(l)
}

// fromUpstream judges one line of the upstream. dirty says that a secret value
// may be in it.
func (t *turn) fromUpstream(l *link, line []byte, dirty bool) {
	t.begin(line)
	if len(line) < 3 && len(bytes.TrimSpace(line)) == 0 {
		return
	}
	valid := t.scanned(line)
	if !dirty && valid && t.link == l && t.s.passing.Load() == l && t.scanner.has(fieldMethod) && t.isMessage() {
		t.pass = true
		return
	}
	var names []string
	if dirty {
		names = l.redact.Find(line)
	}
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l {
		return // it was parked meanwhile
	}
	t.link = l
	switch {
	case !valid || !t.isMessage():
		t.unreadable(l, bytes.HasSuffix(line, []byte{'\n'}))
	case t.scanner.shape() == reply:
		t.reply(l, names)
	case names != nil:
		t.withhold(l, names)
	default:
		name, _ := t.scanner.text(line, fieldMethod)
		t.decide(event{kind: upstreamMessage, method: methodOf(name)})
	}
}

// isMessage tells whether the object that was read is a JSON-RPC message.
func (t *turn) isMessage() bool {
	sc := &t.scanner
	if sc.repeated || sc.twin || sc.shape() == unreadable || string(sc.raw(t.line, fieldJSONRPC)) != `"2.0"` {
		return false
	}
	_, named := sc.text(t.line, fieldMethod)
	return named || !sc.has(fieldMethod)
}

// lookUp finds the request that the reply at hand answers.
func (t *turn) lookUp() *call {
	raw := t.scanner.raw(t.line, fieldID)
	key, ok := idText(t.key[:0], raw)
	t.key = key
	if !ok {
		return nil
	}
	return t.s.ledger.find(key)
}

// reply decides about an answer; names are the handles whose values are in it.
func (t *turn) reply(l *link, names []string) {
	sc := &t.scanner
	c := t.lookUp()
	if c == nil || c.status {
		if string(sc.raw(t.line, fieldID)) == "null" && sc.has(fieldError) && names == nil {
			t.decide(event{kind: upstreamMessage})
			return
		}
		t.s.notes.report(l.redact, l, foreignReply, nil)
		return
	}
	t.call, t.id = c, c.raw
	if names != nil {
		t.warn(l, names)
		t.adapted = answer{text: appendError(nil, t.id, internalError, textWithheld, codeInternal), failed: true}
	} else {
		t.adapted = t.s.adaptReply(c, sc, t.line)
	}
	t.replied(c)
}

// replied takes the step for the answer to c.
func (t *turn) replied(c *call) {
	e := event{kind: upstreamReply, method: c.method, own: c.own, refused: t.adapted.failed || t.scanner.has(fieldError),
		answer: t.adapted.greeting, waiting: t.s.ledger.waiting}
	if c.own == ownNone && !c.cancelled {
		e.waiting--
	}
	t.decide(e)
	if t.s.state.phase == draining {
		t.s.armDrain()
	}
}

// unreadable keeps a line from the client. When it was meant as an answer, the
// request is answered in its place. whole: it did not end in the middle.
func (t *turn) unreadable(l *link, whole bool) {
	sc := &t.scanner
	t.s.notes.report(l.redact, l, sc.classify(t.line, whole), t.line)
	if sc.shape() != reply || sc.doubt || string(sc.raw(t.line, fieldJSONRPC)) != `"2.0"` {
		return
	}
	if c := t.lookUp(); c != nil && !c.status {
		t.call, t.id = c, c.raw
		t.adapted = answer{text: appendError(nil, t.id, internalError, textUnreadable, codeInternal), failed: true}
		t.replied(c)
	}
}

// withhold keeps a request or notification of the connector from the client.
func (t *turn) withhold(l *link, names []string) {
	t.warn(l, names)
	if id := t.scanner.raw(t.line, fieldID); id != nil {
		t.toUpstream = appendError(t.toUpstream, id, internalError, "this request has one of the connector's secret values in it, so it was withheld", codeInternal)
	}
}

// warn names the handles whose values a line has.
func (t *turn) warn(l *link, names []string) {
	t.s.notes.say(l.redact, "kept from the client: %sa message with the secret value of %s", t.s.notes.tag, strings.Join(names, ", "))
}
