package activate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// UpgradePlan is what going to another version of an installed connector would do. It
// is made from the very bytes that are installed by Upgrade.
type UpgradePlan struct {
	Plan                   // of the new version
	Present *record.Record // what is here
	Changes []Change
	Ask     []manifest.Field // required fields that have no value yet

	bundle *fetch.Bundle
}

// Wider lists the changes that let the connector do more than was agreed to.
func (p *UpgradePlan) Wider() []Change {
	return slices.DeleteFunc(slices.Clone(p.Changes), func(c Change) bool { return !c.Wider })
}

// UpgradeRequest is one upgrade that was planned and agreed to.
type UpgradeRequest struct {
	Plan         *UpgradePlan
	Given        map[string]Given
	NoVerify     bool
	AllowScripts bool          // besides those that were allowed before
	DepsTimeout  time.Duration // of npm and pip; 0 = 300 s
	// Accept is shown the tools whose definitions are not the accepted ones. Where it
	// is nil or says no, these are held back.
	Accept func(ctx context.Context, changed []Definition) (bool, error)
}

// Upgraded is the outcome of an upgrade: Held are the tools that are held back, since
// their definitions are not the accepted ones, as they are now.
type Upgraded struct {
	Record *record.Record
	Held   []record.ToolRef
}

// PlanUpgrade works out what going from rec to the bundle would do. Errors: as Plan;
// *install.ChangedError when what is installed is not what was; *StaleError and
// *record.NotInstalledError when another process changed or removed it meanwhile.
func (a *Activator) PlanUpgrade(ctx context.Context, rec *record.Record, b *fetch.Bundle, o PlanOptions) (*UpgradePlan, error) {
	p, err := a.planUpgrade(ctx, rec, b, o)
	if err == nil {
		return p, nil
	}
	return nil, cmp.Or(a.stale(rec), err)
}

func (a *Activator) planUpgrade(ctx context.Context, rec *record.Record, b *fetch.Bundle, o PlanOptions) (*UpgradePlan, error) {
	was, err := a.installedSide(rec)
	if err != nil {
		return nil, err
	}
	e, m := b.Entry(), b.Manifest()
	p := &UpgradePlan{Present: rec, bundle: b}
	p.Plan = Plan{Name: rec.Name, Index: b.Index(), Entry: e, Manifest: m, Diagnostics: b.Diagnostics()}
	v := newValues(m)
	v.load(rec, nil)
	unfit := v.keep(rec)
	if _, err := v.take(o.Given); err != nil {
		return nil, err
	}
	p.Ask = newlyMissing(v, rec, was.manifest)
	o.Mode, o.Grants, o.Withheld = modeOf(rec), accesses(rec.Sandbox.Grants), accesses(rec.Sandbox.Withheld)
	o.NoDeps = o.NoDeps || len(rec.Deps) == 0 && len(was.packages) > 0 // they were installed by hand
	if err := a.complete(ctx, &p.Plan, v, b.Open, o); err != nil {
		return nil, err
	}
	for _, name := range unfit {
		if _, given := o.Given[name]; !given {
			p.Warnings = append(p.Warnings, fmt.Sprintf("the value of %s that is here does not fit any more, and is left out", name))
		}
	}
	now := side{manifest: m, files: b.Files(), open: b.Open, auth: authRef(m.Auth)}
	for _, d := range p.Deps {
		now.packages = append(now.packages, d.Set)
	}
	if o.NoDeps {
		was.packages = nil
	}
	p.Changes = changesOf(was, now)
	return p, nil
}

// newlyMissing names the required fields without a value, without those that the
// version which is here misses as well. Secrets are taken for what the record says.
func newlyMissing(v *values, rec *record.Record, was *manifest.Manifest) []manifest.Field {
	before := newValues(was)
	before.load(rec, nil)
	before.applyDefaults()
	lacking := before.missing()
	return slices.DeleteFunc(v.missing(), func(f manifest.Field) bool {
		stored := f.Secret && rec.Secret(f.Name) || !f.Secret && f.Default != ""
		return stored || slices.ContainsFunc(lacking, func(x manifest.Field) bool { return x.Name == f.Name && !rec.Secret(f.Name) })
	})
}

// Upgrade puts the planned version in the place of the one that is here. The record is
// written last; before it, every error and every kill leaves the version that is
// here in force. Afterwards the new server is started once more, from its place:
// where that fails the version from before is put back, and the error is a
// *RolledBackError. Where another process did the same meanwhile, its record is the
// answer.
func (a *Activator) Upgrade(ctx context.Context, r UpgradeRequest) (out *Upgraded, err error) {
	err = a.onRecord(ctx, r.Plan.Name, func(present *record.Record) error {
		switch was := r.Plan.Present; {
		case present.Connector != was.Connector:
			return &StaleError{Name: present.Name}
		case present.Version == r.Plan.Entry.Version:
			a.say("another skald-connectors upgraded %q meanwhile", present.Name)
			out = &Upgraded{Record: present}
			return nil
		case present.Digest != was.Digest || present.Pinned || present.PassOver != was.PassOver:
			return &StaleError{Name: present.Name}
		}
		out, err = a.upgrade(ctx, r, present)
		return err
	})
	return out, err
}

