package activate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// NoPriorError says that no earlier version of an activation is kept.
type NoPriorError struct{ Name string }

func (e *NoPriorError) Error() string {
	return fmt.Sprintf("going back with %q: no earlier version of it is kept", e.Name)
}

// RolledBackError says that a new version passed its test, did not start from its place,
// and was taken back. The version To is in force.
type RolledBackError struct {
	Name     string
	From, To manifest.Version
	Err      error
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("upgrading %q: version %d did not start once it was in place, and version %d is in force again: %v", e.Name, e.From, e.To, e.Err)
}
func (e *RolledBackError) Unwrap() error { return e.Err }

// Rollback puts the version from before the last upgrade back in force. It asks no
// network and starts nothing. Settings are those of that version; a secret that both
// versions have is the newest, since a credential that was renewed is the only one
// that is valid; what the user has said of the activation (tools, grants, pin) stays.
// Errors: *NoPriorError; *install.ChangedError.
func (a *Activator) Rollback(ctx context.Context, name string) (rec *record.Record, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		rec, err = a.rollback(ctx, present)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := a.Sweep(ctx); err != nil {
		a.say("clearing the version that is not used any more: %v", err)
	}
	return rec, nil
}

func (a *Activator) rollback(ctx context.Context, present *record.Record) (*record.Record, error) {
	prior, err := present.Prior()
	if err != nil {
		return nil, err
	}
	if prior == nil {
		return nil, &NoPriorError{Name: present.Name}
	}
	next := present.Restored(prior)
	t, err := a.priorTrial(ctx, present, next)
	if err != nil {
		return nil, err
	}
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	left, err := a.Store.GoBack(ctx, next.Name, next.Ref(), next.Pins(), present.Ref(), present.Pins(), a.step)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		a.say("note: of its own files, this one stays behind: %s", form.Clean(l))
	}
	if err := a.mergeSecrets(ctx, t, present, prior); err != nil {
		return nil, err
	}
	a.noteSettings(t, present)
	p := proof{state: stateBack(present, prior, t), verify: &prior.Verify}
	return next, a.commit(ctx, t, p, next, present)
}

// priorTrial sets the earlier version up as it was; nothing of it is started.
func (a *Activator) priorTrial(ctx context.Context, present, next *record.Record) (*trial, error) {
	m, err := a.runnable(next)
	if err != nil {
		return nil, err
	}
	t := &trial{name: next.Name, manifest: m, files: next.Pins(), values: newValues(m), dir: a.Store.WorkDir(next.Name, next.Ref()), runtimes: next.Runtimes, deps: next.Deps}
	t.grants, t.withheld = accesses(next.Sandbox.Grants), accesses(next.Sandbox.Withheld)
	if t.box, err = a.OpenSandbox(modeOf(next)); err != nil {
		a.say("note: %v", err) // going back is possible all the same; a start will say it again
		t.keepSandbox = true
	}
	if len(next.Deps) > 0 && !a.adopt(t, next) {
		t.deps = next.Deps
		a.say("note: its packages are not here as they were installed; a verify installs them again")
	}
	return t, nil
}

// mergeSecrets fills in the earlier version's values, with the newest of the secrets
// that both have. The caller holds the commit lock.
func (a *Activator) mergeSecrets(ctx context.Context, t *trial, present, prior *record.Record) error {
	was, err := a.secretsOf(ctx, prior)
	if err != nil {
		return err
	}
	now, err := a.secretsOf(ctx, present)
	if err != nil {
		return err
	}
	for i, h := range was {
		j := slices.IndexFunc(now, func(n keystore.Handle) bool { return n.Name == h.Name })
		if j >= 0 && !login.IsHandle(h.Name) {
			was[i] = now[j]
		}
	}
	if was, err = newestSignIn(was, now); err != nil {
		return err
	}
	t.values.load(prior, was)
	return nil
}

// renews tells whether later can stand in for old: it was made for the same provider and the same server.
func renews(later, old login.Credential) bool {
	return later.Provider == old.Provider && later.TokenURL == old.TokenURL && later.Resource == old.Resource
}

// newestSignIn replaces a sign-in as a whole, by a later one of the same place: parts of two are none.
func newestSignIn(was, now []keystore.Handle) ([]keystore.Handle, error) {
	old, had, err := login.Find(was)
	if err != nil || !had {
		return was, nil // a damaged one counts as none
	}
	later, has, err := login.Find(now)
	if err != nil || !has || !renews(later, old) {
		return was, nil
	}
	return later.Merge(was)
}

// noteSettings names the settings that are not what they were under the later version.
func (a *Activator) noteSettings(t *trial, present *record.Record) {
	before := t.values.plain()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now, has := present.Env[name]; has && now != before[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		a.say("note: as they were before the upgrade: %s", form.Clean(strings.Join(names, ", ")))
	}
}

// stateBack is the state after a rollback: as it was, unless the credential has run out
// or was taken away since.
func stateBack(present, prior *record.Record, t *trial) record.State {
	switch {
	case len(t.values.missing()) > 0 && prior.AuthState == record.Ready:
		return record.Unauthorized
	case present.AuthState == record.Expired, present.AuthState == record.Unauthorized && prior.AuthState == record.Ready && len(prior.Secrets) > 0:
		return present.AuthState
	}
	return prior.AuthState
}

// SetPinned pins an activation to its version, or frees it for upgrades again.
func (a *Activator) SetPinned(ctx context.Context, name string, pinned bool) (rec *record.Record, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		if rec = present; present.Pinned == pinned {
			return nil
		}
		rec, err = a.rewrite(ctx, present, writeRecord, func(next *record.Record) error {
			next.Pinned = pinned
			return nil
		})
		return err
	})
	return rec, err
}

// modeOf is the sandbox mode that was asked for.
func modeOf(rec *record.Record) string {
	if rec.Sandbox.Mode == "" {
		return string(sandbox.Auto)
	}
	return rec.Sandbox.Mode
}
