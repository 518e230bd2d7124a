package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/install/deps"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

func (a *app) infoCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "info ID",
		GroupID:           "find",
		Short:             "Show everything about a connector",
		Long:              "info shows what a connector does, who publishes it, what runs, which settings it asks for\nand its files with their digests; for an installed one also its state and what changed.",
		Example:           "  skald-connectors info email\n  skald-connectors info email --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.info(cmd.Context(), args[0]) },
	}
}

// about is what info knows: the marketplace's side, the installed side, or both.
type about struct {
	entry    *manifest.Entry
	manifest *manifest.Manifest
	diags    []manifest.Diagnostic
	packages []deps.Set
	from     string
	trust    string // how far the index is vouched for
	revoked  string // why the marketplace took this version back
	records  []*record.Record
}

func (a *app) info(ctx context.Context, id string) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	k := &about{}
	damaged, err := installedAs(record.Open(home), id, k)
	if err != nil {
		return err
	}
	if len(k.records) > 0 {
		a.lookUpInstalled(ctx, home, k)
	} else if err := a.lookUp(ctx, id, k); err != nil && damaged == nil {
		return err
	}
	if damaged != nil {
		if k.entry == nil {
			return damaged
		}
		a.say("%s", damaged)
	}
	if a.json {
		return a.printJSON(k.document())
	}
	for _, rec := range k.records {
		a.printRecord(k, rec)
	}
	if k.entry != nil {
		a.printEntry(k)
	}
	return nil
}

// lookUpInstalled asks the marketplace that an installed connector came from,
// unless another one is named; that it cannot be asked is only said.
func (a *app) lookUpInstalled(ctx context.Context, home string, k *about) {
	rec := k.records[0]
	location := rec.Index.URL
	if a.indexFlag != "" || location == "" {
		location, _ = a.location(home)
	}
	s, err := a.readShop(ctx, home, location, fetch.Cached)
	if err == nil {
		err = a.lookFor(ctx, s, rec.Connector, k)
	}
	if err != nil {
		a.say("what the marketplace says of it is not shown: %s", err)
	}
}

// installedAs gathers the activation of that name, or those of the connector
// of that id. A damaged record is returned apart: it hides nothing else.
func installedAs(records record.Store, id string, k *about) (damaged, err error) {
	list, err := records.List()
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		switch {
		case l.Err != nil && l.Name == id:
			damaged = l.Err
		case l.Record != nil && l.Name == id:
			k.records = append([]*record.Record{l.Record}, k.records...)
		case l.Record != nil && l.Record.Connector == id:
			k.records = append(k.records, l.Record)
		}
	}
	return damaged, nil
}

// lookUp reads the chosen marketplace.
func (a *app) lookUp(ctx context.Context, id string, k *about) error {
	all, err := a.openShops(ctx, fetch.Cached, id)
	if err != nil {
		return err
	}
	s, e, err := all.lookup(id)
	if err != nil {
		return err
	}
	a.look(ctx, s, e, k)
	return nil
}

// lookFor reads the index entry too.
func (a *app) lookFor(ctx context.Context, s *shop, id string, k *about) error {
	e, err := s.index.Lookup(id)
	if err == nil {
		a.look(ctx, s, e, k)
	}
	return err
}

// look reads the manifest of an entry where it can be had.
func (a *app) look(ctx context.Context, s *shop, e manifest.Entry, k *about) {
	k.entry, k.from, k.trust = &e, s.from(), trustText(s.index.Trust(), s.index.Location())
	if s.name != "" {
		k.from = fmt.Sprintf("%s (%s)", s.from(), s.name)
	}
	k.revoked, _ = s.index.Revoked(e)
	if k.revoked != "" {
		return
	}
	pre, err := s.market.Preview(ctx, s.index, e, deps.FileNames()...)
	if err != nil {
		a.say("its manifest cannot be read: %s", err)
		return
	}
	k.entry, k.manifest, k.diags = &pre.Entry, pre.Manifest, pre.Diagnostics
	if k.packages, err = deps.Load(pre.Manifest, pre.Open); err != nil {
		a.say("it cannot be installed: %s", words(err))
	}
}

