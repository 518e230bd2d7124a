package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/manifest"
)

type marketOptions struct {
	name     string
	keys     []string
	needed   int
	unsigned bool
}

func (a *app) marketplaceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "marketplace", GroupID: "find", Short: "Add, list and remove marketplaces",
		Long: "Several marketplaces are searched side by side. Where two of them have a connector of the\n" +
			"same id, it is named with its marketplace: install acme/gmail.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &marketOptions{}
	add := &cobra.Command{
		Use:   "add URL",
		Short: "Add a marketplace, or pin the keys of one",
		Long: "add reads the marketplace once and puts it on the list. With --key its index has to be\n" +
			"signed by these keys, or by keys that they vouch for, from now on and for ever. Without\n" +
			"--key a marketplace that shows keys asks for the last characters of one, which you know\n" +
			"from elsewhere; one that is not signed is asked about, or wants --unsigned. URL is an https\n" +
			"address or a folder. With --key it need not be there now: bundles of it are held to its keys.",
		Example: "  skald-connectors marketplace add https://connectors.acme.example --key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n" +
			"  skald-connectors marketplace add /mnt/mirror --name mirror",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.addMarket(cmd.Context(), args[0], o) },
	}
	f := add.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "public `KEY` (RWQ…, or a .pub file) that vouches for it (repeatable)")
	f.IntVar(&o.needed, "threshold", 0, "how many of the keys have to sign (`N`; default: all of them)")
	f.StringVar(&o.name, "name", "", "`NAME` of the marketplace, as in install NAME/ID")
	f.BoolVar(&o.unsigned, "unsigned", false, "agree to a marketplace whose index nobody signs")
	list := &cobra.Command{
		Use: "list", Short: "List the marketplaces", Args: cobra.NoArgs,
		Example: "  skald-connectors marketplace list",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listMarkets(cmd.Context()) },
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Take a marketplace off the list", Args: cobra.ExactArgs(1),
		Long: "remove takes a marketplace off the list. What was installed from it stays and goes on working.\n" +
			"That its index is a signed one is not forgotten.",
		Example:           "  skald-connectors marketplace remove acme",
		ValidArgsFunction: a.completeMarkets,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.removeMarket(cmd.Context(), args[0]) },
	}
	c.AddCommand(add, list, remove)
	return c
}

func (a *app) addMarket(ctx context.Context, location string, o *marketOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	if u, err := url.Parse(location); err == nil && u.User != nil {
		return withHint(usagef("the address has a password in it, and the list of marketplaces is no place for one"), "leave it out, or name the marketplace with --index for one command")
	}
	if len(o.keys) > 0 && o.unsigned {
		return usagef("--key and --unsigned contradict each other")
	}
	listed, err := readPlaces(home)
	if err != nil {
		return err
	}
	p, err := a.newPlace(home, location, o, listed)
	if err != nil {
		return err
	}
	if err := a.vouchedFor(ctx, home, p, o, listed); err != nil {
		return err
	}
	ix, away := a.tryMarket(ctx, home, p)
	if away != nil && (len(p.Keys) == 0 || !isAway(away)) {
		return wrongKey(away, o)
	}
	err = editPlaces(ctx, home, func(now *places) error {
		if len(o.keys) == 0 && !sameKeys(listed, now, p.Location) { // what was settled above is by other keys
			return withHint(&exitError{exitFailed, fmt.Errorf("%s was not added: its keys were changed meanwhile", p.Location)}, "see %s marketplace list, and run this again", program)
		}
		again, err := a.newPlace(home, location, o, now)
		if err == nil {
			p.Name = again.Name
			now.put(*p, p.Location == a.publicLocation())
		}
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(marketLine(*p, ix))
	}
	if ix == nil {
		a.say("%s is added: %s. It cannot be read now (%v); of it, and of bundles made from it, only what its keys signed is believed", p.Name, p.Location, away)
		return nil
	}
	a.say("%s is added: %s, %s; %s", p.Name, p.Location, plural(ix.Len(), "connector", "connectors"), trustText(ix.Trust(), p.Location))
	a.noteIgnored(ix)
	return nil
}

// newPlace works out what would be listed.
func (a *app) newPlace(home, location string, o *marketOptions, listed *places) (*marketEntry, error) {
	opened, err := fetch.Open(a.marketOptions(location, home))
	if err != nil {
		return nil, usagef("the marketplace %q: %v", location, err)
	}
	p := &marketEntry{Location: opened.Location(), Needed: o.needed}
	if p.Location == builtinLocation {
		return nil, usagef("the built-in catalogue needs no place in the list: it is --index builtin")
	}
	keys, err := publicKeys(o.keys)
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		p.Keys = keyTexts(keys)
	}
	if o.needed < 0 || o.needed > len(p.Keys) {
		return nil, usagef("--threshold %d, and %s given", o.needed, plural(len(p.Keys), "key is", "keys are"))
	}
	if len(p.Keys) > 0 && p.Needed == 0 {
		p.Needed = len(p.Keys)
	}
	if len(listed.Listed) >= marketsMost {
		return nil, usagef("there are %d marketplaces already", len(listed.Listed))
	}
	before, known := listed.at(p.Location)
	if p.Location == a.publicLocation() {
		before.Name, known = publicName, true
	}
	if p.Name = o.name; p.Name == "" {
		p.Name = nameFor(p.Location)
		if known {
			p.Name = before.Name
		}
	}
	if p.Name == "" {
		return nil, withHint(usagef("no name can be made from %s", p.Location), "give it one with --name")
	}
	if err := manifest.ValidID(p.Name); err != nil || p.Name == builtinLocation {
		return nil, usagef("--name %q: it is made of lower-case letters, digits and -, and is not %s", p.Name, builtinLocation)
	}
	if other, taken := listed.named(p.Name); taken && other.Location != p.Location {
		if p.Name != publicName || p.Location != a.publicLocation() {
			return nil, withHint(usagef("the name %q is that of %s", p.Name, other.Location), "give it another one with --name")
		}
	}
	return p, nil
}

