package activate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// manifestName is the shipped file that says what runs.
const manifestName = "connector.json"

// Manifest reads the manifest of an installed version, after its files were
// hashed again (which also bounds its size). Errors: *install.ChangedError.
func (a *Activator) Manifest(rec *record.Record) (*manifest.Manifest, error) {
	if err := a.Store.Check(rec.Ref(), rec.Pins()); err != nil {
		return nil, err
	}
	return a.checkedManifest(rec)
}

// checkedManifest reads the manifest of a version folder that was just checked.
func (a *Activator) checkedManifest(rec *record.Record) (*manifest.Manifest, error) {
	data, err := os.ReadFile(filepath.Join(a.Store.VersionDir(rec.Ref()), manifestName))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", rec.Name, err)
	}
	m, _, err := manifest.ParseManifest(data, manifestName)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", rec.Name, err)
	}
	return m, nil
}

// resume sets an existing activation up: its manifest and its stored values.
// retype says that values which can no longer be read will be given again.
func (a *Activator) resume(ctx context.Context, rec *record.Record, retype bool) (*trial, error) {
	m, err := a.runnable(rec)
	if err != nil {
		return nil, err
	}
	hs, err := a.secretsOf(ctx, rec)
	var lost *keystore.Error
	if retype && errors.As(err, &lost) && lost.Kind == keystore.NotFound {
		a.say("the stored secrets of %q are gone; type them again", rec.Name)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	t := &trial{name: rec.Name, manifest: m, files: rec.Pins(), values: newValues(m), dir: a.Store.WorkDir(rec.Name, rec.Ref()), deps: rec.Deps}
	t.values.load(rec, hs)
	t.grants, t.withheld = accesses(rec.Sandbox.Grants), accesses(rec.Sandbox.Withheld)
	return t, nil
}

// makeReady brings an existing activation to where something of it can run: the
// shipped bytes in its work folder, the interpreters of now, and the packages
// that fit them. The trial is dropped by whoever called it.
func (a *Activator) makeReady(ctx context.Context, t *trial, rec *record.Record) (err error) {
	if t.box, err = a.OpenSandbox(modeOf(rec)); err != nil {
		return err
	}
	if signsInByQR(t.manifest) && t.live == nil { // a second upstream would end the session of the first
		if t.live, err = a.HoldLive(rec.Name); err != nil {
			return err
		}
	}
	if err := a.Store.Heal(ctx, rec.Name, rec.Ref(), t.files); err != nil {
		return err
	}
	if t.runtimes, err = a.findRuntimes(ctx, t.manifest, t.files, len(rec.Deps) == 0); err != nil {
		return err
	}
	return a.resumeDeps(ctx, t, rec)
}

// replace commits what was proved in place of the present record.
func (a *Activator) replace(ctx context.Context, t *trial, p proof, present *record.Record) (*record.Record, error) {
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := a.removeFromPrior(ctx, t, present); err != nil {
		return nil, err
	}
	next := *present
	if err := a.commit(ctx, t, p, &next, present); err != nil {
		return nil, err
	}
	return &next, nil
}

// NothingGivenError says that configure was told nothing to change and nobody
// can be asked.
type NothingGivenError struct {
	Name   string
	Fields []manifest.Field
}

func (e *NothingGivenError) Error() string {
	return fmt.Sprintf("configuring %q: nothing to change was given", e.Name)
}

// ConfigureOptions are what besides values can be changed. Mode "" keeps the
// sandbox mode.
type ConfigureOptions struct {
	NoVerify         bool
	Mode             string
	Grants, Withheld []Access
}

func (o ConfigureOptions) changes() bool {
	return o.Mode != "" || len(o.Grants)+len(o.Withheld) > 0
}

// apply puts the options in force for the trial: a grant takes back what was
// withheld before, and the reverse.
func (o ConfigureOptions) apply(t *trial, present *record.Record) {
	if o.Mode != "" {
		present.Sandbox.Mode = o.Mode
	}
	without := func(list, drop []Access) []Access {
		return slices.DeleteFunc(list, func(x Access) bool { return slices.Contains(drop, x) })
	}
	t.grants = append(without(t.grants, o.Withheld), o.Grants...)
	t.withheld = append(without(t.withheld, o.Grants), o.Withheld...)
}

// Configure asks for the values of an activation again, proves them and
// replaces vault and record. Until then the old values stay in force.
func (a *Activator) Configure(ctx context.Context, name string, given map[string]Given, o ConfigureOptions) (rec *record.Record, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) (err error) {
		if err := a.checkGrants(cmp.Or(o.Mode, modeOf(present)), o.Grants); err != nil {
			return err
		}
		t, err := a.resume(ctx, present, true)
		if err != nil {
			return err
		}
		if _, err := t.values.take(given); err != nil {
			return err
		}
		changed := len(given) > 0 || o.changes()
		if a.Person == nil && !changed && len(t.values.fields) > 0 {
			return &NothingGivenError{Name: name, Fields: t.values.fields}
		}
		defer t.drop()
		t.sign = signNote
		defer func() {
			if err != nil {
				a.abandon(ctx, t)
			}
		}()
		o.apply(t, present)
		if err := a.makeReady(ctx, t, present); err != nil {
			return err
		}
		p, err := a.prove(ctx, t, !changed, o.NoVerify)
		if err != nil {
			return err
		}
		a.sayIdle(t, o.Grants, o.Withheld)
		rec, err = a.replace(ctx, t, p, present)
		return err
	})
	return rec, err
}

