package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		GroupID: "find",
		Short:   "List what is installed",
		Long:    "list shows every installed connector with its state: ready, pending (saved unverified),\nunauthorized (a credential is missing), expired or broken. It asks no network.",
		Example: "  skald-connectors list\n  skald-connectors list --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context()) },
	}
}

// listLine is one activation as list prints it.
type listLine struct {
	Name          string           `json:"name"`
	Connector     string           `json:"connector"`
	Version       manifest.Version `json:"version"`
	VersionString string           `json:"version_string"`
	State         string           `json:"state"`
	Update        manifest.Version `json:"update"`                   // 0 = none known
	UpdateRevoked string           `json:"update_revoked,omitempty"` // why the marketplace took that version back
	Held          string           `json:"held,omitempty"`           // why upgrade passes over it
	Pinned        bool             `json:"pinned"`
	Unprotected   bool             `json:"unprotected"`             // it runs without a sandbox
	TestFailed    bool             `json:"test_failed"`             // the last verify said no
	Marketplace   string           `json:"marketplace,omitempty"`   // its name, where it is a listed one
	Revoked       string           `json:"revoked,omitempty"`       // why the marketplace took this version back
	Expired       bool             `json:"expired_index,omitempty"` // it came from a bundle whose index had run out
	HeldTools     []string         `json:"held_tools,omitempty"`    // tools that the last session, or the upgrade, held back
	Mounts        []string         `json:"mounts"`
	Problem       string           `json:"problem,omitempty"`

	updateName string // how people call the version that Update is
}

func (a *app) list(ctx context.Context) error {
	home, listed, err := a.installed()
	if err != nil {
		return err
	}
	store := install.Open(home)
	lines := make([]listLine, len(listed))
	for i, l := range listed {
		lines[i] = describe(store, l)
		if l.Err == nil && lines[i].State == string(record.Ready) {
			lines[i].State = string(a.stateNow(l.Record))
		}
		if l.Err == nil {
			lines[i].HeldTools = heldNow(home, l.Record)
		}
	}
	a.addMarkets(ctx, home, listed, lines)
	if a.json {
		return a.printJSON(map[string]any{"activations": lines})
	}
	if len(lines) == 0 {
		a.say("nothing is installed; find something with %s search", program)
		return nil
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{l.Name, l.Connector, l.VersionString, l.stateText(), l.updateText(), strings.Join(l.Mounts, ", "), l.Marketplace}
	}
	header := []string{"NAME", "CONNECTOR", "VERSION", "STATE", "UPDATE", "MOUNTED IN", "FROM"}
	if oneMarket(lines) {
		header = header[:len(header)-1]
		for i := range rows {
			rows[i] = rows[i][:len(header)]
		}
	}
	if err := a.table(header, rows); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Problem != "" {
			a.say("%s: %s", l.Name, form.Clean(l.Problem))
		}
	}
	return nil
}

// stateNow is the state of an activation at this moment. Where no credential has an end, nothing else is opened for it.
func (a *app) stateNow(r *record.Record) record.State {
	home, err := a.home()
	if err != nil {
		return r.AuthState
	}
	act := &activate.Activator{Home: home, Store: install.Open(home), Now: a.hooks.now}
	return act.StateNow(r)
}

// stateText is the state and what else should be known.
func (l *listLine) stateText() string {
	if l.Revoked != "" {
		return "REVOKED"
	}
	state := l.State
	if l.Unprotected {
		state += ", no sandbox"
	}
	if len(l.HeldTools) > 0 {
		state += ", " + plural(len(l.HeldTools), "tool", "tools") + " held"
	}
	if l.TestFailed {
		state += ", last test failed"
	}
	if l.Expired {
		state += ", from an index that had run out"
	}
	return state
}

// updateText is what list says of a newer version, and of upgrades that pass over it.
func (l *listLine) updateText() string {
	var words []string
	if l.Update > 0 {
		words = append(words, orElse(l.updateName, fmt.Sprintf("version %d", l.Update)))
	}
	if l.UpdateRevoked != "" {
		words = append(words, "REVOKED")
	}
	if l.Held == heldRolledBack {
		words = append(words, "rolled back")
	}
	if l.Pinned {
		words = append(words, "pinned")
	}
	return strings.Join(words, ", ")
}

