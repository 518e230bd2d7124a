package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
)

// builtinLocation is the marketplace inside the program.
const builtinLocation = "builtin"

// shop is an opened marketplace with its index.
type shop struct {
	name   string // among several; "" where there is only one
	market *fetch.Marketplace
	index  *fetch.Index
	home   string
	bundle string // the bundle file in its place; "" for the marketplace itself
}

// from names the marketplace in words.
func (s *shop) from() string {
	if s.bundle != "" {
		return fmt.Sprintf("the bundle %s, made from %s", s.bundle, marketName(s.index.Location()))
	}
	return marketName(s.index.Location())
}

// close gives free what is open.
func (s *shops) close() {
	for _, one := range s.open {
		_ = one.market.Close() // only read from
	}
}

func marketName(location string) string {
	if location == builtinLocation {
		return "the built-in catalogue"
	}
	return location
}

// placeHint is what a marketplace can be.
const placeHint = "a marketplace is an https address, a folder with a connectors.json, or builtin"

// marketplace opens the marketplace at a location, with the keys that are
// pinned for it or that this program brings along.
func (a *app) marketplace(location, home string) (*fetch.Marketplace, error) {
	listed, err := readPlaces(home)
	if err != nil {
		return nil, err
	}
	o := a.marketOptions(location, home)
	m, err := fetch.Open(o)
	if err == nil {
		if p, ok := listed.at(m.Location()); ok && len(p.Keys) > 0 {
			o.Pinned, o.PinnedNeeded = p.Keys, p.Needed
			m, err = fetch.Open(o)
		}
	}
	if err != nil {
		return nil, withHint(usagef("%v", err), "%s", placeHint)
	}
	return m, nil
}

func (a *app) marketOptions(location, home string) fetch.Options {
	o := fetch.Options{
		Location: location, Builtin: a.hooks.builtin, CacheDir: filepath.Join(home, "cache"), TrustDir: filepath.Join(home, "trust"),
		Env: a.getenv, Now: a.hooks.now, Progress: a.showEvent, UserAgent: program + "/" + versionString(),
	}
	if a.hooks.builtin != nil && fetch.OneLocation(location) == a.publicLocation() {
		// The built-in tree is the public marketplace's own: its keys are those that this release vouches for.
		if keys, err := fs.ReadFile(a.hooks.builtin, "keys.json"); err == nil {
			o.Keys = keys
		}
	}
	return o
}

// publicLocation is the public marketplace; tests have one of their own.
func (a *app) publicLocation() string { return orElse(a.hooks.public, publicMarketplace) }

// places are the marketplaces of this run: the one that is named by flag,
// variable or settings file, else the public one and those that were added.
func (a *app) places(home string) ([]marketEntry, error) {
	listed, err := readPlaces(home)
	if err != nil {
		return nil, err
	}
	location, err := a.location(home)
	if err != nil {
		return nil, err
	}
	if location != "" {
		p, _ := listed.at(location)
		p.Location = location // with the password that may be in it
		return []marketEntry{p}, nil
	}
	all := listed.all()
	for i := range all {
		if all[i].Location == publicMarketplace {
			all[i].Location = a.publicLocation()
		}
	}
	if len(all) == 0 {
		return nil, withHint(usagef("there is no marketplace: the public one was removed and no other was added"), "add one with %s marketplace add URL, or name one with --index", program)
	}
	return all, nil
}

// shops are the opened marketplaces of this run.
type shops struct {
	open   []*shop
	closed []string // names of those that could not be read
}

// openShops reads the index of every marketplace of this run, or of those only that
// the wanted connectors name, where each names one (acme/gmail). One of several
// that cannot be read is told and left out; of a single one it is the error.
func (a *app) openShops(ctx context.Context, mode fetch.Freshness, wanted ...string) (*shops, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	list, err := a.places(home)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 {
		s, err := a.onlyShop(ctx, home, list[0].Location, mode)
		if err != nil {
			return nil, err
		}
		return &shops{open: []*shop{s}}, nil
	}
	list = onlyNamed(list, wanted)
	all := &shops{}
	var first error
	for _, p := range list {
		s, err := a.readShop(ctx, home, p.Location, mode)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && classifyOnly(err) == exitIntegrity:
			return nil, err // an index that is not believed is no network that is away
		case err != nil:
			first = errors.Join(first, err)
			all.closed = append(all.closed, p.Name)
			a.say("marketplace %s is left out: %s", p.Name, err)
			continue
		}
		s.name = p.Name
		all.open = append(all.open, s)
	}
	if len(all.open) == 0 {
		return nil, first
	}
	return all, nil
}

// onlyNamed leaves out the marketplaces that none of the wanted connectors is of. A
// connector without a marketplace, or of one that is not there, leaves all.
func onlyNamed(list []marketEntry, wanted []string) []marketEntry {
	names := map[string]bool{}
	for _, w := range wanted {
		market, _, qualified := strings.Cut(w, "/")
		if !qualified || !slices.ContainsFunc(list, func(p marketEntry) bool { return p.Name == market }) {
			return list
		}
		names[market] = true
	}
	if len(names) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(p marketEntry) bool { return !names[p.Name] })
}

