package activate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/login/pairing"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

const (
	// lookLimit bounds the question whether there is a session: a connector that has
	// one needs some seconds to connect with it.
	lookLimit = 45 * time.Second
	// liveWait bounds the wait for a session that was told to end: its ladder takes
	// seven seconds (launcher.md section 5), noticing it half a second.
	liveWait = 20 * time.Second
)

// pairLadder ends a server that has just made a session, and may be writing it.
var pairLadder = sandbox.Ladder{Stdin: 8 * time.Second, Term: 2 * time.Second}

// signsInByQR tells a connector whose session a phone makes (format.md section 7).
func signsInByQR(m *manifest.Manifest) bool { return m.Auth.Type == "qr" }

// signing says what is done about the sign-in of a connector that has one.
type signing int

const (
	signCheck signing = iota // it has to be signed in already
	signNote                 // whether it is, is noted
	signAsk                  // a person signs in
	signLater                // nothing: its session is parked until auth
)

// SignInError says that a connector is not signed in. Err is a *pairing.Error, or
// form.ErrLeft or form.ErrAborted: the person left.
type SignInError struct {
	Name string
	Err  error
}

func (e *SignInError) Error() string {
	if e.left() {
		return fmt.Sprintf("%q is not signed in: you left before a phone had read the code", e.Name)
	}
	return fmt.Sprintf("%q is not signed in: %v", e.Name, e.Err)
}

func (e *SignInError) Unwrap() error { return e.Err }

func (e *SignInError) left() bool {
	return errors.Is(e.Err, form.ErrLeft) || errors.Is(e.Err, form.ErrAborted)
}

// unpaired tells the error that says: there is no session, and nothing else is
// wrong.
func unpaired(err error) bool {
	var qr *pairing.Error
	return errors.As(err, &qr) && (qr.Kind == pairing.Unseen || qr.Kind == pairing.LoggedOut)
}

// LeftError says that an activation was installed, but not signed in, since the
// person left with Ctrl-C (format.md section 7).
type LeftError struct{ Name string }

func (e *LeftError) Error() string {
	return fmt.Sprintf("%q is installed, but nobody is signed in: you left before a phone had read the code", e.Name)
}

// signIn brings a qr connector to a session of its own, as the trial says, and lists
// its tools on the way: it has one upstream at a time. Errors: *ProbeError,
// *SignInError, the context's cause.
func (a *Activator) signIn(ctx context.Context, t *trial) (p *record.Probe, signedIn bool, err error) {
	run := func(ctx context.Context, show func(form.QRView)) error {
		u, err := a.startUpstream(ctx, t)
		if err != nil {
			return err
		}
		defer u.end(probeLadder)
		found, err := u.greet()
		if err != nil {
			return u.failed(ctx, err)
		}
		if p = found; t.sign == signLater {
			return nil
		}
		pairing := pairing.Pairing{Server: u, Show: show, Now: a.Now, Wait: pause}
		if show == nil {
			pairing.Limit = lookLimit
		}
		scanned, err := pairing.Run(ctx)
		if err != nil {
			return err
		}
		if t.paired = t.paired || scanned; scanned && show != nil {
			show(form.QRView{State: "Signed in. Letting the connector write its session."})
			u.end(pairLadder)
		}
		signedIn = true
		return nil
	}
	if t.sign == signAsk && a.Person != nil {
		err = a.Person.Pair(ctx, t.name, run)
	} else {
		done := a.busy("asking whether it is signed in", lookLimit)
		err = run(ctx, nil)
		done()
	}
	var qr *pairing.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return p, false, context.Cause(ctx)
	case t.sign == signNote && unpaired(err):
		return p, false, nil
	case errors.As(err, &qr), errors.Is(err, form.ErrLeft), errors.Is(err, form.ErrAborted):
		return p, false, &SignInError{Name: t.name, Err: err}
	}
	return p, signedIn, err
}

