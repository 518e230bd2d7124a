package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
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
	records  []*activate.Record
}

func (a *app) info(ctx context.Context, id string) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	k := &about{}
	damaged, err := installedAs(activate.OpenRecords(home), id, k)
	if err != nil {
		return err
	}
	connector := id
	if len(k.records) > 0 {
		connector = k.records[0].Connector
	}
	if err := a.lookUp(ctx, connector, k); err != nil {
		if len(k.records) == 0 && damaged == nil {
			return err
		}
		a.say("%s", form.Clean(err.Error()))
	}
	if damaged != nil {
		if k.entry == nil {
			return damaged
		}
		a.say("%s", form.Clean(damaged.Error()))
	}
	if a.json {
		return a.printJSON(k.document())
	}
	if k.entry != nil {
		a.printEntry(k)
	}
	for _, rec := range k.records {
		a.printRecord(k, rec)
	}
	return nil
}

// installedAs gathers the activation of that name, or those of the connector
// of that id. A damaged record is returned apart: it hides nothing else.
func installedAs(records activate.Records, id string, k *about) (damaged, err error) {
	list, err := records.List()
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		switch {
		case l.Err != nil && l.Name == id:
			damaged = l.Err
		case l.Record != nil && l.Name == id:
			k.records = append([]*activate.Record{l.Record}, k.records...)
		case l.Record != nil && l.Record.Connector == id:
			k.records = append(k.records, l.Record)
		}
	}
	return damaged, nil
}

// lookUp reads the index entry and, where it can be had, the manifest.
func (a *app) lookUp(ctx context.Context, id string, k *about) error {
	s, err := a.openShop(ctx, fetch.Cached)
	if err != nil {
		return err
	}
	e, err := s.index.Lookup(id)
	if err != nil {
		return err
	}
	k.entry, k.from = &e, s.from()
	pre, err := s.market.Preview(ctx, s.index, e, deps.FileNames()...)
	if err != nil {
		a.say("its manifest cannot be read: %s", form.Clean(err.Error()))
		return nil
	}
	k.entry, k.manifest, k.diags = &pre.Entry, pre.Manifest, pre.Diagnostics
	if k.packages, err = deps.Load(pre.Manifest, pre.Open); err != nil {
		a.say("it cannot be installed: %s", form.Clean(err.Error()))
	}
	return nil
}

func (a *app) printEntry(k *about) {
	e, m := k.entry, k.manifest
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%s)\n", form.Clean(orElse(e.Name, e.ID)), form.Clean(manifest.DisplayVersion(*e)), form.Clean(e.ID))
	if e.Description != "" {
		b.WriteString(wrap(form.Clean(e.Description), planWidth, "  ") + "\n")
	}
	row := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s%s\n", label, form.Clean(text))
		}
	}
	b.WriteString("\n")
	row("publisher", k.from)
	row("homepage", e.Homepage)
	row("released", e.ReleaseDate)
	row("type", e.Type+", "+e.Scope)
	row("needs", strings.Join(e.Requires, ", "))
	row("tags", strings.Join(e.Tags, ", "))
	if m != nil {
		a.manifestRows(row, m)
	}
	for _, set := range k.packages {
		row("packages", wantedPackages(set))
	}
	for i, f := range e.Files {
		label := ""
		if i == 0 {
			label = "files"
		}
		fmt.Fprintf(&b, "  %-10s%s  %9s  %s\n", label, short(f.SHA256), size(f.Size), form.Clean(f.Path))
	}
	if m != nil {
		if text := m.Doc(a.language()).Description; text != "" {
			b.WriteString("\n" + wrap(form.Clean(text), planWidth, "  ") + "\n")
		}
		for _, s := range m.SetupInstructions {
			b.WriteString(wrap("- "+form.Clean(s), planWidth, "  ") + "\n")
		}
	}
	for _, d := range k.diags {
		row("note", d.String())
	}
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) manifestRows(row func(label, text string), m *manifest.Manifest) {
	if m.Type == "mcp_remote" {
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
	if box, err := sandbox.New(sandbox.Auto); err == nil {
		row("sandbox", box.Enforced(sandbox.Policy{}).Sentence)
	}
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

func (a *app) printRecord(k *about, rec *activate.Record) {
	var b strings.Builder
	if k.entry != nil {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Installed as %s: %s, %s\n", rec.Name, versionOf(rec), rec.AuthState)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s%s\n", label, form.Clean(fmt.Sprintf(format, args...)))
	}
	if e := k.entry; e != nil && e.Version > rec.Version {
		row("update", "%s is available; %s", manifest.DisplayVersion(*e), changedFiles(rec.Pins(), e.Files))
	}
	row("from", "%s", marketName(rec.Index.URL))
	row("since", "%s, changed %s", rec.InstalledAt.Local().Format(time.DateOnly), age(a.hooks.now(), rec.UpdatedAt))
	switch v := rec.Verify; {
	case v.Ran && v.OK:
		row("verified", "%s: %s", age(a.hooks.now(), v.When), v.Message)
	case v.Ran:
		row("verified", "FAILED %s: %s", age(a.hooks.now(), v.When), v.Message)
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
	row("sandbox", "%s", rec.Sandbox.Enforced)
	for _, t := range rec.Tools {
		mark := ""
		if !t.Granted {
			mark = " (kept back)"
		}
		row("tool", "%s: %s%s", t.Name, t.Title, mark)
	}
	fmt.Fprint(a.stdout, b.String())
}