// tryMarket reads a marketplace under the keys that would be pinned.
func (a *app) tryMarket(ctx context.Context, home string, p *marketEntry) (*fetch.Index, error) {
	o := a.marketOptions(p.Location, home)
	o.Pinned, o.PinnedNeeded = p.Keys, p.Needed
	m, err := fetch.Open(o)
	if err != nil {
		return nil, err
	}
	ix, err := m.Index(ctx, fetch.Refresh)
	if err == nil && ix.Err() != nil {
		err = ix.Err()
	}
	return ix, err
}

// marketDoc is one marketplace as it is printed (docs/json.md).
type marketDoc struct {
	Name       string   `json:"name"`
	Location   string   `json:"location"`
	Keys       []string `json:"keys"`
	Threshold  int      `json:"threshold"`
	Signed     bool     `json:"signed"`
	Trust      string   `json:"trust"`
	Connectors int      `json:"connectors"` // -1: its index is not here yet
	Problem    string   `json:"problem,omitempty"`
}

func marketLine(p marketEntry, ix *fetch.Index) marketDoc {
	d := marketDoc{Name: p.Name, Location: p.Location, Keys: list(p.Keys), Threshold: p.Needed, Connectors: -1}
	if ix != nil {
		d.Connectors, d.Signed, d.Trust = ix.Len(), ix.Trust().Signed, trustText(ix.Trust(), p.Location)
	}
	return d
}

// listedPlaces reads the list of marketplaces of this run's home.
func (a *app) listedPlaces() (home string, listed *places, err error) {
	if home, err = a.home(); err == nil {
		listed, err = readPlaces(home)
	}
	return home, listed, err
}

func (a *app) listMarkets(ctx context.Context) error {
	home, listed, err := a.listedPlaces()
	if err != nil {
		return err
	}
	docs := []marketDoc{}
	for _, p := range listed.all() {
		docs = append(docs, a.lookAtMarket(ctx, home, p))
	}
	if a.json {
		return a.printJSON(map[string]any{"marketplaces": docs})
	}
	if len(docs) == 0 {
		a.say("no marketplace is listed; add one with %s marketplace add URL", program)
		return nil
	}
	rows := make([][]string, len(docs))
	for i, d := range docs {
		count := "-"
		if d.Connectors >= 0 {
			count = fmt.Sprint(d.Connectors)
		}
		state := orElse(d.Trust, "its index is not here yet")
		if d.Problem != "" {
			state = d.Problem
		}
		rows[i] = []string{d.Name, d.Location, count, state}
	}
	return a.table([]string{"NAME", "LOCATION", "CONNECTORS", "TRUST"}, rows)
}

// lookAtMarket says what is known of a marketplace without asking it.
func (a *app) lookAtMarket(ctx context.Context, home string, p marketEntry) marketDoc {
	m, err := a.marketplace(p.Location, home)
	var ix *fetch.Index
	if err == nil {
		ix, err = m.Index(ctx, fetch.Offline)
	}
	d := marketLine(p, ix)
	var away *fetch.UnreachableError
	switch {
	case err != nil && !errors.As(err, &away):
		d.Problem = err.Error()
	case ix != nil && ix.Trust().Stale != nil:
		d.Problem = ix.Trust().Stale.Error()
	}
	return d
}

func (a *app) removeMarket(ctx context.Context, name string) error {
	home, listed, err := a.listedPlaces()
	if err != nil {
		return err
	}
	missing := withHint(&exitError{exitNotFound, fmt.Errorf("there is no marketplace %q", name)}, "see %s marketplace list", program)
	p, ok := listed.named(name)
	if !ok {
		return missing
	}
	err = editPlaces(ctx, home, func(now *places) error {
		if p, ok = now.named(name); !ok { // another process was faster
			return missing
		}
		now.Listed = slices.DeleteFunc(now.Listed, func(m marketEntry) bool { return m.Name == name })
		now.NoPublic = now.NoPublic || p.Location == publicMarketplace
		return nil
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"removed": name})
	}
	a.say("%s is removed from the list", name)
	installed, err := record.Open(home).List()
	if err != nil {
		return err
	}
	for _, l := range installed {
		if l.Record != nil && fetch.OneLocation(l.Record.Index.URL) == p.Location {
			a.say("%s was installed from it and stays", l.Name)
		}
	}
	return nil
}

func (a *app) completeMarkets(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	home, err := a.home()
	if err == nil && len(args) == 0 {
		if listed, err := readPlaces(home); err == nil {
			for _, p := range listed.all() {
				if strings.HasPrefix(p.Name, prefix) {
					out = append(out, p.Name+"\t"+p.Location)
				}
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
