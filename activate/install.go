package activate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/login/pairing"
	"skald-connectors/manifest"
)

// Request is one install that was planned and agreed to.
type Request struct {
	Plan     *Plan
	Bundle   *fetch.Bundle
	Given    map[string]Given
	NoVerify bool
	// AllowScripts lets install scripts of packages run and sources be built.
	AllowScripts bool
	DepsTimeout  time.Duration // of npm and pip; 0 = 300 s
	// Packages is a folder with the downloads of npm and pip that a bundle file brought;
	// "" = they ask their registries.
	Packages string
	Grant    record.Grant
	Mode     string // the sandbox mode that was asked for
	// Ask names the fields that a person is asked for at first, nil = all; the rest is given.
	Ask []string
	// Grants and Withheld are the user's changes to what the manifest asks for.
	Grants, Withheld []Access
}

// GrantError says that --allow or --deny names tools that the connector does
// not have.
type GrantError struct {
	Connector string
	Unknown   []string
	Has       []string
}

func (e *GrantError) Error() string {
	return fmt.Sprintf("limiting the tools of %q: it has no tool %s", e.Connector, strings.Join(e.Unknown, ", "))
}

// CheckGiven holds given values against the fields of the plan and, where no
// person can be asked, names what is missing: before anything is downloaded.
// It returns notes about values that look odd.
func (a *Activator) CheckGiven(p *Plan, given map[string]Given) ([]string, error) {
	v := newValues(p.Manifest)
	notes, err := v.take(given)
	if err != nil {
		return nil, err
	}
	v.applyDefaults()
	if missing := v.missing(); len(missing) > 0 && a.Person == nil {
		return nil, &MissingError{Name: p.Name, Fields: missing}
	}
	// Data that was kept may hold a session: then nobody has to be there.
	if _, kept := a.Store.Kept(p.Name); signsInByQR(p.Manifest) && a.Person == nil && !p.Pending && !kept {
		return nil, &SignInError{Name: p.Name, Err: &pairing.Error{Kind: pairing.Unseen}}
	}
	return notes, nil
}

