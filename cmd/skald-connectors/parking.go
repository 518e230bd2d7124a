package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/launch"
)

// parkingOf says why nothing runs, and what to run about it.
func parkingOf(start *activate.Start, failed error) launch.Parking {
	p := launch.Parking{State: "unauthorized", Code: launch.AuthRequired}
	name := start.Record.Name
	var (
		used *activate.InUseError
		gone *record.NotInstalledError
	)
	switch {
	case errors.As(failed, &gone):
		p.Message = "connector " + name + " was uninstalled"
	case errors.As(failed, &used):
		p.Message = fmt.Sprintf("connector %s can have one session at a time, and another one has it%s; this one goes on when that one ends", name, inParentheses(used.Holder))
	case failed != nil:
		p.Message = fmt.Sprintf("connector %s cannot be started: %s; run: %s verify %s", name, words(failed), program, name)
	case start.Waiting != nil:
		p.Message = fmt.Sprintf("the sign-in of connector %s could not be renewed, and this is tried again: %s", name, words(start.Waiting))
	case start.Locked != nil:
		p.Message = fmt.Sprintf("the key store with the credentials of connector %s is locked; run: %s unlock", name, program)
	case start.State == record.Expired:
		p.State, p.Code = "expired", launch.AuthExpired
		p.Message = fmt.Sprintf("the credentials of connector %s have expired; run: %s auth %s", name, program, name)
	case start.State == record.Pending:
		p.Message = fmt.Sprintf("connector %s has not passed its test yet; run: %s verify %s", name, program, name)
	default:
		p.Message = fmt.Sprintf("connector %s has no credentials; run: %s auth %s", name, program, name)
	}
	return p
}

func parkedWord(start *activate.Start) string {
	switch {
	case start.Locked != nil:
		return "parked: the key store is locked"
	case start.Waiting != nil:
		return "parked: its sign-in could not be renewed now"
	case start.Parked():
		return "parked: " + string(start.State)
	}
	return ""
}

// isQR tells a connector that a phone signs in: it has one live upstream, and tools
// for us that are not the client's (launcher.md section 4).
func isQR(rec *record.Record) bool { return rec.Auth.Type == "qr" }

// inParentheses is a text in parentheses; "" stays "".
func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// signedOutWait bounds the wait for another command that works on the record.
const signedOutWait = 10 * time.Second

// signedOut writes down what the connector says, so that list and the next start
// know it. Who has signed in again since is not touched.
func (s *served) signedOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signedOutWait)
	defer cancel()
	s.noteLine("it says that nobody is signed in any more; the session is parked")
	if err := s.act.SignedOut(ctx, s.start.Record); err != nil {
		s.noteLine("its record still says that it is signed in: %v", err)
	}
}
