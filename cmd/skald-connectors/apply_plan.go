package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/mount"
)

// goneError says that no place has the version of the set any more (exit 4).
type goneError struct{ msg string }

func (e *goneError) Error() string { return e.msg }

// otherBytesError says that a marketplace has the version of the set with other bytes (exit 6).
type otherBytesError struct{ msg string }

func (e *otherBytesError) Error() string { return e.msg }

// setCode is what the errors of a set mean.
func setCode(err error) (int, string, bool) {
	var gone *goneError
	var other *otherBytesError
	switch {
	case errors.As(err, &gone):
		return exitNotFound, "take the newest one with --latest, or bring the old one in a bundle (--bundle FILE)", true
	case errors.As(err, &other):
		return exitIntegrity, "one of the two was changed; ask who wrote the set, or who publishes the connector", true
	}
	return 0, "", false
}

// planMember finds out what one activation of the set needs here. Nothing is changed.
func (a *app) planMember(ctx context.Context, act *activate.Activator, m setMember, o *applyOptions, secrets map[string]activate.Given) *applyStep {
	s := &applyStep{Name: m.Name, Action: stepFailed, Asks: []string{}, Changes: []string{}, Mounts: []string{}, member: m}
	s.opts = &installOptions{ids: []string{m.Connector}, as: m.Name, agreeFlags: o.agreeFlags, packageFlags: packageFlags{depsLimit: depsLimit{depsTimeout}, scripts: m.Scripts},
		sandbox: orElse(m.Sandbox.Mode, "auto"), allow: m.Grant.Allow, deny: m.Grant.Deny, noMount: o.noMount, expired: o.expired}
	rec, err := act.Records().Read(m.Name)
	var absent *record.NotInstalledError
	switch {
	case errors.As(err, &absent):
		err = a.planInstall(ctx, act, s, o, secrets)
	case err == nil:
		err = a.planChange(s, rec, o)
	}
	if err == nil && !o.noMount {
		s.Mounts = a.missingMounts(act, m, rec)
		if len(s.Mounts) > 0 && s.Action == stepSame {
			s.Action = stepChange
		}
	}
	if err != nil {
		s.err, s.Message = err, err.Error()
		if s.Action != stepDiffers {
			s.Action = stepFailed
		}
	}
	return s
}

// missingMounts are the clients of the set that are here and do not have it.
func (a *app) missingMounts(act *activate.Activator, m setMember, rec *record.Record) []string {
	out := []string{}
	for _, c := range act.Mounts.Clients() {
		has := rec != nil && slices.ContainsFunc(rec.Mounts, func(x record.MountRef) bool { return x.Client == c.ID })
		if c.Detected && c.Problem == "" && slices.Contains(m.Mounts, c.ID) && !has {
			out = append(out, c.ID)
		}
	}
	if dir := a.getenv(configDirVariable); dir != "" && slices.Contains(m.Mounts, mount.Engine) {
		file := act.Mounts.EngineFile(dir)
		if rec == nil || !slices.ContainsFunc(rec.Mounts, func(x record.MountRef) bool { return x.Client == mount.Engine && x.File == file }) {
			out = append(out, mount.Engine)
		}
	}
	return out
}

// planChange compares an activation that is here with the set's.
func (a *app) planChange(s *applyStep, rec *record.Record, o *applyOptions) error {
	m := s.member
	s.What = fmt.Sprintf("%s %s", rec.Connector, displayVersion(rec))
	if rec.Connector != m.Connector {
		s.Action = stepDiffers
		return withHint(usagef("%q is here as another connector, %q", m.Name, rec.Connector), "remove it first with %s uninstall %s", program, m.Name)
	}
	if rec.Version != m.Version || !m.samePins(rec.Pins()) {
		if !o.latest || rec.Version < m.Version {
			s.Action = stepDiffers
			return withHint(&exitError{exitFailed, fmt.Errorf("%q is here in version %d, and the set has version %d", m.Name, rec.Version, m.Version)},
				"bring it there with %s upgrade or rollback, or remove it first; --latest is content with a newer one", program)
		}
	}
	s.Action = stepSame
	s.compareSettings(rec)
	slices.Sort(s.Changes)
	slices.Sort(s.detail)
	if len(s.Changes) > 0 {
		s.Action = stepChange
	}
	return nil
}