// PrepareKeys opens or makes the key of the vaults when the plan will store
// secrets, so that a missing key store is known before anything is typed.
// undo takes a new key away again while no vault needs it.
func (a *Activator) PrepareKeys(ctx context.Context, p *Plan, given map[string]Given) (undo func(), err error) {
	asked := a.Person != nil && len(toAsk(p.Fields, given, p.Brief)) > 0
	needed := slices.ContainsFunc(p.Fields, func(f manifest.Field) bool {
		_, isGiven := given[f.Name]
		return f.Secret && (isGiven || asked)
	}) || signsIn(p.Manifest) && !p.Pending
	if !needed {
		return func() {}, nil
	}
	a.keyWanted = true
	undo = func() {
		a.keyWanted = false
		if err := a.Keys.Forget(context.WithoutCancel(ctx)); err != nil {
			a.say("removing the unused key: %v", err)
		}
	}
	if err := a.Keys.Prepare(ctx); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// Install makes the planned activation. The record is written last; before it,
// every error and every kill leaves the machine as it was. A *LeftError comes with
// the record.
func (a *Activator) Install(ctx context.Context, r Request) (*record.Record, error) {
	name := r.Plan.Name
	if err := r.agreesWithPlan(); err != nil {
		return nil, err
	}
	if _, err := a.Sweep(ctx); err != nil {
		a.say("clearing what earlier commands left: %v", err)
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if a.Records().Taken(name) {
		return nil, &TakenError{Name: name}
	}
	a.payOwed(ctx, name)
	stage, err := a.Store.Stage(ctx, r.Bundle, a.Step)
	if err != nil {
		return nil, err
	}
	rec, err := a.installStaged(ctx, r, stage)
	if rec != nil {
		return rec, err
	}
	if derr := stage.Discard(); derr != nil {
		a.say("removing the staged files: %v", derr)
	}
	if !a.Records().Taken(name) { // the record may be there when only its last sync failed
		if derr := a.Store.Abandon(context.WithoutCancel(ctx), name); derr != nil {
			a.say("%v", derr)
		}
	}
	return nil, err
}

// ChangedPlanError says that the bytes that came are not those of the plan that
// a person agreed to.
type ChangedPlanError struct{ Connector, What string }

func (e *ChangedPlanError) Error() string {
	return fmt.Sprintf("installing %q: %s after the plan was shown", e.Connector, e.What)
}

// agreesWithPlan holds the bundle against what was agreed to: its index entry,
// and its manifest, which the index of a remote connector may not pin.
func (r *Request) agreesWithPlan() error {
	e := r.Plan.Entry
	if !bytes.Equal(r.Bundle.Entry().Raw, e.Raw) {
		return &ChangedPlanError{Connector: e.ID, What: "the marketplace published another version"}
	}
	for _, f := range r.Bundle.Files() {
		if f.Path == manifestName && f.SHA256 != r.Plan.ManifestDigest {
			return &ChangedPlanError{Connector: e.ID, What: "the marketplace served another manifest"}
		}
	}
	return nil
}

func (a *Activator) installStaged(ctx context.Context, r Request, stage *install.Stage) (out *record.Record, err error) {
	dir, err := stage.Work(r.Plan.Name)
	if err != nil {
		return nil, err
	}
	m := r.Bundle.Manifest()
	t := &trial{name: r.Plan.Name, manifest: m, files: r.Bundle.Files(), values: newValues(m), runtimes: r.Plan.Runtimes, dir: dir, grants: r.Grants, withheld: r.Withheld}
	if t.box, err = a.OpenSandbox(r.Mode); err != nil {
		return nil, err
	}
	t.sign = signAsk
	if r.Plan.Pending {
		t.sign = signLater
	}
	defer func() {
		if out == nil && !a.Records().Taken(t.name) {
			a.undoSignIn(ctx, t)
			a.abandon(ctx, t)
		}
	}()
	rec := newRecord(r)
	if err = a.installDeps(ctx, t, r.Plan.Deps, packageOptions{allowScripts: r.AllowScripts, timeout: r.DepsTimeout, cache: r.Packages}); err != nil {
		return nil, err
	}
	if err := stage.Depend(t.trees...); err != nil {
		return nil, err
	}
	if _, err := t.values.take(r.Given); err != nil {
		return nil, err
	}
	p, err := a.prove(ctx, t, r.firstForm(t), r.NoVerify)
	if err != nil {
		return nil, err
	}
	a.sayIdle(t, r.Grants, r.Withheld)
	if p.probe != nil {
		if unknown := r.Grant.Unknown(p.probe.Tools); len(unknown) > 0 {
			return nil, grantError(m.ID, unknown, p.probe)
		}
	}
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	a.step("commit-folders")
	done, err := stage.Commit(r.Plan.Name)
	if err != nil {
		return nil, err
	}
	rec.Version, rec.Digest, t.dir = done.Ref.Version, done.Ref.Digest, done.Work
	if err := a.commit(ctx, t, p, rec, nil); err != nil {
		return nil, err
	}
	if p.left {
		return rec, &LeftError{Name: t.name}
	}
	return rec, nil
}

func grantError(connector string, unknown []string, p *record.Probe) error {
	e := &GrantError{Connector: connector, Unknown: unknown}
	for _, t := range p.Tools {
		e.Has = append(e.Has, t.Name)
	}
	return e
}

// newRecord fills in what the bundle and the index say.
func newRecord(r Request) *record.Record {
	m, ix := r.Bundle.Manifest(), r.Bundle.Index()
	return &record.Record{
		Name: r.Plan.Name, Connector: m.ID, VersionString: m.VersionString,
		Index: record.IndexRef{URL: ix.Location(), Digest: ix.Digest(), Signer: strings.Join(ix.Trust().Signers, ","), Expired: ix.Trust().Expired}, Files: pinsOf(r.Bundle.Files()),
		Type: m.Type, Scope: m.Scope,
		Auth:      authRef(m.Auth),
		MCPConfig: serverRef(m.Server), Grant: r.Grant, Sandbox: record.SandboxRef{Mode: r.Mode}, Mounts: []record.MountRef{},
	}
}

// commit makes the proof true: vault generation, tool definitions, record. The
// caller holds the commit lock and the activation's lock. present is the
// record that is replaced, nil on a first install.
func (a *Activator) commit(ctx context.Context, t *trial, p proof, rec *record.Record, present *record.Record) error {
	release, err := a.holdSignIn(ctx, t, present)
	if err != nil {
		return err
	}
	defer release()
	if err := a.commitSecrets(ctx, t, rec); err != nil {
		return err
	}
	rec.Env, rec.AuthState, rec.Runtimes = t.values.plain(), p.state, t.runtimes
	rec.Deps = t.deps
	if p.verify != nil {
		rec.Verify = *p.verify
	} else {
		rec.Verify = a.verifyRef(p.outcome, p.failed)
	}
	if !t.keepSandbox {
		t.recordSandbox(a, rec)
	}
	if err := a.acceptTools(t, p.probe, rec, present); err != nil {
		return err
	}
	rec.UpdatedAt = a.Now().UTC()
	if rec.InstalledAt.IsZero() {
		rec.InstalledAt = rec.UpdatedAt
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var left []login.Credential
	if !t.signedOut {
		left = a.leftSignIns(ctx, present, rec)
	}
	if err := a.owe(ctx, rec.Name, left...); err != nil {
		return err
	}
	a.step(writeRecord)
	if err := a.Records().Write(rec); err != nil {
		return err
	}
	a.revokeLeft(ctx, rec.Name, left)
	if !t.signedOut {
		a.settleOwed(rec.Name)
	}
	a.step("remove-old-vault")
	a.dropOldVaults(rec)
	return nil
}

// recordSandbox writes down what was asked for and what holds here.
func (t *trial) recordSandbox(a *Activator, rec *record.Record) {
	policy := t.policy(a)
	enforced := t.box.Enforced(policy)
	rec.Sandbox = record.SandboxRef{
		Mode: rec.Sandbox.Mode, Backend: string(enforced.Mode), Enforced: enforced.Sentence, NotHeld: enforced.NotHeld,
		Network: policy.Network.Hosts, Paths: slices.Concat(policy.Read, policy.Write), Grants: texts(t.grants), Withheld: texts(t.withheld),
	}
	if policy.Network.All {
		rec.Sandbox.Network = append([]string{"all"}, rec.Sandbox.Network...)
	}
}

// acceptTools takes the probed tool definitions for the accepted ones when none
// were accepted yet. Later ones are only compared: what changed is said, and
// what was accepted stays on record.
func (a *Activator) acceptTools(t *trial, p *record.Probe, rec, present *record.Record) error {
	switch {
	case p == nil:
	case present == nil || len(present.Tools) == 0:
		a.step("write-tools")
		if err := a.definitions().Write(t.name, p.Tools, present); err != nil {
			return err
		}
		rec.Tools, rec.Probe = toolRefs(t.manifest, p.Tools, rec.Grant), p
	default:
		if changed := changedTools(present.Tools, p.Tools); len(changed) > 0 {
			a.say("note: its tools are not the ones that were accepted (%s); the accepted ones stay on record", form.Clean(strings.Join(changed, ", ")))
		}
	}
	if rec.Tools == nil {
		rec.Tools = []record.ToolRef{}
	}
	return nil
}

// commitSecrets writes the secrets as a new generation of the vault, which no
// record names yet.
func (a *Activator) commitSecrets(ctx context.Context, t *trial, rec *record.Record) error {
	hs := t.values.handles()
	rec.Vault, rec.Secrets = 0, []record.SecretRef{}
	if len(hs) == 0 {
		return nil
	}
	gens, err := a.Keys.Generations(t.name)
	if err != nil {
		return err
	}
	rec.Vault = 1
	if len(gens) > 0 {
		rec.Vault = slices.Max(gens) + 1
	}
	a.step("write-vault")
	if err := a.Keys.Put(ctx, t.name, rec.Vault, hs); err != nil {
		return err
	}
	store, err := a.Keys.Describe()
	if err != nil {
		return err
	}
	for _, h := range hs {
		if !h.Secret {
			continue
		}
		rec.Secrets = append(rec.Secrets, record.SecretRef{Name: h.Name, Store: string(store.Backend), ExpiresAt: h.ExpiresAt})
	}
	return nil
}

// dropOldVaults removes the generations that the written record does not name.
// The record is committed: what cannot be removed now, the next sweep removes.
func (a *Activator) dropOldVaults(rec *record.Record) {
	if err := a.Keys.Remove(rec.Name, rec.Generations()...); err != nil {
		a.say("removing the replaced vault of %q: %v", rec.Name, err)
	}
}

// secretsOf loads the vault of a record; a record without secrets never
// touches the key store.
func (a *Activator) secretsOf(ctx context.Context, rec *record.Record) ([]keystore.Handle, error) {
	if rec.Vault == 0 {
		return nil, nil
	}
	return a.Keys.Load(ctx, rec.Name, rec.Vault)
}