// oneMarket tells whether everything came from one marketplace.
func oneMarket(lines []listLine) bool {
	for _, l := range lines {
		if l.Marketplace != lines[0].Marketplace {
			return false
		}
	}
	return true
}

func describe(store *install.Store, l record.Listed) listLine {
	line := listLine{Name: l.Name, State: "broken", Mounts: []string{}}
	if l.Err != nil {
		line.Problem = l.Err.Error()
		return line
	}
	r := l.Record
	line.Connector, line.Version, line.VersionString, line.State = r.Connector, r.Version, displayVersion(r), string(r.AuthState)
	line.Pinned = r.Pinned
	line.Unprotected = r.Sandbox.Backend == string(sandbox.None) && !r.Remote()
	line.Expired = r.Index.Expired
	line.TestFailed = r.Verify.Ran && !r.Verify.OK
	if _, err := os.Stat(store.WorkDir(r.Name, r.Ref())); err != nil {
		line.State = "broken"
		line.Problem = "its files are missing: " + err.Error()
	}
	for _, d := range r.Deps {
		if _, err := store.FindTree(d.Hash); err != nil {
			line.State = "broken"
			line.Problem = "its packages are missing: " + err.Error() + "; " + program + " verify " + r.Name + " installs them again"
		}
	}
	for _, m := range r.Mounts {
		if !slices.Contains(line.Mounts, m.Client) {
			line.Mounts = append(line.Mounts, m.Client)
		}
	}
	return line
}

func displayVersion(r *record.Record) string {
	return manifest.DisplayVersion(manifest.Entry{Version: r.Version, VersionString: r.VersionString})
}

// addMarkets notes what the indexes that are here already say: greater versions,
// and versions that were taken back. Without one nothing is said, since list
// asks no network. Each activation is held against the marketplace it came from.
func (a *app) addMarkets(ctx context.Context, home string, listed []record.Listed, lines []listLine) {
	known, err := readPlaces(home)
	if err != nil {
		a.say("%s", err)
		known = &places{}
	}
	from := map[string]*fetch.Index{}
	for i, l := range listed {
		if l.Record == nil || l.Record.Index.URL == "" {
			continue
		}
		url := l.Record.Index.URL
		if p, ok := known.at(url); ok {
			lines[i].Marketplace = p.Name
		}
		m, err := a.marketplace(url, home)
		if err != nil {
			continue
		}
		a.addRevoked(home, m, l.Record, &lines[i])
		ix, asked := from[url]
		if !asked {
			ix, _ = m.Index(ctx, fetch.Offline)
			from[url] = ix
		}
		if ix == nil {
			continue
		}
		versions, err := ix.Versions([]string{l.Record.Connector})
		if err == nil && versions[l.Record.Connector] > l.Record.Version {
			lines[i].Update = versions[l.Record.Connector]
			lines[i].Held = heldOf(l.Record, lines[i].Update)
			if e, err := ix.Lookup(l.Record.Connector); err == nil && e.Version == lines[i].Update {
				lines[i].updateName = manifest.DisplayVersion(e)
				lines[i].UpdateRevoked, _ = ix.Revoked(e)
			}
		}
	}
}

// addRevoked notes that the marketplace took the installed version back.
func (a *app) addRevoked(home string, m *fetch.Marketplace, r *record.Record, line *listLine) {
	err := a.takenBack(home, m, r)
	var back *takenBackError
	switch {
	case errors.As(err, &back):
		line.Revoked, line.Problem = back.err.Reason, err.Error()+"; "+back.way
	case err != nil:
		line.Problem = err.Error()
	}
}

type searchOptions struct {
	words                      []string
	tag, kind, scope, requires string
}

