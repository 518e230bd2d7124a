package activate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// SecretField is the field that a handle of an activation belongs to, for
// whoever asks for its value. Errors: *NotInstalledError, *GivenError.
func (a *Activator) SecretField(name, handle string) (manifest.Field, error) {
	rec, err := a.Records().Read(name)
	if err != nil {
		return manifest.Field{}, err
	}
	m, err := a.runnable(rec)
	if err != nil {
		return manifest.Field{}, err
	}
	return secretField(m, name, handle)
}

func secretField(m *manifest.Manifest, name, handle string) (manifest.Field, error) {
	names := []string{}
	for _, f := range m.Fields() {
		switch {
		case f.Name == handle && f.Secret:
			return f, nil
		case f.Name == handle:
			return manifest.Field{}, &GivenError{Name: handle, Source: "secrets put", Problem: "it is no secret; it is changed by configure"}
		case f.Secret:
			names = append(names, f.Name)
		}
	}
	problem := fmt.Sprintf("%q has no secret of that name; it has %s", name, strings.Join(names, ", "))
	if len(names) == 0 {
		problem = fmt.Sprintf("%q has no secrets", name)
	}
	return manifest.Field{}, &GivenError{Name: handle, Source: "secrets put", Problem: problem}
}

// PutSecret replaces one secret of an activation, without verify: it is the
// way for scripts that rotate keys. Errors: *GivenError for a name that the
// connector does not declare as secret, for a value that breaks its rule, and for an
// end that has passed; the zero time: it is not known when the value stops working.
func (a *Activator) PutSecret(ctx context.Context, name, handle string, value keystore.Secret, until time.Time) error {
	if !until.IsZero() && !until.After(a.Now()) {
		return &GivenError{Name: handle, Source: "secrets put", Problem: "the value has expired already"}
	}
	return a.onRecord(ctx, name, func(present *record.Record) error {
		return a.editSecret(ctx, present, func(t *trial) error {
			f, err := secretField(t.manifest, name, handle)
			if err != nil {
				return err
			}
			clean, _, err := f.Check(value.Reveal())
			if err == nil && clean == "" {
				err = errors.New("the value is empty")
			}
			if err != nil {
				return &GivenError{Name: handle, Source: "secrets put", Problem: err.Error()}
			}
			t.values.set(handle, keystore.NewSecret(clean))
			if !until.IsZero() {
				t.values.until[handle] = until.UTC()
			}
			return nil
		})
	})
}

// RemoveSecret takes one secret away and tells whether it was there; where it
// was not, nothing is read or written. An activation that cannot run without
// it becomes unauthorized.
func (a *Activator) RemoveSecret(ctx context.Context, name, handle string) (existed bool, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		if existed = present.Secret(handle); !existed {
			return nil
		}
		if login.IsHandle(handle) {
			return &GivenError{Name: handle, Source: "secrets remove", Problem: "it belongs to the sign-in, which logout takes away as a whole"}
		}
		return a.editSecret(ctx, present, func(t *trial) error {
			t.values.set(handle, keystore.Secret{})
			return nil
		})
	})
	return existed, err
}

// removeFromPrior takes the secrets that t has no longer out of the vault of the version
// that is kept for a rollback: what was taken away does not come back with it.
func (a *Activator) removeFromPrior(ctx context.Context, t *trial, present *record.Record) error {
	stays := map[string]bool{}
	for _, h := range t.values.handles() {
		stays[h.Name] = true
	}
	gone := map[string]bool{}
	for _, s := range present.Secrets {
		gone[s.Name] = !stays[s.Name]
	}
	prior, err := present.Prior()
	if err != nil || prior == nil || !slices.ContainsFunc(prior.Secrets, func(s record.SecretRef) bool { return gone[s.Name] }) {
		return err
	}
	return a.Keys.Update(ctx, prior.Name, prior.Vault, func(hs []keystore.Handle) ([]keystore.Handle, error) {
		return slices.DeleteFunc(hs, func(h keystore.Handle) bool { return gone[h.Name] }), nil
	})
}

// editSecret changes stored values and writes vault and record as one commit.
// What the last verify said stays as it was: nothing ran.
func (a *Activator) editSecret(ctx context.Context, present *record.Record, edit func(*trial) error) error {
	t, err := a.resume(ctx, present, true)
	if err != nil {
		return err
	}
	if err := edit(t); err != nil {
		return err
	}
	t.runtimes, t.keepSandbox = present.Runtimes, true
	p := proof{state: present.AuthState, verify: &present.Verify}
	switch missing := len(t.values.missing()) > 0; {
	case missing || t.values.lacksSignIn(t.manifest):
		p.state = record.Unauthorized
	case p.state == record.Unauthorized || p.state == record.Expired:
		p.state = record.Pending
	}
	_, err = a.replace(ctx, t, p, present)
	return err
}