func (a *Activator) upgrade(ctx context.Context, r UpgradeRequest, present *record.Record) (*Upgraded, error) {
	if signsInByQR(r.Plan.Manifest) {
		release, err := a.HoldLive(present.Name)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	stage, err := a.Store.Stage(ctx, r.Plan.bundle, a.Step)
	if err != nil {
		return nil, err
	}
	out, t, err := a.upgradeStaged(ctx, r, present, stage)
	if err != nil {
		if derr := stage.Discard(); derr != nil {
			a.say("removing the staged files: %v", derr)
		}
		return nil, err
	}
	if t == nil {
		return out, nil
	}
	return out, a.startOnce(ctx, t, out.Record)
}

// startOnce starts the new server from its place. One that does not come up there is
// taken back.
func (a *Activator) startOnce(ctx context.Context, t *trial, rec *record.Record) error {
	a.step("start-once")
	done := a.busy("starting", probeLimit)
	_, failed := a.probe(ctx, t)
	done()
	if failed == nil || ctx.Err() != nil { // interrupted: the new version is in place, and passed before
		return nil
	}
	a.say("version %d does not start from its place; going back to the one before", rec.Version)
	back, err := a.rollback(context.WithoutCancel(ctx), rec)
	if err != nil {
		return fmt.Errorf("%w; and going back failed: %v", failed, err)
	}
	return &RolledBackError{Name: rec.Name, From: rec.Version, To: back.Version, Err: failed}
}

// upgradeStaged proves the new version in its stage and commits it. t is nil where
// nothing is to be started: the activation is parked.
func (a *Activator) upgradeStaged(ctx context.Context, r UpgradeRequest, present *record.Record, stage *install.Stage) (_ *Upgraded, _ *trial, err error) {
	t, before, err := a.upgradeTrial(ctx, r, present, stage)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			a.abandon(ctx, t)
		}
	}()
	p, err := a.proveUpgrade(ctx, t, r, present)
	if err != nil {
		return nil, nil, err
	}
	tools, held, err := a.chooseTools(ctx, t, r, present, p.probe)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	a.step("commit-folders")
	done, err := stage.Commit(present.Name)
	if err != nil {
		return nil, nil, err
	}
	t.dir = done.Work
	rec, err := a.successor(r, present, done)
	if err != nil {
		return nil, nil, err
	}
	if err := a.newest(ctx, t, present, before); err != nil {
		return nil, nil, err
	}
	if p.probe != nil && len(held) == 0 {
		a.step("write-tools")
		if err := a.definitions().Write(t.name, p.probe.Tools, present); err != nil {
			return nil, nil, err
		}
	}
	probed := p.probe
	if rec.Tools = tools; probed != nil {
		rec.Probe, p.probe = probed, nil // the tools are settled
	}
	if err := a.commit(ctx, t, p, rec, present); err != nil {
		return nil, nil, err
	}
	out := &Upgraded{Record: rec, Held: held}
	if probed == nil || t.manifest.Remote() { // an address is the same from every place
		return out, nil, nil
	}
	return out, t, nil
}

// successor is the record of the new version, as far as its bytes say it.
func (a *Activator) successor(r UpgradeRequest, present *record.Record, done install.Installed) (*record.Record, error) {
	said := newRecord(Request{Plan: &r.Plan.Plan, Bundle: r.Plan.bundle})
	next := *present
	next.Version, next.Digest, next.VersionString = done.Ref.Version, done.Ref.Digest, said.VersionString
	next.Index, next.Files, next.Type, next.Scope = said.Index, said.Files, said.Type, said.Scope
	next.Auth, next.MCPConfig, next.PassOver = said.Auth, said.MCPConfig, 0
	return &next, next.KeepPrior(present)
}

