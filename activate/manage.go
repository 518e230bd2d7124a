package activate

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// Manifest reads the manifest of an installed version, after its files were
// hashed again. Errors: *install.ChangedError.
func (a *Activator) Manifest(rec *Record) (*manifest.Manifest, error) {
	if err := a.Store.Check(rec.Ref(), rec.Pins()); err != nil {
		return nil, err
	}
	path := filepath.Join(a.Store.VersionDir(rec.Ref()), "connector.json")
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", rec.Name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, manifest.MaxManifestBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", rec.Name, err)
	}
	m, _, err := manifest.ParseManifest(data, "connector.json")
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", rec.Name, err)
	}
	return m, nil
}

// resume sets an existing activation up for another trial.
func (a *Activator) resume(ctx context.Context, rec *Record) (*trial, error) {
	m, err := a.Manifest(rec)
	if err != nil {
		return nil, err
	}
	hs, err := a.secretsOf(ctx, rec)
	if err != nil {
		return nil, err
	}
	t := &trial{name: rec.Name, manifest: m, files: rec.Pins(), values: newValues(m), dir: a.Store.WorkDir(rec.Name, rec.Ref()), deps: rec.Deps}
	t.values.load(rec, hs)
	noDeps := len(rec.Deps) == 0
	if t.runtimes, err = a.findRuntimes(ctx, m, rec.Pins(), noDeps); err != nil {
		return nil, err
	}
	return t, nil
}

// Configure asks for the values of an activation again, proves them and
// replaces vault and record. Until then the old values stay in force.
func (a *Activator) Configure(ctx context.Context, name string, given map[string]Given, noVerify bool) (*Record, error) {
	return a.change(ctx, name, func(t *trial, rec *Record) (proof, error) {
		if _, err := t.values.take(given); err != nil {
			return proof{}, err
		}
		if err := a.resumeDeps(ctx, t, rec); err != nil {
			return proof{}, err
		}
		if a.Person == nil && len(given) == 0 && len(t.values.fields) > 0 {
			return proof{}, &MissingError{Name: name, Fields: t.values.fields}
		}
		return a.prove(ctx, t, len(given) == 0, noVerify)
	})
}

// change runs one trial on an installed activation under its lock and commits
// what it proved.
func (a *Activator) change(ctx context.Context, name string, do func(*trial, *Record) (proof, error)) (*Record, error) {
	if _, err := a.Records().Read(name); err != nil {
		return nil, err
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	present, err := a.Records().Read(name)
	if err != nil {
		return nil, err
	}
	t, err := a.resume(ctx, present)
	if err != nil {
		return nil, err
	}
	defer t.drop()
	p, err := do(t, present)
	if err != nil {
		return nil, err
	}
	commit, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer commit()
	next := *present
	if err := a.commit(ctx, t, p, &next, present); err != nil {
		return nil, err
	}
	return &next, nil
}

// Verify runs verify and the probe on the stored values and records the
// outcome. A pass makes a pending activation ready; a failure changes no state
// (exit 3 or 5), since the values may be right and the service down.
func (a *Activator) Verify(ctx context.Context, name string) (*Record, Outcome, error) {
	var failed error
	var outcome Outcome
	if _, err := a.Records().Read(name); err != nil {
		return nil, outcome, err
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return nil, outcome, err
	}
	defer unlock()
	present, err := a.Records().Read(name)
	if err != nil {
		return nil, outcome, err
	}
	t, err := a.resume(ctx, present)
	if err != nil {
		return nil, outcome, err
	}
	if missing := t.values.missing(); len(missing) > 0 {
		return nil, outcome, &MissingError{Name: name, Fields: missing}
	}
	defer t.drop()
	if err := a.resumeDeps(ctx, t, present); err != nil {
		return nil, outcome, err
	}
	p, failed := a.try(ctx, t, false)
	outcome = p.outcome
	if ctx.Err() != nil {
		return nil, outcome, context.Cause(ctx)
	}
	commit, err := a.lockCommit(ctx)
	if err != nil {
		return nil, outcome, err
	}
	defer commit()
	next := *present
	if err := a.recordVerify(t, p, &next, present, failed); err != nil {
		return nil, outcome, err
	}
	return &next, outcome, failed
}

func (a *Activator) recordVerify(t *trial, p proof, next, present *Record, failed error) error {
	next.Verify = VerifyRef{Ran: p.outcome.Ran, OK: p.outcome.OK && failed == nil, Message: form.Clean(p.outcome.Message), ElapsedMS: p.outcome.Elapsed.Milliseconds(), When: a.Now().UTC()}
	next.Runtimes, next.Deps, next.UpdatedAt = t.runtimes, t.deps, a.Now().UTC()
	if failed == nil {
		next.AuthState = Ready
		if len(present.Tools) == 0 && p.probe != nil {
			if err := a.writeTools(t.name, p.probe.Tools, present); err != nil {
				return err
			}
			next.Tools, next.Probe = toolRefs(t.manifest, p.probe.Tools, next.Grant), p.probe
		}
	}
	return a.Records().write(next)
}

// PutSecret replaces one secret of an activation, without verify: it is the
// way for scripts that rotate keys. Errors: *GivenError for a name that the
// connector does not declare as secret and for a value that breaks its rule.
func (a *Activator) PutSecret(ctx context.Context, name, handle string, value keystore.Secret) error {
	_, err := a.editSecrets(ctx, name, func(t *trial, rec *Record) error {
		f, ok := t.values.field(handle)
		if !ok || !f.Secret {
			return &GivenError{Name: handle, Source: "secrets put", Problem: fmt.Sprintf("%q has no secret of that name", name)}
		}
		clean, _, err := f.Check(value.Reveal())
		if err != nil {
			return &GivenError{Name: handle, Source: "secrets put", Problem: err.Error()}
		}
		if clean == "" {
			return &GivenError{Name: handle, Source: "secrets put", Problem: "the value is empty"}
		}
		t.values.set(handle, keystore.NewSecret(clean))
		return nil
	})
	return err
}

// RemoveSecret takes one secret away and tells whether it was there. An
// activation that cannot run without it becomes unauthorized.
func (a *Activator) RemoveSecret(ctx context.Context, name, handle string) (existed bool, err error) {
	_, err = a.editSecrets(ctx, name, func(t *trial, rec *Record) error {
		existed = rec.Secret(handle)
		t.values.set(handle, keystore.Secret{})
		return nil
	})
	return existed, err
}

// editSecrets changes stored values and writes vault and record as one commit.
func (a *Activator) editSecrets(ctx context.Context, name string, edit func(*trial, *Record) error) (*Record, error) {
	return a.change(ctx, name, func(t *trial, rec *Record) (proof, error) {
		if err := edit(t, rec); err != nil {
			return proof{}, err
		}
		state := rec.AuthState
		switch missing := len(t.values.missing()) > 0; {
		case missing:
			state = Unauthorized
		case state == Unauthorized || state == Expired:
			state = Pending
		}
		v := rec.Verify
		return proof{state: state, outcome: Outcome{Ran: v.Ran, OK: v.OK, Message: v.Message}}, nil
	})
}