func (a *app) searchCommand() *cobra.Command {
	o := &searchOptions{}
	c := &cobra.Command{
		Use:     "search [WORD…]",
		GroupID: "find",
		Short:   "Search the marketplace",
		Long:    "search ranks the connectors of the marketplace over id, name, tags and description.\nWithout words it lists all. A terminal shows the first 100 of a marketplace.",
		Example: "  skald-connectors search mail\n  skald-connectors search --tag google --type mcp_local",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.words = args
			return a.search(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.tag, "tag", "", "only with this `TAG`")
	f.StringVar(&o.kind, "type", "", "only of this `TYPE`: mcp_local or mcp_remote")
	f.StringVar(&o.scope, "scope", "", "only of this `SCOPE`: user or global")
	f.StringVar(&o.requires, "requires", "", "only what needs `THIS`: API_KEY, OAUTH, NODE, PYTHON…")
	return c
}

// searchLine is one result of search.
type searchLine struct {
	ID            string           `json:"id"`
	Marketplace   string           `json:"marketplace,omitempty"`
	Revoked       string           `json:"revoked,omitempty"`
	Name          string           `json:"name"`
	Type          string           `json:"type"`
	Scope         string           `json:"scope"`
	Version       manifest.Version `json:"version"`
	VersionString string           `json:"version_string"`
	Description   string           `json:"description"`
	Tags          []string         `json:"tags"`
	Broken        string           `json:"broken,omitempty"`
}

func (a *app) search(ctx context.Context, o *searchOptions) error {
	all, err := a.openShops(ctx, fetch.Cached)
	if err != nil {
		return err
	}
	lines := []searchLine{}
	for _, s := range all.open {
		found, err := s.index.Search(fetch.Query{Words: o.words, Tag: o.tag, Type: o.kind, Scope: o.scope, Requires: o.requires})
		if err != nil {
			return err
		}
		for _, e := range found {
			lines = append(lines, foundLine(s, e))
		}
	}
	if a.json {
		if err := a.printJSON(searchDocument(all, lines)); err != nil {
			return err
		}
		if a.json = false; len(lines) > 0 { // the one document is out
			return nil
		}
	}
	if len(lines) == 0 {
		return withHint(&exitError{exitNotFound, errors.New("nothing in " + all.from() + " matches")}, "see everything that is there with %s search", program)
	}
	return a.printFound(lines)
}

func foundLine(s *shop, e manifest.Entry) searchLine {
	l := searchLine{ID: e.ID, Marketplace: s.name, Name: e.Name, Type: e.Type, Scope: e.Scope, Version: e.Version, VersionString: e.VersionString, Description: e.Description, Tags: e.Tags, Broken: e.Broken}
	if l.Tags == nil {
		l.Tags = []string{}
	}
	l.Revoked, _ = s.index.Revoked(e)
	return l
}

// searchDocument is the JSON of search (docs/json.md).
func searchDocument(all *shops, lines []searchLine) map[string]any {
	doc := map[string]any{"results": lines}
	if all.single() {
		doc["index"] = all.open[0].index.Location()
		return doc
	}
	from := map[string]string{}
	for _, s := range all.open {
		from[s.name] = s.index.Location()
	}
	doc["marketplaces"], doc["unreachable"] = from, list(all.closed)
	return doc
}

// foundShown is how many hits of a marketplace a terminal shows; who reads more than these, the best ones, wants a word
// more, or a file.
const foundShown = 100

// bestOf leaves the best hits of each marketplace.
func bestOf(lines []searchLine, most int) []searchLine {
	seen := map[string]int{}
	return slices.DeleteFunc(lines, func(l searchLine) bool {
		seen[l.Marketplace]++
		return seen[l.Marketplace] > most
	})
}

func (a *app) printFound(lines []searchLine) error {
	total := len(lines)
	if isTerminal(a.stdout) {
		lines = bestOf(lines, foundShown)
	}
	if left := total - len(lines); left > 0 {
		defer a.say("%s not shown: add a word, or see all of them with | less", plural(left, "more is", "more are"))
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		text, id := l.Description, l.ID
		switch {
		case l.Broken != "":
			text = "cannot be installed: " + l.Broken
		case l.Revoked != "":
			text = "REVOKED: " + l.Revoked
		}
		if l.Marketplace != "" {
			id = l.Marketplace + "/" + l.ID
		}
		rows[i] = []string{id, manifest.DisplayVersion(manifest.Entry{Version: l.Version, VersionString: l.VersionString}), l.Name, text}
	}
	return a.tableCut([]string{"ID", "VERSION", "NAME", "DESCRIPTION"}, rows)
}