// row writes one line of info: a label and a text that is wrapped behind it.
func (a *app) row(b *strings.Builder, label, text string) {
	if text != "" {
		b.WriteString(labelRow(label, form.Clean(text), a.width()))
	}
}

// fileRows lists files in columns; as text where one of them would not fit a terminal.
func (a *app) fileRows(b *strings.Builder, files []manifest.File) {
	const columns = "  %-10s%s  %9s  %s\n"
	before := cells(fmt.Sprintf(columns, "", short(""), "", "")) - 1
	broad := func(f manifest.File) bool { return before+cells(form.Clean(f.Path)) > a.width() }
	asText := a.width() <= narrow || isTerminal(a.stdout) && slices.ContainsFunc(files, broad)
	label := "files"
	for _, f := range files {
		if asText {
			b.WriteString(labelRow(label, fmt.Sprintf("%s, %s, %s", form.Clean(f.Path), size(f.Size), short(f.SHA256)), a.width()))
		} else {
			fmt.Fprintf(b, columns, label, short(f.SHA256), size(f.Size), form.Clean(f.Path))
		}
		label = ""
	}
}

func (a *app) printEntry(k *about) {
	e, m := k.entry, k.manifest
	var b strings.Builder
	if len(k.records) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(a.wrappedFor(a.stdout, form.Clean(fmt.Sprintf("%s %s (%s)", orElse(e.Name, e.ID), manifest.DisplayVersion(*e), e.ID))) + "\n")
	if e.Description != "" {
		b.WriteString(wrap(form.Clean(e.Description), a.width(), "  ") + "\n")
	}
	b.WriteString("\n")
	row := func(label, text string) { a.row(&b, label, text) }
	row("publisher", k.from)
	row("trust", k.trust)
	if k.revoked != "" {
		row("REVOKED", k.revoked)
	}
	row("homepage", e.Homepage)
	row("released", e.ReleaseDate)
	row("type", e.Type+", "+e.Scope)
	row("needs", strings.Join(e.Requires, ", "))
	row("tags", strings.Join(e.Tags, ", "))
	if m != nil {
		a.manifestRows(row, m, len(k.records) > 0)
	}
	for _, set := range k.packages {
		row("packages", wantedPackages(set))
	}
	a.fileRows(&b, e.Files)
	if m != nil {
		if text := m.Doc(a.language()).Description; text != "" {
			b.WriteString("\n" + wrap(form.Clean(text), a.width(), "  ") + "\n")
		}
		for _, s := range m.SetupInstructions {
			b.WriteString(wrapLines("  - "+form.Clean(s), a.width()) + "\n")
		}
	}
	for _, d := range k.diags {
		if d.Severity != manifest.Info || a.verbose {
			row("note", d.String())
		}
	}
	fmt.Fprint(a.stdout, b.String())
}

// manifestRows shows the manifest; of an installed connector, tools and sandbox
// are shown with its record.
func (a *app) manifestRows(row func(label, text string), m *manifest.Manifest, installed bool) {
	if m.Remote() {
		row("connects", m.Server.URL)
	} else {
		row("runs", strings.Join(append([]string{m.Server.Command}, m.Server.Args...), " "))
	}
	if m.Verify != nil {
		row("test", fmt.Sprintf("%s (at most %d s)", m.Verify.Command, int(m.Verify.Timeout.Seconds())))
	} else {
		row("test", "none")
	}
	row("network", networkText(m))
	if m.Auth.Type != "" && m.Auth.Type != "none" {
		row("sign-in", strings.TrimSpace(m.Auth.Type+" "+m.Auth.Provider))
	}
	row("scopes", strings.Join(m.Auth.Scopes, ", "))
	for i, f := range m.Fields() {
		label := ""
		if i == 0 {
			label = "asks for"
		}
		text := fmt.Sprintf("%s (%s)", f.Label, f.Name)
		if f.Secret {
			text += ", secret"
		}
		if !f.Required {
			text += ", optional"
		}
		row(label, text)
	}
	if installed {
		return
	}
	names := make([]string, len(m.Tools))
	for i, t := range m.Tools {
		names[i] = t.Name
	}
	row("tools", strings.Join(names, ", "))
}