// planInstall finds the bytes of the set and plans an install of them.
func (a *app) planInstall(ctx context.Context, act *activate.Activator, s *applyStep, o *applyOptions, secrets map[string]activate.Given) error {
	m := s.member
	grants, withheld, err := (&accessFlags{grant: m.Sandbox.Grants, withhold: m.Sandbox.Withheld}).read()
	if err != nil {
		return err
	}
	s.opts.grants, s.opts.withheld = grants, withheld
	s.given = map[string]activate.Given{}
	for name, value := range m.Env {
		s.given[name] = setValue(value)
	}
	for name, v := range secrets {
		s.given[name] = v
	}
	if m.Manifest != "" && o.dryRun {
		s.Action, s.What, s.Asks = stepInstall, m.Connector+" as it was adopted", append(s.Asks, m.Secrets...)
		return nil
	}
	entry, shop, err := a.find(ctx, act.Home, m, o)
	if err != nil {
		return err
	}
	p, err := act.Plan(ctx, shop.market, shop.index, entry, m.Name, activate.PlanOptions{Mode: s.opts.sandbox, Grants: grants, Withheld: withheld, Given: s.given})
	if err != nil {
		return err
	}
	if entry.Version == m.Version && !m.sameManifest(p.ManifestDigest) {
		return &otherBytesError{fmt.Sprintf("version %d of %q in %s has another manifest than the set's", m.Version, m.Connector, shop.from())}
	}
	if err := a.sameKeystore(p); err != nil {
		return err
	}
	for _, f := range p.Fields {
		if _, given := s.given[f.Name]; !given && (f.Secret && slices.Contains(m.Secrets, f.Name) || f.Required && f.Default == "") {
			s.Asks = append(s.Asks, f.Name)
		}
	}
	s.Action, s.plan, s.shop = stepInstall, p, shop
	s.What = fmt.Sprintf("%s %s from %s", m.Connector, manifest.DisplayVersion(p.Entry), shop.from())
	return nil
}

func (m *setMember) sameManifest(digest string) bool {
	return slices.ContainsFunc(m.Files, func(f setFile) bool { return f.Path == "connector.json" && strings.EqualFold(f.SHA256, digest) })
}

// has tells whether an entry pins the files of the set; what a remote connector's index
// leaves unpinned is compared when the manifest is here.
func (m *setMember) has(e manifest.Entry) bool {
	files := e.Files
	if _, pinned := e.Pin("connector.json"); !pinned {
		files = append(slices.Clone(files), manifest.File{Path: "connector.json"})
		if i := slices.IndexFunc(m.Files, func(f setFile) bool { return f.Path == "connector.json" }); i >= 0 {
			files[len(files)-1].SHA256 = m.Files[i].SHA256
		}
	}
	return e.Version == m.Version && m.samePins(files)
}

// find looks for the version of the set: in bundles, in the index that is here already
// (its files may be in the cache), in the marketplace.
func (a *app) find(ctx context.Context, home string, m setMember, o *applyOptions) (manifest.Entry, *shop, error) {
	if m.Manifest != "" {
		s, err := a.marketOfOne(ctx, home, m.Name, "Adopted on another machine.", []byte(m.Manifest))
		if err != nil {
			return manifest.Entry{}, nil, err
		}
		e, err := s.index.Lookup(m.Connector)
		return e, s, err
	}
	var newest manifest.Entry
	var at *shop
	look := func(s *shop) bool {
		e, err := s.index.Lookup(m.Connector)
		if err != nil {
			return false
		}
		if m.has(e) || at == nil || e.Version > newest.Version {
			newest, at = e, s
		}
		return m.has(e)
	}
	for _, file := range o.bundles {
		s, err := a.bundleFor(ctx, home, file, m.Connector, o)
		if err != nil {
			return newest, nil, err
		}
		if s != nil && look(s) {
			return newest, s, nil
		}
	}
	location := orElse(a.indexFlag, m.Index)
	if s, err := a.readShop(ctx, home, location, fetch.Offline); err == nil && look(s) {
		return newest, s, nil
	}
	s, err := a.readShop(ctx, home, location, fetch.Refresh)
	if err == nil && look(s) {
		return newest, s, nil
	}
	switch {
	case at == nil && err != nil:
		return newest, nil, err
	case at == nil:
		return newest, nil, &goneError{fmt.Sprintf("%q is gone from %s", m.Connector, marketName(location))}
	case newest.Version == m.Version:
		return newest, nil, &otherBytesError{fmt.Sprintf("version %d of %q in %s has other files than the set's", m.Version, m.Connector, at.from())}
	case o.latest && newest.Version > m.Version:
		return newest, at, nil
	}
	return newest, nil, &goneError{fmt.Sprintf("version %d of %q is gone from %s, which has version %d", m.Version, m.Connector, at.from(), newest.Version)}
}

// bundleFor opens a bundle; nil when it holds another connector.
func (a *app) bundleFor(ctx context.Context, home, file, connector string, o *applyOptions) (*shop, error) {
	market, err := a.bundleMarket(home, &installOptions{bundle: file, expired: o.expired})
	if err != nil {
		return nil, err
	}
	if market.Bundled() != connector {
		return nil, market.Close()
	}
	ix, err := market.Index(ctx, fetch.Offline)
	if err != nil {
		return nil, errors.Join(err, market.Close())
	}
	return &shop{market: market, index: ix, home: home, bundle: file}, nil
}

// setValue is a setting of a set, which is no secret.
func setValue(value string) activate.Given {
	return activate.Given{Value: keystore.NewSecret(value), Source: "the set", Public: true}
}

// dropAdopted takes away what was written down of adopted connectors that are not installed after all.
func dropAdopted(act *activate.Activator, want *set) {
	for _, m := range want.Activations {
		if m.Manifest != "" && !act.Records().Taken(m.Name) {
			_ = os.RemoveAll(adoptedDir(act.Home, m.Name)) // what stays, the next one removes
		}
	}
}
