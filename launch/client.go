package launch

import (
	"bytes"
	"time"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// run is a row of lines that go on together, as offsets in the reader's buffer.
type run struct{ from, to int }

// pumpClient reads the client's lines to their end.
func (s *Session) pumpClient() {
	t := &turn{s: s}
	in := newLines(s.o.Client)
	var r run
	to := (*link)(nil) // whom the run is for
	flush := func() {
		if r.to > r.from && to != nil {
			s.sent(to, to.in.write(in.buf[r.from:r.to]))
		}
		r = run{}
	}
	for first := true; ; first = false {
		line, err := in.next(lineLimit)
		if err == errLong {
			flush()
			more := t.skipLong(in, line, first)
			t.carryOut()
			if !more {
				break
			}
			continue
		}
		if err != nil {
			break
		}
		if first {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		t.fromClient(line)
		if t.link != to || !t.pass {
			flush()
			to = t.link
		}
		if t.pass {
			if r.to == r.from {
				r.from = in.start - len(line)
			}
			r.to = in.start
		}
		ended := bytes.HasSuffix(line, []byte{'\n'})
		if !in.more() || !ended {
			flush()
		}
		if t.pass && !ended && to != nil {
			s.sent(to, to.in.write([]byte{'\n'}))
		}
		t.carryOut()
	}
	flush()
	s.happen(event{kind: clientEnd})
	s.lookForClient()
	time.AfterFunc(goneLook, s.lookForClient) // it may have died between its two pipes
}

// goneLook is when a client whose input has ended is looked for again.
const goneLook = 250 * time.Millisecond

// lookForClient notices a client that cannot read answers any more.
func (s *Session) lookForClient() {
	if hungUp(s.o.Out) {
		s.clientFailed()
	}
}

// fromClient judges one line of the client.
func (t *turn) fromClient(line []byte) {
	t.begin(line)
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	sc := &t.scanner
	valid := sc.scan(line)
	t.flaw = sc.flaw(line, valid)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.decide(t.clientEvent(valid))
}

// clientEvent turns the message at hand into an event; the lock is held.
func (t *turn) clientEvent(valid bool) event {
	sc := &t.scanner
	shape := sc.shape()
	if valid && !sc.doubt && shape != reply && sc.has(fieldID) {
		if key, ok := idText(t.key[:0], sc.raw(t.line, fieldID)); ok {
			t.key, t.id = key, sc.raw(t.line, fieldID)
		} else if t.flaw == "" {
			t.flaw = flawID
		}
	}
	if t.flaw != "" {
		return event{kind: clientFlaw, answering: !valid || sc.doubt || shape != notification}
	}
	if shape == reply {
		return event{kind: clientReply}
	}
	name, _ := sc.text(t.line, fieldMethod)
	e := event{kind: clientNotification, method: methodOf(name)}
	t.method = e.method
	switch e.method {
	case toolsCall:
		e.verdict = forbidden
		if tool, ok := sc.text(t.line, fieldName); ok {
			e.verdict = t.s.tools.judge(tool)
		}
	case resourcesRead:
		uri, ok := sc.text(t.line, fieldURI)
		e.status = ok && string(uri) == t.s.uri
	case cancelled:
		t.cancel()
	}
	if shape == request {
		t.inFlight(&e)
	}
	return e
}

// inFlight makes e a request, or a flaw when its id is taken.
func (t *turn) inFlight(e *event) {
	e.kind = clientRequest
	switch l := t.s.ledger; {
	case l.find(t.key) != nil:
		t.flaw = flawInFlight
	case l.total >= maxInFlight:
		t.flaw = flawMany
	default:
		return
	}
	e.kind, e.answering = clientFlaw, true
}

// track enters the request at hand.
func (t *turn) track() {
	c := t.s.ledger.add(t.id, t.key, ownNone)
	c.method, c.bytesIn = t.method, len(t.line)
	c.status = t.method == resourcesRead && t.statusRead()
	if t.method == toolsCall {
		tool, _ := t.scanner.text(t.line, fieldName)
		c.tool = append(c.tool, tool[:min(len(tool), receiptText)]...)
		c.started = t.s.o.Now()
	}
	c.said = append(c.said, wish(t.method, &t.scanner, t.line)...)
	if t.method == initialize {
		t.keepGreeting()
	}
	t.call = c
}

func (t *turn) statusRead() bool {
	uri, ok := t.scanner.text(t.line, fieldURI)
	return ok && string(uri) == t.s.uri
}

// cancel notes that the client no longer waits for a request.
func (t *turn) cancel() {
	key, ok := idText(t.key[:0], t.scanner.raw(t.line, fieldRequestID))
	t.key = key
	if !ok {
		return
	}
	c := t.s.ledger.find(key)
	if c == nil || c.own != ownNone || c.cancelled || c.method == initialize {
		return
	}
	if c.method == toolsCall {
		t.receipt(c, "cancelled", "", 0)
	}
	t.s.ledger.cancel(c)
}

// keepGreeting keeps what the client said of itself, for a connector that is
// woken later.
func (t *turn) keepGreeting() {
	const most = 64 << 10 // capabilities and a name
	params := t.scanner.raw(t.line, fieldParams)
	t.s.greeting, t.s.requested = t.s.greeting[:0], ""
	if len(params) <= most {
		t.s.greeting = append(t.s.greeting, params...)
		version, _ := t.scanner.text(t.line, fieldProtocol)
		t.s.requested = string(version)
	}
}
