package launch

import (
	"time"
)

// drainLimit: when the client's input has ended, an upstream that answers none
// of the waiting requests for so long is told to end. With the time that it
// then gets, the session is over within ten seconds.
const drainLimit = 3 * time.Second

// turn is the handling of one event: the message at hand, what was decided
// under the session's lock, and what is to be done without it. A goroutine uses
// its turn again, so that a message costs no allocation.
type turn struct {
	s       *Session
	scanner scanner
	alike   alike
	line    []byte // the message at hand, its line end included
	id      []byte // as it is spelt, nil = null
	key     []byte
	flaw    flaw
	method  method
	call    *call  // the request that the reply at hand answers
	adapted answer // what the launcher makes of that reply
	fed     int    // so much of line the scanner has
	size    int    // of the reply at hand, when it is not in line
	offered *link
	long    *streamed
	due     []due  // receipts
	text    []byte // of one

	pass       bool   // the line goes on as it is
	link       *link  // the upstream of the moment
	toClient   []byte // lines
	toUpstream []byte // lines of the launcher's own
	stopped    []*link
	finished   bool
	poll       bool // the login tool is to be asked
	loggedOut  bool // it says that nobody is signed in
}

// begin makes the turn ready for the next message.
func (t *turn) begin(line []byte) {
	t.line, t.id, t.flaw, t.method, t.call, t.pass, t.poll = line, nil, "", otherMethod, nil, false, false
	t.adapted, t.size = answer{}, 0
	t.toClient, t.toUpstream, t.stopped = t.toClient[:0], t.toUpstream[:0], t.stopped[:0]
}

// decide takes the step and what of it belongs under the lock, which is held.
func (t *turn) decide(e event) {
	s := t.s
	var fx effects
	before := s.state.phase
	s.state, fx = step(s.state, e)
	t.link = s.link
	if s.state.phase != before {
		s.publish()
	}
	for _, f := range fx.list[:fx.n] {
		t.apply(f)
	}
}

// publish tells the reader of the upstream whether its requests and
// notifications go on, so that it need not take the lock for each; the lock is
// held.
func (s *Session) publish() {
	var l *link
	if _, fx := step(s.state, event{kind: upstreamMessage}); fx == do(forward) {
		l = s.link
	}
	s.passing.Store(l)
}

func (t *turn) apply(f effect) {
	switch f {
	case forward:
		t.pass = true
	case track:
		t.track()
	case settle:
		t.settle()
	case adapt:
		t.adapt()
	case answerGreeting, answerPing, answerNoTools, answerResources, answerTemplates, answerStatus:
		t.answer(f)
	case refuseFlaw, refuseAgain, refuseNoStatus, refuseForbidden, refuseChanged, refuseParkedCall, refuseParkedRead, refuseNoResource, refuseParked, refuseEnding:
		t.refuse(f)
	case greetUpstream, readyUpstream, remindUpstream:
		t.speak(f)
	case tellChanged:
		t.tellChanged()
	case takeUpstream:
		t.link = t.offered
		t.s.take(t.offered)
		t.s.publish()
	case refuseUpstream:
		t.stopped = append(t.stopped, t.offered)
	case stopUpstream:
		t.stopped = append(t.stopped, t.s.link)
		if t.s.state.phase == parked {
			t.s.link = nil
		}
	case failWaiting, failWaitingAuth:
		t.failAll(f == failWaitingAuth)
	case armDrain:
		t.s.armDrain()
	case finish:
		t.finished = true
	}
}

// carryOut does what needs no lock, for turns that forward nothing.
func (t *turn) carryOut() {
	for _, l := range t.stopped { // first: the client may not read what is left for it below
		if l != nil {
			t.s.end(l)
		}
	}
	t.answerClient()
	if len(t.toUpstream) > 0 && t.link != nil {
		// Not here: this goroutine may be the one that reads what the upstream
		// has to get rid of before it reads again.
		go t.s.send(t.link, append([]byte(nil), t.toUpstream...))
	}
	t.writeReceipts()
	if t.finished {
		t.finished = false
		if t.link != nil {
			t.s.end(t.link)
		}
		close(t.s.done)
	}
	switch {
	case t.loggedOut:
		t.loggedOut = false
		t.s.Park(t.s.o.Parking)
		if told := t.s.o.SignedOut; told != nil {
			go told()
		}
	case t.poll:
		t.poll = false
		t.s.askLogin()
	}
}

// answerClient writes the lines for the client. At the end of the session one that does not
// read is not waited for.
func (t *turn) answerClient() {
	lines, client := t.toClient, t.s.client
	switch {
	case len(lines) == 0:
	case t.finished:
		t.toClient = nil // it may still be being written
		within(lastWords, func() { _ = client.leave(lines) })
	case client.leave(lines) != nil:
		t.s.clientFailed()
	}
}

// send writes lines of the launcher's own.
func (s *Session) send(l *link, own []byte) { s.sent(l, l.in.leave(own)) }

// sent looks at how writing to an upstream went.
func (s *Session) sent(l *link, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	current := s.link == l
	s.mu.Unlock()
	if !current {
		return
	}
	if err == errStalled {
		s.explain("the connector " + errStalled.Error())
		s.happen(event{kind: upstreamStalled})
		return
	}
	s.end(l) // what it has written is read; its end answers what waits
}

// clientFailed is called when the client no longer reads.
func (s *Session) clientFailed() {
	s.lost.Do(func() { go s.happen(event{kind: clientGone}) })
}

// explain keeps the first reason for the end.
func (s *Session) explain(detail string) {
	s.mu.Lock()
	if s.detail == "" {
		s.detail = detail
	}
	s.mu.Unlock()
}

// armDrain starts the limit anew; the lock is held.
func (s *Session) armDrain() {
	if s.drain == nil {
		s.drain = time.AfterFunc(drainLimit, func() { s.happen(event{kind: drainTimeout}) })
		return
	}
	s.drain.Reset(drainLimit)
}