// Verify runs verify and the probe on the stored values and records the
// outcome. A pass makes a pending activation ready; a failure changes no state
// (exit 3 or 5), since the values may be right and the service down, but for a
// connector that says that nobody is signed in. rec is not nil when the outcome was
// recorded.
func (a *Activator) Verify(ctx context.Context, name string) (rec *record.Record, outcome Outcome, err error) {
	return a.verifyAs(ctx, name, func(*trial) {})
}

// verifyAs is Verify on a trial that was prepared first.
func (a *Activator) verifyAs(ctx context.Context, name string, prepare func(*trial)) (rec *record.Record, outcome Outcome, err error) {
	var failed error
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		t, err := a.resume(ctx, present, false)
		if err != nil {
			return err
		}
		prepare(t)
		if missing := t.values.missing(); len(missing) > 0 {
			return &UnfilledError{MissingError{Name: name, Fields: missing}}
		}
		if t.values.lacksSignIn(t.manifest) {
			return &UnsignedError{Name: name, Provider: present.Auth.Provider}
		}
		defer t.drop()
		if err := a.makeReady(ctx, t, present); err != nil {
			return err
		}
		var p proof
		p, failed = a.try(ctx, t, false)
		outcome = p.outcome
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, over := errors.AsType[*login.ExpiredError](failed); over {
			return a.recordExpired(present, failed)
		}
		if failed != nil && (!isFailure(failed) || isSignInFailure(failed)) {
			return failed // it could not be run; that says nothing of the values
		}
		rec, err = a.recordVerify(ctx, t, p, present, failed)
		return err
	})
	if err == nil {
		err = failed
	}
	return rec, outcome, err
}

// UnfilledError says that stored values are missing, which only configure can
// ask for.
type UnfilledError struct{ MissingError }

func (a *Activator) recordVerify(ctx context.Context, t *trial, p proof, present *record.Record, failed error) (*record.Record, error) {
	return a.rewrite(ctx, present, writeRecord, func(next *record.Record) error {
		next.Verify = a.verifyRef(p.outcome, failed)
		next.Runtimes, next.Deps = t.runtimes, t.deps
		t.recordSandbox(a, next) // the back end may be another one since
		if unpaired(failed) {
			next.AuthState = record.Unauthorized
		}
		if failed != nil {
			return nil
		}
		next.AuthState = p.state
		return a.acceptTools(t, p.probe, next, present)
	})
}

// verifyRef is what the record says of an outcome.
func (a *Activator) verifyRef(o Outcome, failed error) record.VerifyRef {
	ref := record.VerifyRef{Ran: o.Ran, OK: o.OK && failed == nil, Message: form.Clean(o.Message), ElapsedMS: o.Elapsed.Milliseconds()}
	if o.Ran {
		ref.When = a.Now().UTC()
	}
	return ref
}
