package main

import (
	"context"
	"net/http"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/launch"
	"skald-connectors/sandbox"
)

// runningUpstream is a started connector, for the end of the session.
type runningUpstream struct {
	process *sandbox.Process // nil: a remote one
	stopped chan struct{}    // closed when the session is done with it
}

func (r *runningUpstream) live() bool {
	select {
	case <-r.stopped:
		return false
	default:
		return true
	}
}

// connect starts the connector, or makes the connection to a remote one.
func (s *served) connect(ctx context.Context, start *activate.Start, kill <-chan struct{}) (*launch.Upstream, *runningUpstream, error) {
	release := func() {}
	if isQR(start.Record) {
		var err error
		if release, err = s.act.HoldLive(s.name); err != nil {
			return nil, nil, err
		}
	}
	run := &runningUpstream{stopped: make(chan struct{})}
	if start.Address != "" {
		way, renew := start.SignedIn(fetch.Patient(s.app.getenv))
		state := record.Unauthorized
		if renew != nil {
			state = record.Expired
		}
		up := launch.Remote{
			URL: start.Address, Header: start.Header, Legacy: start.Legacy, Redactor: start.Redactor,
			Client: &http.Client{Transport: way}, Refresh: renew,
			Refused: func() { s.sess.Park(parkingOf(&activate.Start{Record: start.Record, State: state}, nil)) },
		}.Connect()
		stop := up.Stop
		up.Stop = func() { stop(); close(run.stopped) }
		return up, run, nil
	}
	// The ladder ends it, not the context: a signal climbs the same steps.
	p, err := start.Box.Start(context.WithoutCancel(ctx), start.Policy, start.Command)
	if err != nil {
		release()
		start.Done()
		return nil, nil, &activate.ProbeError{Connector: start.Record.Connector, Err: err}
	}
	run.process = p
	return &launch.Upstream{Input: p.Stdin, Output: p.Stdout, Errors: p.Stderr, Redactor: start.Redactor, Stop: func() {
		defer close(run.stopped)
		over := make(chan struct{})
		go func() {
			select {
			case <-kill:
				p.Close(sandbox.Ladder{})
			case <-over:
			}
		}()
		end := p.Close(sessionLadder)
		start.Done()
		close(over)
		release()
		for _, d := range end.Denied {
			s.note(start.Redactor, "the sandbox kept from it: %s %s (%s)", d.Kind, d.Target, d.Why)
		}
	}}, run, nil
}
