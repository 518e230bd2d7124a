package main

import (
	"context"
	"errors"
	"fmt"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
)

// takenBackError is a version that is installed here and that its marketplace took back, with
// the way out of it.
type takenBackError struct {
	err *fetch.RevokedError
	way string
}

func (e *takenBackError) Error() string { return e.err.Error() }
func (e *takenBackError) Unwrap() error { return e.err }

// takenBack is revoked, with the way out: a *takenBackError. It asks no network.
func (a *app) takenBack(home string, m *fetch.Marketplace, r *record.Record) error {
	err := revoked(m, r)
	if back, is := errors.AsType[*fetch.RevokedError](err); is {
		return &takenBackError{back, a.wayOut(home, m, r)}
	}
	return err
}

// wayOut says what to do with a version that was taken back: a newer one that is known here, else
// the one that is kept, else nothing but to remove it. What was taken back itself is no way out.
func (a *app) wayOut(home string, m *fetch.Marketplace, r *record.Record) string {
	if ix, err := m.Index(context.Background(), fetch.Offline); err == nil { // which waits for nothing
		e, err := ix.Lookup(r.Connector)
		if _, gone := ix.Revoked(e); err == nil && e.Version > r.Version && !gone {
			switch heldOf(r, e.Version) {
			case heldPinned:
				return fmt.Sprintf("put a newer version in place with %s unpin %s and %s upgrade %s", program, r.Name, program, r.Name)
			case heldRolledBack:
				return fmt.Sprintf("put the newer version that you went back from in place with %s upgrade %s --again", program, r.Name)
			}
			return fmt.Sprintf("put a newer version in place with %s upgrade %s", program, r.Name)
		}
	}
	if prior, err := r.Prior(); err == nil && prior != nil && !a.isTakenBack(home, prior) {
		return fmt.Sprintf("go back to %s with %s rollback %s", displayVersion(prior), program, r.Name)
	}
	return fmt.Sprintf("remove it with %s uninstall %s, or wait for a newer version", program, r.Name)
}

// isTakenBack tells what mayGoBack refuses.
func (a *app) isTakenBack(home string, r *record.Record) bool {
	if r.Index.URL == "" {
		return false
	}
	m, err := a.remembered(r.Index.URL, home)
	return err == nil && revoked(m, r) != nil
}

// takenBackHere is takenBack for what is installed, by what is remembered; nil: it was not.
func (a *app) takenBackHere(r *record.Record) *takenBackError {
	home, err := a.home()
	if err != nil || r.Index.URL == "" {
		return nil
	}
	m, err := a.remembered(r.Index.URL, home)
	if err != nil {
		return nil // it is no address any more
	}
	back, _ := errors.AsType[*takenBackError](a.takenBack(home, m, r))
	return back
}
