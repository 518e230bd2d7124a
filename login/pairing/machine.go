package pairing

import (
	"bytes"

	"skald-connectors/form"
)

// The pairing, as one pure function. What it knows of the world comes in the event; what is to be done goes out in the
// effects, in their order.
//
//	         need_scan            connecting           ready
//	begin ──────────────► scan ──────────────► joining ──────► (end: paired)
//	  │  ▲                 │ ▲                    │
//	  │  └── odd answers ──┘ └──── need_scan ─────┘
//	  │ logged_out: the logout tool is called once, then it is asked again
//	  └────────────────────► (end: an error) from everywhere: late, too many odd answers, still logged out
//
// With nobody there it is only asked: need_scan and logged_out are the end.
type phase uint8

const (
	starting phase = iota // nothing is known, or it is connecting with a session that it has
	scanning              // a code is shown, or awaited
	joining               // a phone has read it
)

// state is all that decides what happens next; a value.
type state struct {
	phase   phase
	scanned bool // a code was asked for: the session is a new one
	resets  int  // answers logged_out since the logout tool was called; 0 = not called
	odd     int  // answers in a row that make no sense
	reply   reply
	view    form.QRView // what is shown
}

type eventKind uint8

const (
	evBegin  eventKind = iota
	evAnswer           // login_status has answered
	evOdd              // it has answered with something that makes no sense
	evRested           // the pause is over
	evDone             // logout has answered
)

// event is what happened.
type event struct {
	kind   eventKind
	reply  reply
	detail string // evOdd
	late   bool   // the time is up
	alone  bool   // nobody is there to read a code
}

// reply is a readable answer of login_status.
type reply struct {
	state   string // connecting, need_scan, ready, logged_out
	text    string // what the code says, where it is sent as text
	image   []byte // the image of the code
	message string // foreign text, cut, not cleaned
}

type effectKind uint8

const (
	doAsk effectKind = iota
	doReset
	doRest
	doShow
	doEnd
)

type effect struct {
	kind effectKind
	view form.QRView // doShow
	err  error       // doEnd
}

// What is said, beside the connector's own words.
const (
	saysStarting = "The connector is starting."
	saysWaiting  = "Waiting for the code."
	saysScan     = "Read this code with your phone. Waiting for it."
	saysPicture  = "Read the code in the picture with your phone. Waiting for it."
	saysJoining  = "The code was read, or has run out: signing in, or getting a new one."
	saysReset    = "It was logged out. Waiting for a new code."
)

// step decides what follows from an event.
func step(s state, e event) (state, []effect) {
	switch {
	case e.kind == evBegin:
		return s.showing(saysStarting, reply{}, effect{kind: doAsk})
	case e.kind == evAnswer && e.reply.state == "ready":
		return s, []effect{{kind: doEnd}} // also in the last moment
	case e.late && s.scanned:
		return s, end(TimedOut, s.reply.message)
	case e.late:
		return s, end(Stuck, s.reply.message)
	case e.kind == evRested:
		return s, []effect{{kind: doAsk}}
	case e.kind == evDone:
		return s, []effect{{kind: doRest}}
	case e.kind == evOdd:
		if s.odd++; s.odd >= oddLimit {
			return s, end(Confused, e.detail)
		}
		return s, []effect{{kind: doRest}}
	}
	s.odd = 0
	return s.answered(e)
}

// answered is step for a readable answer that is not ready.
func (s state) answered(e event) (state, []effect) {
	rest := effect{kind: doRest}
	switch e.reply.state {
	case "logged_out":
		if s.resets++; s.resets > resetLimit || e.alone { // alone, it is only asked
			return s, end(LoggedOut, e.reply.message)
		}
		s.phase = starting
		if s.resets == 1 {
			return s.showing(saysReset, e.reply, effect{kind: doReset})
		}
		return s.showing(saysReset, e.reply, rest)
	case "need_scan":
		if e.alone {
			return s, end(Unseen, "")
		}
		s.phase, s.scanned, s.resets = scanning, true, 0
		return s.showing(saysScan, e.reply, rest)
	}
	says := saysStarting
	if s.phase != starting {
		s.phase, says = joining, saysJoining
	}
	return s.showing(says, e.reply, rest)
}

// showing shows a reply where it is not what is shown already: a code that stays the same is not made anew.
func (s state) showing(says string, r reply, after effect) (state, []effect) {
	v := form.QRView{Note: r.message}
	if s.phase == scanning {
		if v = s.view; r.text != s.reply.text || !bytes.Equal(r.image, s.reply.image) || v.Code == nil && v.Picture == nil {
			v = viewOf(r)
		}
		v.Note = r.message
		switch {
		case v.Picture != nil:
			says = saysPicture
		case v.Code == nil:
			says = saysWaiting
		}
	}
	v.State = says
	same := v.State == s.view.State && v.Note == s.view.Note && v.Code == s.view.Code && bytes.Equal(v.Picture, s.view.Picture)
	s.reply, s.view = r, v
	if same {
		return s, []effect{after}
	}
	return s, []effect{{kind: doShow, view: v}, after}
}

func end(kind Kind, detail string) []effect {
	return []effect{{kind: doEnd, err: &Error{Kind: kind, Detail: form.Clean(detail)}}}
}