// short is the beginning of a digest: enough to compare by eye.
func short(digest string) string {
	if len(digest) < 16 {
		return "no digest       "
	}
	return digest[:16]
}

// stateSaid is the state of a record, or why its version was taken back.
func (a *app) stateSaid(k *about, rec *record.Record) string {
	if k.entry != nil && k.entry.Version == rec.Version && k.revoked != "" {
		return "REVOKED: " + k.revoked
	}
	if back := a.takenBackHere(rec); back != nil {
		return "REVOKED: " + back.err.Reason + "; " + back.way
	}
	return string(a.stateNow(rec))
}

// sandboxRows says what holds an activation, where code of it runs here.
func (a *app) sandboxRows(row func(label, format string, args ...any), rec *record.Record) {
	if !runsHere(rec) {
		return
	}
	row("sandbox", "%s", rec.Sandbox.Enforced)
	row("now", "%s", a.sandboxSince(rec))
	for _, n := range rec.Sandbox.NotHeld {
		row("not held", "%s", n)
	}
}

func (a *app) printRecord(k *about, rec *record.Record) {
	var b strings.Builder
	b.WriteString(a.wrappedFor(a.stdout, fmt.Sprintf("Installed as %s: %s, %s", rec.Name, versionOf(rec), a.stateSaid(k, rec))) + "\n")
	row := func(label, format string, args ...any) {
		a.row(&b, label, fmt.Sprintf(format, args...))
	}
	if e := k.entry; e != nil && e.Version > rec.Version && k.revoked == "" {
		row("update", "%s is available; %s", manifest.DisplayVersion(*e), changedFiles(rec.Pins(), e.Files))
	}
	if rec.Pinned {
		row("pinned", "upgrade passes over it")
	}
	if prior, err := rec.Prior(); err == nil && prior != nil {
		row("kept", "%s, for a rollback", displayVersion(prior))
	}
	row("from", "%s", marketName(rec.Index.URL))
	if rec.Index.Signer != "" {
		row("signed", "by %s", rec.Index.Signer)
	}
	row("since", "%s, changed %s", rec.InstalledAt.Local().Format(time.DateOnly), age(a.hooks.now(), rec.UpdatedAt))
	switch v := rec.Verify; {
	case v.Ran && v.OK:
		row("verified", "%s: %s", age(a.hooks.now(), v.When), v.Message)
	case v.Ran:
		row("verified", "FAILED %s: %s", age(a.hooks.now(), v.When), v.Message)
	case v.Message == "":
		row("verified", "no")
	default:
		row("verified", "no: %s", v.Message)
	}
	for _, f := range sortedEnv(rec) {
		row("setting", "%s = %s", f[0], f[1])
	}
	for _, s := range rec.Secrets {
		row("secret", "%s, encrypted; its key is %s", s.Name, keyPlace(keystore.Backend(s.Store)))
	}
	for _, d := range rec.Deps {
		row("packages", "%s", installedPackages(d))
	}
	a.sandboxRows(row, rec)
	for _, g := range rec.Sandbox.Grants {
		row("granted", "%s", g)
	}
	for _, w := range rec.Sandbox.Withheld {
		row("withheld", "%s", w)
	}
	for _, t := range rec.Tools {
		mark := ""
		if !t.Granted {
			mark = " (kept back)"
		}
		row("tool", "%s: %s%s", t.Name, t.Title, mark)
	}
	fmt.Fprint(a.stdout, b.String())
}

// sandboxSince says where this machine would confine the connector otherwise than at
// the last verify, whose sentence the record keeps; "" where it would not.
func (a *app) sandboxSince(rec *record.Record) string {
	home, err := a.home()
	if err != nil || rec.Sandbox.Backend == "" {
		return ""
	}
	mode := orElse(rec.Sandbox.Mode, string(sandbox.Auto))
	box, err := a.sandbox(home, mode)
	if err != nil {
		return "it is not started here any more: " + err.Error()
	}
	if now := string(box.Enforced(sandbox.Policy{}).Mode); now != rec.Sandbox.Backend {
		return fmt.Sprintf("this machine has changed since: %s in place of %s; %s verify %s says what holds", now, rec.Sandbox.Backend, program, rec.Name)
	}
	return ""
}
