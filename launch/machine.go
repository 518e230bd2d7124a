package launch

// The session, as one pure function. What it knows of the world comes in the
// event; what is to be done goes out in the effects, in their order.
//
//	          wake, not greeted                 initialize
//	parked ───────────────────────────► fresh ────────────► shaking
//	▲ │  ▲                                ▲                 │     │
//	│ │  │ own initialize refused,        └── refused ──────┘     │ answered
//	│ │  │ or the upstream ended                                  ▼
//	│ │  └───────────────────── waking ──── answered ────────►  open
//	│ └──── wake, greeted ──────►  │                              │
//	│                              │ another protocol version     │
//	└────────── park (from fresh, shaking, waking, open) ◄────────┤
//	                               ▼                              │ the client's
//	                            closing ◄── all answered, or ── draining  input ends,
//	                               │        no answer for 3 s,    requests wait
//	                               ▼        or park
//	                             over
//
// Not drawn: the client's end, a stop, a stall, a line that is too long and
// the upstream's end lead to closing and over from everywhere (from parked to
// over at once). In closing the upstream has been told to end and its last
// answers still pass.
type phase uint8

const (
	parked   phase = iota // no upstream: the launcher answers
	waking                // an upstream behind an open session: its initialize is the launcher's own
	fresh                 // an upstream, not initialized
	shaking               // the client's initialize is with the upstream
	open                  // initialized
	draining              // the client's input has ended, answers are waited for
	closing               // the upstream has been told to end
	over
)

// state is all that decides what happens next. It is a value: step gives a new
// one.
type state struct {
	phase     phase
	greeted   bool // the client has an answer to its initialize
	ready     bool // the client has said that it is initialized
	resources bool // the connector has resources of its own
	cause     Cause
}

type eventKind uint8

const (
	clientRequest eventKind = iota
	clientNotification
	clientReply
	clientFlaw // a message that cannot be judged
	clientEnd  // its input has ended
	clientGone // it no longer reads
	upstreamReply
	statusAnswered  // the launcher answered those who read the status
	upstreamMessage // a request or notification of the connector
	upstreamEnd
	upstreamStalled
	upstreamTooLong
	drainTimeout
	wakeUp   // an upstream is there
	parkNow  // the credential is gone
	stopNow  // the program is told to end
	newGrant // what is let through has changed
)

// event is what happened.
type event struct {
	kind   eventKind
	method method
	// of a client's request or notification
	verdict   verdict // on tools/call
	status    bool    // it reads the status resource
	answering bool    // clientFlaw: it may be answered (it is no notification)
	// of an upstream's reply
	own     ownRequest
	refused bool // it is an error
	answer  greeting
	waiting int // requests of the client that have no answer yet, this one taken off
}

// verdict is what the grant says of a tool.
type verdict uint8

const (
	granted verdict = iota
	forbidden
	held // its definition is not the accepted one
)

// greeting is what the reply to initialize says.
type greeting struct {
	resources bool // the connector has resources
	mismatch  bool // not the protocol version that the client was told
}

// ownRequest is a request of the launcher's own.
type ownRequest uint8

const (
	ownNone ownRequest = iota
	ownInitialize
	ownList
	ownLogin
	ownReminder
)

// effect is one thing to do.
type effect uint8

const (
	_ effect = iota
	// with the message at hand
	forward // as it is
	track   // enter the request as one that waits
	settle  // the request has its answer: receipt, and off the ledger
	adapt   // forward the answer as the launcher changes it
	drop
	answerGreeting // initialize of a parked session
	answerPing
	answerNoTools
	answerResources
	answerTemplates
	answerStatus // once the tools are known
	refuseFlaw
	refuseAgain
	refuseNoStatus
	refuseForbidden
	refuseChanged
	refuseParkedCall
	refuseParkedRead
	refuseNoResource
	refuseParked
	refuseEnding
	// with the session
	greetUpstream  // the launcher's own initialize
	readyUpstream  // notifications/initialized
	remindUpstream // what the client has asked of the one before
	tellChanged    // notifications/…/list_changed to the client
	takeUpstream   // the upstream that was delivered is the session's
	refuseUpstream // it is not wanted
	stopUpstream
	failWaiting     // answer every request that waits with connector.internal
	failWaitingAuth // with the code of the parked session
	armDrain
	finish
)

// effects is a short list without an allocation.
type effects struct {
	list [5]effect
	n    int
}

func do(list ...effect) (e effects) {
	e.n = copy(e.list[:], list)
	return e
}

// step is the session.
func step(s state, e event) (state, effects) {
	if s.phase == over {
		if e.kind == wakeUp {
			return s, do(refuseUpstream)
		}
		return s, effects{}
	}
	switch e.kind {
	case clientRequest:
		return stepRequest(s, e)
	case clientNotification, clientReply:
		return stepOneWay(s, e)
	case clientFlaw:
		if e.answering {
			return s, do(refuseFlaw)
		}
		return s, do(drop)
	case upstreamReply:
		return stepReply(s, e)
	case statusAnswered:
		if s.phase == draining && e.waiting == 0 {
			s.phase = closing
			return s, do(stopUpstream)
		}
		return s, effects{}
	case upstreamMessage:
		if s.phase == parked || s.phase == waking && e.method == toolsChanged {
			return s, do(drop)
		}
		return s, do(forward)
	case upstreamEnd:
		return stepUpstreamEnd(s)
	case wakeUp, parkNow, newGrant:
		return stepOutside(s, e)
	}
	return stepEnding(s, e)
}

