package main

import (
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
)

const (
	// recordPause is the time between two looks at the record: what was done in
	// another terminal is in force within two seconds, the start included.
	recordPause = 400 * time.Millisecond
	// lockedPause is the time between two tries at a locked key store.
	lockedPause = 2 * time.Second
	// usedPause is the time between two looks whether another session has ended.
	usedPause = time.Second
	// waitingPause and longestPause bound the time between two tries at a provider that does not answer.
	waitingPause, longestPause = 5 * time.Second, 5 * time.Minute
)

// recordState is what a look at the record's file sees; a record is replaced by
// a rename, so another file is another state.
type recordState struct {
	info os.FileInfo
}

func (s *served) lookAtRecord() recordState {
	info, err := os.Stat(s.act.Records().Path(s.name))
	if err != nil {
		return recordState{}
	}
	return recordState{info}
}

func (r recordState) same(other recordState) bool {
	if r.info == nil || other.info == nil {
		return r.info == nil && other.info == nil
	}
	return os.SameFile(r.info, other.info) && r.info.ModTime().Equal(other.info.ModTime()) && r.info.Size() == other.info.Size()
}

// follow puts in force what other commands write into the record, until the
// session ends.
func (s *served) follow(ctx context.Context, kill <-chan struct{}) {
	look := time.NewTicker(recordPause)
	defer look.Stop()
	tried, wait := s.app.hooks.now(), waitingPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.out:
			s.signedOut(ctx)
		case <-look.C:
		}
		s.keepHeld()
		now := s.lookAtRecord()
		since := s.app.hooks.now().Sub(tried)
		unlock := s.start.Locked != nil && since >= lockedPause
		if s.start.Waiting == nil {
			wait = waitingPause
		} else if since >= wait {
			unlock, wait = true, min(2*wait, longestPause)
		}
		s.lookAfterSignIn(ctx)
		free := s.used != nil && since >= usedPause
		if again := s.outlived(); now.same(s.seen) && !unlock && !free && !again {
			continue
		}
		tried = s.app.hooks.now()
		s.seen = now
		s.renew(ctx, kill)
	}
}

// outlived parks a session whose credential has stopped working. It is true once when a connector that was parked has ended: what
// was done meanwhile counts then.
func (s *served) outlived() (again bool) {
	live := s.up != nil && s.up.live()
	if live && !s.again && !s.start.Until.IsZero() && !s.app.hooks.now().Before(s.start.Until) {
		s.noteLine("its credential has expired; the session is parked")
		s.again = true
		s.sess.Park(parkingOf(&activate.Start{Record: s.start.Record, State: record.Expired}, nil))
	}
	again = s.again && !live
	s.again = s.again && live
	return again
}

// lookAfterSignIn renews the credential of a running local server when its time comes, beside what else is to be done.
func (s *served) lookAfterSignIn(ctx context.Context) {
	if s.up == nil || !s.up.live() {
		return
	}
	select {
	case at := <-s.renewed: // the last one has ended
		s.renewNext(at)
	default:
	}
	now := s.app.hooks.now()
	if s.renewAt.IsZero() || now.Before(s.renewAt) && now.Before(s.renewBy) {
		return
	}
	s.renewAt = time.Time{}
	start := s.start
	go func() { s.renewed <- start.Renew(ctx) }()
}

func (s *served) renewNext(at time.Time) {
	now := s.app.hooks.now()
	s.renewAt, s.renewBy = at, now.Add(at.Sub(now)) // the latter has the reading of the clock that nobody sets
}

// renew holds the session against the record as it is now.
func (s *served) renew(ctx context.Context, kill <-chan struct{}) {
	live := s.up != nil && s.up.live()
	if live {
		s.renewOpen()
		return
	}
	start, err := s.act.Prepare(ctx, s.name)
	if err != nil {
		if ctx.Err() == nil {
			s.noteLine("it stays parked: %v", err)
			s.sess.Park(parkingOf(s.start, err))
		}
		return
	}
	s.start.Release()
	s.start = start
	s.sess.SetGrant(grantOf(start.Record))
	if start.Parked() {
		s.sess.Park(parkingOf(start, nil))
		return
	}
	up, run, err := s.connect(ctx, start, kill)
	was := s.used
	s.used = nil
	if err != nil {
		if !errors.As(err, &s.used) || was == nil { // else it was said
			s.noteLine("it stays parked: %v", err)
		}
		s.sess.Park(parkingOf(start, err))
		return
	}
	s.noteLine("the session wakes: version %s", displayVersion(start.Record))
	s.up = run
	s.renewNext(start.RenewAt())
	s.sess.Wake(*up)
}

// renewOpen is for a session with a connector: what is let through changes at
// once, what it was started with at its next start, and what is no longer ready
// is parked.
func (s *served) renewOpen() {
	rec, err := s.act.Records().Read(s.name)
	var gone *record.NotInstalledError
	switch {
	case errors.As(err, &gone):
		s.noteLine("it was uninstalled")
		s.sess.Park(parkingOf(s.start, err))
	case err != nil:
		s.noteLine("its record cannot be read: %v", err)
	case rec.AuthState != record.Ready && !s.replaced(rec):
		s.start = &activate.Start{Record: rec, State: rec.AuthState, Redactor: s.start.Redactor, Release: s.start.Release}
		s.again = true
		s.sess.Park(parkingOf(s.start, nil))
	default:
		s.adjust(rec)
	}
}

// replaced tells that the record is of another version than the one that runs, and was
// not proved yet: that is no reason to end a session of the one before.
func (s *served) replaced(rec *record.Record) bool {
	return rec.Digest != s.start.Record.Digest && rec.AuthState == record.Pending
}

// adjust lets through what the record says now. The definitions that count are those
// that were accepted of the version that runs.
func (s *served) adjust(rec *record.Record) {
	now, was := grantOf(rec), grantOf(s.start.Record)
	if runs := s.start.Record; rec.Digest == runs.Digest {
		if rec.Vault != runs.Vault || !reflect.DeepEqual(rec.Env, runs.Env) {
			s.noteLine("it has new settings; they are in force when the client starts it again")
		}
		s.start.Record = rec
	} else {
		if !s.told {
			s.noteLine("version %s was put in place; this session goes on with %s", displayVersion(rec), displayVersion(runs))
		}
		s.told = true
		now.Accepted, runs.Grant = was.Accepted, rec.Grant
	}
	if !reflect.DeepEqual(now, was) {
		s.sess.SetGrant(now)
	}
}

// keepHeld writes down what is held back, unless another version was put in place. The
// log has it too, so a full disk is told there and keeps nobody from working.
func (s *served) keepHeld() {
	err := s.held.flush(func() string {
		rec, err := s.act.Records().Read(s.name)
		if err != nil || rec.Digest != s.start.Record.Digest {
			return ""
		}
		return rec.Digest
	})
	if err != nil {
		s.noteLine("%v", err)
	}
}