// onlyShop reads the one marketplace of this run. When the public one cannot be
// reached a person is offered the built-in one; nothing switches by itself.
func (a *app) onlyShop(ctx context.Context, home, location string, mode fetch.Freshness) (*shop, error) {
	s, err := a.readShop(ctx, home, location, mode)
	var offline *fetch.UnreachableError
	var page *fetch.WebPageError
	if err == nil || location == builtinLocation || !errors.As(err, &offline) && !errors.As(err, &page) {
		return s, err
	}
	term := a.terminal()
	if term == nil {
		return nil, err
	}
	a.clearProgress()
	yes, terr := term.Confirm(ctx, "Use the connectors that come with this program instead?", a.wrapped(words(err)), "Use the built-in ones", "Stop")
	if terr != nil {
		return nil, terr
	}
	if !yes {
		return nil, &exitError{exitFailed, errors.New("stopped; nothing was changed")}
	}
	return a.readShop(ctx, home, builtinLocation, mode)
}

// readShop reads the index of one marketplace and says what is to be known
// about it.
func (a *app) readShop(ctx context.Context, home, location string, mode fetch.Freshness) (*shop, error) {
	m, err := a.marketplace(location, home)
	if err != nil {
		return nil, err
	}
	ix, err := m.Index(ctx, mode)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(location, "://") {
		return nil, withHint(err, "%s", placeHint)
	}
	if err != nil {
		return nil, err
	}
	if ix.Err() != nil {
		a.say("%v; using the index of %s", ix.Err(), age(a.hooks.now(), ix.Fetched()))
	}
	if t := ix.Trust(); t.Stale != nil {
		a.say("note: %s; nothing is installed from it", t.Stale)
	}
	a.noteIgnored(ix)
	return &shop{market: m, index: ix, home: home}, nil
}

// noteIgnored says once that nobody judges the signatures of an index.
func (a *app) noteIgnored(ix *fetch.Index) {
	if !ix.Trust().Ignored || a.noted[ix.Location()] {
		return
	}
	if a.noted == nil {
		a.noted = map[string]bool{}
	}
	a.noted[ix.Location()] = true
	a.say("note: %s calls its index signed, and none of its keys is pinned here, so its signatures are ignored; pin one with %s marketplace add %s --key RWQ…",
		marketName(ix.Location()), program, ix.Location())
}

// trustText says in one sentence how far an index is vouched for.
func trustText(t fetch.Trust, location string) string {
	switch {
	case t.Ignored && !t.Bundled:
		return "not checked: none of the keys that signed its index is pinned here"
	case t.Ignored:
		return "not checked: none of the keys that signed its index is pinned here; it is what the bundle says"
	case t.Bundled && !t.Signed:
		return "not signed: its index is what the bundle says"
	case t.Expired:
		return fmt.Sprintf("signed by %s; number %d, issued %s, RUN OUT since %s", strings.Join(t.Signers, ", "), t.Seq, t.Issued.Format("2006-01-02"), t.Expires.Format("2006-01-02"))
	case t.Builtin:
		return "it comes inside this program"
	case t.Signed:
		return fmt.Sprintf("signed by %s; number %d, issued %s, good until %s", strings.Join(t.Signers, ", "), t.Seq, t.Issued.Format("2006-01-02"), t.Expires.Format("2006-01-02"))
	case strings.HasPrefix(location, "https://"):
		return "not signed: its index is what the web server says"
	case strings.HasPrefix(location, "http://"):
		return "not signed, over plain http"
	}
	return "not signed: its index is what the folder has"
}

// allowed refuses a version that its marketplace took back, with a
// *takenBackError. It asks no network. An index that has run out stops
// nothing that is installed; what is not known since is said.
func (a *app) allowed(home string, r *record.Record) error {
	if r.Index.URL == "" {
		return nil
	}
	m, err := a.remembered(r.Index.URL, home)
	if err != nil {
		return nil // it is no address any more; what is installed stays
	}
	if err := a.takenBack(home, m, r); err != nil {
		return err
	}
	if stale := m.RunOut(); stale != nil {
		a.say("note: %s; whether version %d of %q was revoked since is not known", stale, r.Version, r.Connector)
	}
	return nil
}

// remembered opens a marketplace for what is known of it already. A list of marketplaces that cannot be read hides no revocation.
func (a *app) remembered(location, home string) (*fetch.Marketplace, error) {
	m, err := a.marketplace(location, home)
	if err != nil {
		m, err = fetch.Open(a.marketOptions(location, home))
	}
	return m, err
}

// revoked says that the marketplace of an activation took its version back: a
// *fetch.RevokedError. It asks no network.
func revoked(m *fetch.Marketplace, r *record.Record) error {
	digest := ""
	for _, f := range r.Files {
		if f.Path == "connector.json" {
			digest = f.SHA256
		}
	}
	reason, back, err := m.Revoked(r.Connector, int64(r.Version), digest)
	if err == nil && back {
		err = &fetch.RevokedError{ID: r.Connector, Version: r.Version, Reason: reason}
	}
	return err
}

// pruneCache removes old downloads that nothing installed names. It is no part of
// any command's success.
func (a *app) pruneCache(act *activate.Activator) {
	listed, err := act.Records().List()
	if err != nil {
		return
	}
	keep := map[string]bool{}
	for _, l := range listed {
		if l.Record == nil {
			return // what it names is not known
		}
		for _, f := range l.Record.Files {
			keep[f.SHA256] = true
		}
	}
	freed, err := fetch.Prune(filepath.Join(act.Home, "cache"), keep, a.hooks.now())
	if err != nil && a.verbose {
		a.say("note: %s", err)
	}
	if freed > 0 && a.verbose {
		a.say("old downloads removed from the cache: %s", size(freed))
	}
}
