// Package pairing signs a connector in by a QR code: the connector's own tool login_status is asked until a phone has read
// the code that it offers (format.md section 7, "QR"). What decides is one pure function, step; Pairing.Run around it only
// asks, waits and shows.
//
// It starts no process and stores nothing: the session that pairing makes is the connector's, in its own files.
package pairing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skald-connectors/form"
	"skald-connectors/internal/qrcode"
)

// The tools of a connector with auth.type qr. They are for this program, not for a client.
const (
	StatusTool = "login_status"
	LogoutTool = "logout"
)

const (
	// pollPause is the time between two questions (format.md section 7).
	pollPause = 2500 * time.Millisecond
	// lookPause is the same where it is only asked whether there is a session.
	lookPause = 250 * time.Millisecond
	// scanLimit is the time that a person has to read the code (format.md section 7).
	scanLimit = 5 * time.Minute
	// oddLimit is how many answers in a row may make no sense: half a minute of them is no hiccup.
	oddLimit = 12
	// resetLimit is how many times in a row a connector may say that it is logged out after its logout tool was called
	// to begin anew.
	resetLimit = 12
)

// Kind says how a pairing ended without a session.
type Kind int

const (
	TimedOut  Kind = iota // no phone has read the code
	LoggedOut             // the connector says logged_out and stays so
	Confused              // its answers make no sense
	Unseen                // it wants a code read, and nobody is there to do it
	Stuck                 // it offered no code and did not get ready
)

// Error is a pairing that ended without a session. Detail is text of the connector's, cleaned.
type Error struct {
	Kind   Kind
	Detail string
}

func (e *Error) Error() string {
	text := map[Kind]string{
		TimedOut:  fmt.Sprintf("pairing: no phone has read the code within %d minutes", int(scanLimit.Minutes())),
		LoggedOut: "pairing: the connector says that it was logged out, and offers no new code",
		Confused:  "pairing: the connector's answers make no sense",
		Unseen:    "pairing: a phone has to read a code, and there is no terminal to show it on",
		Stuck:     "pairing: the connector did not get ready, and offered no code",
	}[e.Kind]
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Server is a connector that has been started.
type Server interface {
	// Call calls a tool without arguments and gives the result of tools/call as JSON. An error ends the pairing.
	Call(ctx context.Context, tool string) ([]byte, error)
}

// Pairing is one try to pair.
type Pairing struct {
	Server Server
	// Show shows what a person is to see; nil: nobody is there, and a code that would have to be read is an error.
	Show func(form.QRView)
	Now  func() time.Time
	// Wait returns after the time, or with the context's cause.
	Wait  func(context.Context, time.Duration) error
	Limit time.Duration // 0 = 5 minutes, as format.md section 7 says
}

// Run pairs, and returns when the connector is ready. scanned tells that it was not so from the start. Errors: *Error,
// the server's, the context's cause.
func (p *Pairing) Run(ctx context.Context) (scanned bool, err error) {
	began, limit := p.Now(), p.Limit
	if limit == 0 {
		limit = scanLimit
	}
	pause := pollPause
	if p.Show == nil {
		pause = lookPause
	}
	s, todo := step(state{}, event{kind: evBegin})
	for {
		var next event
		for _, e := range todo {
			switch e.kind {
			case doShow:
				p.show(e.view)
			case doAsk, doReset:
				next, err = p.ask(ctx, e.kind)
			case doRest:
				next, err = event{kind: evRested}, p.Wait(ctx, pause)
			case doEnd:
				return s.scanned, e.err
			}
			if err != nil {
				return s.scanned, err
			}
		}
		next.late = p.Now().Sub(began) >= limit
		next.alone = p.Show == nil
		s, todo = step(s, next)
	}
}

func (p *Pairing) show(v form.QRView) {
	if p.Show != nil {
		p.Show(v)
	}
}

// ask asks the connector, or tells it to begin anew.
func (p *Pairing) ask(ctx context.Context, kind effectKind) (event, error) {
	tool := StatusTool
	if kind == doReset {
		tool = LogoutTool
	}
	result, err := p.Server.Call(ctx, tool)
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return event{kind: evOdd, detail: form.Clean(refused.Message)}, nil
	case err != nil:
		return event{}, err
	case kind == doReset:
		return event{kind: evDone}, nil
	}
	return readResult(result), nil
}

// Refusal is an answer of the server's that is an error of the protocol. It is odd, and does not end the pairing at
// once: a server may not be up yet.
type Refusal struct{ Message string }

func (e *Refusal) Error() string { return "the server answered with an error: " + e.Message }

// viewOf is what a code looks like that the connector sent: read and drawn anew, or its picture.
func viewOf(r reply) form.QRView {
	v := form.QRView{Note: r.message}
	switch {
	case r.text != "":
		if code, err := qrcode.Encode(r.text); err == nil {
			v.Code = code
		}
	case r.image != nil:
		code, err := qrcode.Read(r.image)
		if err != nil {
			v.Picture = r.image
		}
		v.Code = code
	}
	return v
}
