package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/manifest"
)

// Why a version that is there is not put in place.
const (
	heldPinned     = "pinned"
	heldRolledBack = "rolled_back"
)

// update is one activation whose marketplace has a greater version.
type update struct {
	rec   *record.Record
	shop  *shop
	entry manifest.Entry
	held  string // heldPinned or heldRolledBack; "" = it can be put in place

	revoked string // why the marketplace took the version of entry back
}

// updates is what asking the marketplaces of a set of activations gave.
type updates struct {
	found  []update
	failed []failed
	old    []string // marketplaces of which only an index of before is known
}

// idle says that nothing newer is known, and how much that is worth.
func idle(old []string) string {
	if len(old) == 0 {
		return "everything is up to date"
	}
	return "nothing newer is known here, by an older index of " + strings.Join(old, ", ")
}

// failed is what could not be done for one activation.
type failed struct {
	name string
	err  error
}

// findUpdates asks the marketplace that each activation came from. With --index only
// those of that marketplace are looked at. What cannot be asked hides nothing else.
func (a *app) findUpdates(ctx context.Context, home string, listed []record.Listed, mode fetch.Freshness) *updates {
	u := &updates{}
	shops := map[string]*shop{}
	errs := map[string]error{}
	for _, l := range listed {
		if l.Err != nil {
			u.failed = append(u.failed, failed{l.Name, l.Err})
			continue
		}
		from := l.Record.Index.URL
		if _, asked := shops[from]; !asked && errs[from] == nil {
			shops[from], errs[from] = a.updateShop(ctx, home, from, mode)
			if s := shops[from]; s != nil && s.index.Err() != nil {
				u.old = append(u.old, marketName(s.index.Location()))
			}
		}
		err := errs[from]
		if err == nil && shops[from] != nil {
			err = u.look(shops[from], l.Record)
		}
		if err != nil {
			u.failed = append(u.failed, failed{l.Name, err})
		}
	}
	return u
}

// updateShop opens the marketplace of an activation; nil where --index names another.
func (a *app) updateShop(ctx context.Context, home, location string, mode fetch.Freshness) (*shop, error) {
	if a.indexFlag == "" || a.indexFlag == location {
		return a.readShop(ctx, home, location, mode)
	}
	named, err := a.marketplace(a.indexFlag, home)
	if err != nil || named.Location() != fetch.OneLocation(location) {
		return nil, err
	}
	return a.readShop(ctx, home, location, mode)
}

// look compares one activation with its entry. A connector that its marketplace has no
// longer is no failure: what is installed goes on.
func (u *updates) look(s *shop, rec *record.Record) error {
	e, err := s.index.Lookup(rec.Connector)
	var gone *fetch.NotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil || e.Version <= rec.Version {
		return err
	}
	reason, _ := s.index.Revoked(e)
	u.found = append(u.found, update{rec: rec, shop: s, entry: e, held: heldOf(rec, e.Version), revoked: reason})
	return nil
}

// heldOf says why an upgrade passes over a version; "" = it does not.
func heldOf(rec *record.Record, v manifest.Version) string {
	switch {
	case rec.Pinned:
		return heldPinned
	case v <= rec.PassOver:
		return heldRolledBack
	}
	return ""
}

// heldText says why a version is not put in place.
func (u *update) heldText() string {
	var words []string
	if u.revoked != "" {
		words = append(words, "REVOKED: "+u.revoked)
	}
	switch u.held {
	case heldPinned:
		words = append(words, "pinned")
	case heldRolledBack:
		words = append(words, "rolled back")
	}
	return strings.Join(words, ", ")
}

func (a *app) outdatedCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "outdated",
		GroupID: "find",
		Short:   "List what has a newer version",
		Long: "outdated asks the marketplace that each installed connector came from, and lists those\n" +
			"with a greater version there. A pinned connector and a version that was rolled back from\n" +
			"are listed and marked: upgrade passes over them. Where a marketplace cannot be asked, and no\n" +
			"index of it is here, the exit code says so.",
		Example: "  skald-connectors outdated\n  skald-connectors outdated --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.outdated(cmd.Context()) },
	}
}