// upgradeTrial sets the new version up in its stage, with the values that are stored;
// before are the secrets as they were.
func (a *Activator) upgradeTrial(ctx context.Context, r UpgradeRequest, present *record.Record, stage *install.Stage) (t *trial, before []keystore.Handle, err error) {
	dir, err := stage.Work(present.Name)
	if err != nil {
		return nil, nil, err
	}
	left, err := stage.Carry(present.Ref(), present.Pins())
	if err != nil {
		return nil, nil, err
	}
	for _, l := range left {
		a.say("note: of its own files, this one stays behind: %s", form.Clean(l))
	}
	if before, err = a.secretsOf(ctx, present); err != nil {
		return nil, nil, err
	}
	m := r.Plan.Manifest
	t = &trial{name: present.Name, manifest: m, files: r.Plan.bundle.Files(), values: newValues(m), runtimes: r.Plan.Runtimes, dir: dir, replaces: true}
	t.values.load(present, before)
	t.values.keep(present)
	if _, err := t.values.take(r.Given); err != nil {
		return nil, nil, err
	}
	a.dropForeignSignIn(t)
	t.grants, t.withheld = accesses(present.Sandbox.Grants), accesses(present.Sandbox.Withheld)
	if t.box, err = a.OpenSandbox(modeOf(present)); err != nil {
		return nil, nil, err
	}
	scripts := r.AllowScripts || scriptsAllowed(present, r.Plan.Deps)
	if err := a.installDeps(ctx, t, r.Plan.Deps, packageOptions{allowScripts: scripts, timeout: r.DepsTimeout}); err != nil {
		return nil, nil, err
	}
	return t, before, stage.Depend(t.trees...)
}

// scriptsAllowed tells whether the scripts that want to run were allowed before, each by
// the name of its package.
func scriptsAllowed(present *record.Record, list []Dependency) bool {
	allowed := map[string]bool{}
	any := false
	for _, d := range present.Deps {
		any = any || d.Scripts
		for _, p := range d.Packages {
			if d.Scripts && p.Scripts {
				allowed[p.Name] = true
			}
		}
	}
	for _, d := range list {
		for _, p := range d.Here {
			if p.Scripts && !allowed[p.Name] {
				return false
			}
		}
	}
	return any
}

// parked tells that the activation cannot be tried: a credential is missing or has run
// out, and nobody has given it now.
func parked(t *trial, present *record.Record) bool {
	if present.AuthState == record.Expired || present.AuthState == record.Unauthorized {
		t.values.applyDefaults()
		return present.AuthState == record.Expired || signsInByQR(t.manifest) || len(t.values.missing()) > 0 || t.values.lacksSignIn(t.manifest)
	}
	return false
}

// proveUpgrade runs the test and the server of the new version in its stage.
func (a *Activator) proveUpgrade(ctx context.Context, t *trial, r UpgradeRequest, present *record.Record) (proof, error) {
	if parked(t, present) {
		a.say("%s is %s, so the new version cannot be tested; it stays parked", present.Name, present.AuthState)
		return proof{state: present.AuthState, verify: &present.Verify}, nil
	}
	t.values.applyDefaults()
	a.askForScopes(t)
	for _, f := range t.values.missing() { // the plan named them; what has a value is not asked again
		t.only = append(t.only, f.Name)
	}
	p, err := a.prove(ctx, t, len(t.only) > 0, r.NoVerify)
	if err == nil && r.NoVerify && present.AuthState != record.Ready {
		p.state = present.AuthState
	}
	return p, err
}

// newest takes secrets that were renewed while the new version was tried.
func (a *Activator) newest(ctx context.Context, t *trial, present *record.Record, before []keystore.Handle) error {
	now, err := a.secretsOf(ctx, present)
	if err != nil {
		return err
	}
	for _, h := range now {
		i := slices.IndexFunc(before, func(b keystore.Handle) bool { return b.Name == h.Name })
		f, declared := t.values.field(h.Name)
		if declared && f.Secret && (i < 0 || t.values.filled[h.Name].Equal(before[i].Value)) {
			t.values.restore(h)
		}
	}
	return nil
}

// chooseTools settles what the record says of the tools, and which are held back: those
// whose definitions are new or changed, unless whoever is asked accepts them.
func (a *Activator) chooseTools(ctx context.Context, t *trial, r UpgradeRequest, present *record.Record, p *record.Probe) (tools, held []record.ToolRef, err error) {
	if p == nil {
		return present.Tools, nil, nil
	}
	all := toolRefs(t.manifest, p.Tools, present.Grant)
	if present.Probe == nil { // nothing was ever accepted
		return all, nil, nil
	}
	known, err := a.accepted(present)
	if err != nil {
		return nil, nil, err
	}
	changed := slices.DeleteFunc(compareTools(present, known, p), func(d Definition) bool { return !d.Held })
	for _, d := range changed {
		if d.Now == nil {
			continue
		}
		if i := slices.IndexFunc(all, func(now record.ToolRef) bool { return now.Name == d.Name }); i >= 0 {
			held = append(held, all[i])
		}
	}
	if len(held) == 0 {
		return all, nil, nil
	}
	if r.Accept != nil {
		if accepted, err := r.Accept(ctx, changed); err != nil || accepted {
			return all, nil, err
		}
	}
	tools = []record.ToolRef{}
	for _, now := range all {
		i := slices.IndexFunc(present.Tools, func(was record.ToolRef) bool { return was.Name == now.Name })
		if i >= 0 {
			now.Digest = present.Tools[i].Digest
			tools = append(tools, now)
		}
	}
	return tools, held, nil
}
