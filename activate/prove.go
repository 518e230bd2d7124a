package activate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/manifest"
)

// proof is what prove found out.
type proof struct {
	state   record.State
	outcome Outcome
	failed  error             // why it is only pending
	left    bool              // the person left the sign-in with Ctrl-C
	probe   *record.Probe     // nil when saved without one
	verify  *record.VerifyRef // what the record keeps saying when nothing ran
}

// prove tries the values until they pass, or the person decides otherwise.
// Nothing is stored here.
func (a *Activator) prove(ctx context.Context, t *trial, ask, skipVerify bool) (proof, error) {
	for {
		if ask && a.Person != nil && len(t.values.fields) > 0 {
			if err := a.fill(ctx, t); err != nil {
				return proof{}, err
			}
		}
		t.values.applyDefaults()
		if missing := t.values.missing(); len(missing) > 0 {
			return proof{}, &MissingError{Name: t.name, Fields: missing}
		}
		p, err := a.signAndTry(ctx, t, skipVerify)
		if err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return proof{}, context.Cause(ctx)
		}
		if a.Person == nil || !isFailure(err) {
			return proof{}, err
		}
		if errors.Is(err, form.ErrAborted) { // Ctrl-C leaves it not signed in (format.md section 7)
			p.state, p.failed, p.left = record.Unauthorized, err, true
			return p, nil
		}
		decision, derr := a.Person.Decide(ctx, t.failure(err))
		if derr != nil {
			return proof{}, derr
		}
		switch decision {
		case Edit, Retry, SignInAgain:
			ask, t.signAnew = decision == Edit, t.signAnew || decision == SignInAgain
		case GrantAll:
			ask = false
			t.grants = append(t.grants, Relaxations(err)...)
		case SavePending:
			p.state, p.failed = stateAfter(err), err
			return p, nil
		default:
			return proof{}, err
		}
	}
}

// firstForm tells whether the form is shown before anything is tried, and notes which
// fields it asks for.
func (r *Request) firstForm(t *trial) bool {
	ask := r.Ask
	if ask == nil {
		ask = toAsk(t.values.fields, r.Given, r.Plan.Brief)
	}
	if len(ask) > 0 && (r.Ask != nil || r.Plan.Brief) {
		t.only = ask
	}
	return len(ask) > 0
}

// toAsk names the fields that a person has to be asked for: those that were given no
// value, and with brief only those that cannot do without.
func toAsk(fields []manifest.Field, given map[string]Given, brief bool) (names []string) {
	for _, f := range fields {
		if _, ok := given[f.Name]; !ok && (!brief || f.Required && (f.Secret || f.Default == "")) {
			names = append(names, f.Name)
		}
	}
	return names
}

// isFailure tells what a person can decide about, the connector said no or did
// not come up, from what they cannot mend by other values.
func isFailure(err error) bool {
	var refused *RefusedError
	var probe *ProbeError
	var signIn *SignInError
	return errors.As(err, &refused) || errors.As(err, &probe) || errors.As(err, &signIn) || isSignInFailure(err)
}

// stateAfter is the state of what is saved after a failure.
func stateAfter(err error) record.State {
	var signIn *SignInError
	if errors.As(err, &signIn) {
		return record.Unauthorized
	}
	return record.Pending
}

// try signs in, where a connector does that, and runs verify and the probe once. On
// failure the proof holds what is known so far, for saving as pending.
func (a *Activator) try(ctx context.Context, t *trial, skipVerify bool) (proof, error) {
	p := proof{state: record.Ready}
	if err := a.freshen(ctx, t); err != nil {
		return p, err
	}
	if err := a.makeHome(t.name); err != nil {
		return p, err
	}
	hand, err := a.handOver(t)
	if err != nil {
		return p, err
	}
	defer hand.remove()
	t.values.folder = hand.folder()
	if signsInByQR(t.manifest) {
		probe, signedIn, err := a.signIn(ctx, t)
		p.probe = probe
		if err != nil {
			return p, err
		}
		if !signedIn {
			p.state, p.outcome = record.Unauthorized, Outcome{Message: "not tested: nobody is signed in"}
			return p, nil
		}
	}
	if skipVerify {
		p.outcome = Outcome{Message: "verify was skipped by --no-verify"}
	} else {
		if t.manifest.Verify != nil {
			a.say("verifying (at most %d s): %s", int(t.manifest.Verify.Timeout.Seconds()), form.Clean(t.manifest.Verify.Command))
		}
		var err error
		if p.outcome, err = a.verify(ctx, t); err != nil {
			return p, err
		}
		if p.outcome.Ran && !p.outcome.OK {
			asked := slices.ContainsFunc(t.values.fields, func(f manifest.Field) bool { return f.Required })
			return p, &RefusedError{Name: t.name, Outcome: p.outcome, Asked: asked || t.values.cred != nil}
		}
	}
	if p.outcome.Ran {
		a.say("verified in %s: %s", roughly(p.outcome.Elapsed), strings.TrimSpace(p.outcome.Message))
	} else {
		a.say("%s", p.outcome.Message)
	}
	if p.probe != nil { // the sign-in has asked
		return p, nil
	}
	a.say("starting the server once, to list its tools")
	done := a.busy("starting", probeLimit)
	p.probe, err = a.probe(ctx, t)
	done()
	return p, err
}