// outdatedLine is one connector as outdated prints it.
type outdatedLine struct {
	Name            string           `json:"name"`
	Connector       string           `json:"connector"`
	Version         manifest.Version `json:"version"`
	VersionString   string           `json:"version_string"`
	Available       manifest.Version `json:"available"`
	AvailableString string           `json:"available_string"`
	Released        string           `json:"released"`
	Index           string           `json:"index"`
	Held            string           `json:"held,omitempty"`
	Revoked         string           `json:"revoked,omitempty"`
}

func lineOfUpdate(u update) outdatedLine {
	return outdatedLine{
		Name: u.rec.Name, Connector: u.rec.Connector, Version: u.rec.Version, VersionString: displayVersion(u.rec),
		Available: u.entry.Version, AvailableString: manifest.DisplayVersion(u.entry), Released: u.entry.ReleaseDate,
		Index: u.shop.index.Location(), Held: u.held, Revoked: u.revoked,
	}
}

// revokedLine is an installed version that its marketplace took back, as outdated prints it.
type revokedLine struct {
	Name    string           `json:"name"`
	Version manifest.Version `json:"version"`
	Reason  string           `json:"reason"`
	WayOut  string           `json:"way_out"`
}

// revokedHere is asked after the marketplaces were.
func (a *app) revokedHere(listed []record.Listed) []revokedLine {
	out := []revokedLine{}
	for _, l := range listed {
		if l.Record == nil {
			continue
		}
		if back := a.takenBackHere(l.Record); back != nil {
			out = append(out, revokedLine{l.Name, l.Record.Version, back.err.Reason, back.way})
		}
	}
	return out
}

func (a *app) outdated(ctx context.Context) error {
	home, listed, err := a.installed()
	if err != nil {
		return err
	}
	u := a.findUpdates(ctx, home, listed, fetch.Refresh)
	lines, rows := []outdatedLine{}, [][]string{}
	for _, x := range u.found {
		l := lineOfUpdate(x)
		lines = append(lines, l)
		rows = append(rows, []string{l.Name, l.Connector, l.VersionString, l.AvailableString, l.Released, x.heldText()})
	}
	back := a.revokedHere(listed)
	if a.json {
		err := a.printJSON(map[string]any{"outdated": lines, "revoked": back, "from_before": list(u.old), "failed": failures(u.failed)})
		return cmp.Or(err, a.notAsked(u.failed, len(listed)))
	}
	for _, f := range u.failed {
		a.say("%s: %v", f.name, f.err)
	}
	for _, r := range back {
		a.say("%s: its marketplace revoked version %d, which is here: %s; %s", r.Name, r.Version, r.Reason, r.WayOut)
	}
	switch {
	case len(listed) == 0:
		a.say("nothing is installed")
	case len(rows) == 0 && len(u.failed)+len(back) == 0:
		a.say("%s", idle(u.old))
	case len(rows) > 0:
		err = a.table([]string{"NAME", "CONNECTOR", "VERSION", "AVAILABLE", "RELEASED", ""}, rows)
	}
	return cmp.Or(err, a.notAsked(u.failed, len(listed)))
}

// notAsked ends outdated where it has no answer for a connector: "nothing newer" is not
// what a script may read from it.
func (a *app) notAsked(list []failed, total int) error {
	return a.someFailed(list, total, "could not be asked about")
}

func failures(list []failed) []failure {
	out := []failure{}
	for _, f := range list {
		out = append(out, failure{Name: f.name, Error: words(f.err)})
	}
	return out
}

// someFailed is the end of a command that went on after a failure: the first decides.
func (a *app) someFailed(list []failed, total int, what string) error {
	if len(list) == 0 {
		return nil
	}
	if first := list[0].err; classifyOnly(first) == exitInterrupted {
		return first
	}
	a.json = false // the one document is out, and every error is said
	return &exitError{classifyOnly(list[0].err), fmt.Errorf("%d of %s %s", len(list), plural(total, "connector", "connectors"), what)}
}