// pause waits, or returns the cause of the context's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// signOut calls the connector's logout tool. It is for a session that shall not be.
func (a *Activator) signOut(ctx context.Context, t *trial) error {
	u, err := a.startUpstream(ctx, t)
	if err != nil {
		return err
	}
	defer u.end(pairLadder)
	if _, err := u.greet(); err != nil {
		return u.failed(ctx, err)
	}
	result, err := u.Call(ctx, pairing.LogoutTool)
	if err != nil {
		return err
	}
	if problem := pairing.ToolProblem(result); problem != "" {
		return fmt.Errorf("its tool %s says: %s", pairing.LogoutTool, problem)
	}
	return nil
}

// undoSignIn signs out again what an installation that comes to nothing had signed
// in (cli.md, "The main job", step 6).
func (a *Activator) undoSignIn(ctx context.Context, t *trial) {
	if !t.paired {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	a.say("signing out again")
	if err := a.signOut(ctx, t); err != nil {
		a.say("it could not be signed out: %v; remove it on your phone, from the list of linked devices", err)
	}
}

// SignIn signs an installed qr connector in, and then tests it as Verify does.
// scanned is false where it was signed in already. Errors: *SignInError,
// *InUseError, and those of Verify.
func (a *Activator) SignIn(ctx context.Context, name string) (rec *record.Record, scanned bool, err error) {
	var t *trial
	rec, _, err = a.verifyAs(ctx, name, func(trial *trial) { trial.sign, t = signAsk, trial })
	return rec, t != nil && t.paired, err
}

// SignOut signs an installed qr connector out: its sessions park, its logout tool is
// called, and what it keeps of its session is removed. untold says why the service
// could not be told; the session is gone here all the same.
func (a *Activator) SignOut(ctx context.Context, name string) (untold, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		if err := a.setState(present, record.Unauthorized); err != nil {
			return err
		}
		t, err := a.resume(ctx, present, true)
		if err != nil {
			return err
		}
		if t.live, err = a.waitLive(ctx, name); err != nil {
			return err
		}
		defer t.drop()
		if untold = a.makeReady(ctx, t, present); untold == nil {
			untold = a.signOut(ctx, t)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.step("remove-session")
		return a.Store.ForgetSession(ctx, name)
	})
	return untold, err
}

// setState writes another state into a record. The caller holds the activation's
// lock.
func (a *Activator) setState(rec *record.Record, s record.State) error {
	if rec.AuthState == s {
		return nil
	}
	rec.AuthState, rec.UpdatedAt = s, a.Now().UTC()
	return a.Records().Write(rec)
}

// SignedOut notes that a session was told that nobody is signed in any more. seen is
// the record that the session works with; one that was written since stays.
func (a *Activator) SignedOut(ctx context.Context, seen *record.Record) error {
	return a.onRecord(ctx, seen.Name, func(present *record.Record) error {
		if !present.UpdatedAt.Equal(seen.UpdatedAt) {
			return nil
		}
		return a.setState(present, record.Unauthorized)
	})
}

// InUseError says that a session of a connector that can have only one is open.
type InUseError struct {
	Name   string
	Holder string // "process 4711", or ""
}

func (e *InUseError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("%q is in use by another session", e.Name)
	}
	return fmt.Sprintf("%q is in use by another session (%s)", e.Name, e.Holder)
}

// HoldLive makes this process the one whose upstream of a qr connector is live
// (launcher.md section 4). The error is an *InUseError when another one's is.
func (a *Activator) HoldLive(name string) (release func(), err error) {
	path, err := a.Store.OwnLock("live-" + name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held := false
	by := ""
	release, err = atomicfile.Lock(ctx, path, func(holder string) {
		held, by = true, holder
		cancel()
	})
	if held {
		return nil, &InUseError{Name: name, Holder: by}
	}
	return release, err
}

// waitLive is HoldLive that waits for a session that was told to end.
func (a *Activator) waitLive(ctx context.Context, name string) (func(), error) {
	until := a.Now().Add(liveWait)
	for {
		release, err := a.HoldLive(name)
		var used *InUseError
		if !errors.As(err, &used) || a.Now().After(until) {
			return release, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