func stepRequest(s state, e event) (state, effects) {
	switch {
	case s.phase == draining || s.phase == closing:
		return s, do(refuseEnding)
	case e.method == initialize && (s.greeted || s.phase == shaking):
		return s, do(refuseAgain)
	case e.method == toolsCall && e.verdict == forbidden:
		return s, do(refuseForbidden)
	case e.status && !s.greeted:
		return s, do(refuseNoStatus)
	case s.phase == parked || s.phase == waking:
		return stepParked(s, e)
	case e.method == toolsCall && e.verdict == held:
		return s, do(refuseChanged)
	case e.status:
		return s, do(track, answerStatus)
	case e.method == initialize:
		s.phase = shaking
	case s.greeted && !s.resources: // only the status is there, and the connector knows nothing of it
		switch e.method {
		case resourcesList:
			return s, do(answerResources)
		case resourceTemplates:
			return s, do(answerTemplates)
		case resourcesRead:
			return s, do(refuseNoResource)
		}
	}
	return s, do(track, forward)
}

func stepParked(s state, e event) (state, effects) {
	switch {
	case e.status:
		return s, do(track, answerStatus)
	case e.method == initialize:
		s.greeted = true
		return s, do(answerGreeting)
	case e.method == ping:
		return s, do(answerPing)
	case e.method == toolsList:
		return s, do(answerNoTools)
	case e.method == resourcesList:
		return s, do(answerResources)
	case e.method == toolsCall:
		return s, do(refuseParkedCall)
	case e.method == resourcesRead:
		return s, do(refuseParkedRead)
	}
	return s, do(refuseParked)
}

// stepOneWay is for what nobody answers.
func stepOneWay(s state, e event) (state, effects) {
	if e.kind == clientNotification {
		if e.method == initialized {
			s.ready = true
		}
		if e.method == initialize || e.method == toolsCall && e.verdict != granted {
			return s, do(drop)
		}
	}
	if s.phase == parked || s.phase == waking || s.phase == closing {
		return s, do(drop)
	}
	return s, do(forward)
}

func stepReply(s state, e event) (state, effects) {
	switch {
	case e.own == ownInitialize:
		return stepWoken(s, e)
	case e.own != ownNone:
		return s, do(settle)
	case s.phase == parked || s.phase == waking:
		return s, do(drop)
	}
	out := do(adapt, settle)
	if e.method == initialize && s.phase == shaking {
		if s.phase = fresh; !e.refused {
			s.phase, s.greeted, s.resources = open, true, e.answer.resources
		}
	}
	if s.phase == draining && e.waiting == 0 {
		s.phase = closing
		out = do(adapt, settle, stopUpstream)
	}
	return s, out
}

// stepWoken is for the answer to the launcher's own initialize.
func stepWoken(s state, e event) (state, effects) {
	switch {
	case s.phase != waking:
		return s, do(settle)
	case e.refused:
		s.phase = parked
		return s, do(settle, stopUpstream)
	case e.answer.mismatch:
		s.phase, s.cause = closing, RestartClient
		return s, do(settle, stopUpstream)
	}
	s.phase, s.resources = open, e.answer.resources
	if s.ready {
		return s, do(settle, readyUpstream, remindUpstream, tellChanged)
	}
	return s, do(settle, remindUpstream, tellChanged)
}

func stepUpstreamEnd(s state) (state, effects) {
	switch s.phase {
	case parked:
		return s, effects{}
	case waking:
		s.phase = parked
		return s, do(failWaitingAuth, stopUpstream)
	case closing:
	default:
		s.cause = UpstreamEnded
	}
	s.phase = over
	return s, do(failWaiting, finish)
}

// stepOutside is for what the rest of the program decides.
func stepOutside(s state, e event) (state, effects) {
	switch {
	case e.kind == newGrant:
		if s.phase == open {
			return s, do(tellChanged)
		}
		return s, effects{}
	case e.kind == wakeUp && s.phase == parked && s.greeted:
		s.phase = waking
		return s, do(takeUpstream, greetUpstream)
	case e.kind == wakeUp && s.phase == parked:
		s.phase = fresh
		return s, do(takeUpstream)
	case e.kind == wakeUp:
		return s, do(refuseUpstream)
	case s.phase == parked || s.phase == closing:
		return s, effects{}
	case s.phase == draining: // nobody is left to sign in for: what waits is told why it gets no answer
		s.phase = closing
		return s, do(failWaitingAuth, stopUpstream)
	}
	shown := s.phase == open
	s.greeted = s.greeted || s.phase == shaking // its initialize is answered as a parked one
	s.phase = parked
	if shown {
		return s, do(failWaitingAuth, stopUpstream, tellChanged)
	}
	return s, do(failWaitingAuth, stopUpstream)
}

// stepEnding is for what ends the session.
func stepEnding(s state, e event) (state, effects) {
	if s.phase == closing {
		return s, effects{}
	}
	if s.phase == parked {
		s.phase, s.cause = over, causeOf(e.kind)
		return s, do(failWaitingAuth, finish)
	}
	switch e.kind {
	case clientEnd:
		if e.waiting > 0 && s.phase != waking {
			s.phase = draining
			return s, do(armDrain)
		}
	case drainTimeout:
		if s.phase != draining {
			return s, effects{}
		}
		s.phase = closing
		return s, do(stopUpstream)
	}
	s.phase, s.cause = closing, causeOf(e.kind)
	if e.kind == upstreamStalled || e.kind == upstreamTooLong {
		return s, do(failWaiting, stopUpstream)
	}
	return s, do(stopUpstream)
}

func causeOf(k eventKind) Cause {
	switch k {
	case stopNow:
		return Stopped
	case upstreamStalled:
		return UpstreamStalled
	case upstreamTooLong:
		return LineTooLong
	}
	return ClientEnded
}
