package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/mount"
)

type uninstallOptions struct {
	name     string
	all      bool
	purge    bool
	keepData bool
	yes      bool
}

func (a *app) uninstallCommand() *cobra.Command {
	o := &uninstallOptions{}
	c := &cobra.Command{
		Use:     "uninstall NAME | --all",
		GroupID: "main",
		Short:   "Remove an installed connector, its secrets and its files",
		Long: "uninstall takes a connector out of its clients and removes its record, files and secrets.\n" +
			"--all does so for every one. --all --purge then removes everything else of this program,\n" +
			"caches, marketplaces, keys and settings, looks whether anything is left, and says so.",
		Example: "  skald-connectors uninstall email\n  skald-connectors uninstall email --keep-data\n  skald-connectors uninstall --all --purge",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.purge && !o.all:
				return usagef("--purge removes everything; say --all with it")
			case o.purge && o.keepData:
				return usagef("--purge removes everything, and --keep-data would keep something")
			case o.all && len(args) > 0:
				return usagef("--all removes every connector, and one is named")
			case !o.all && len(args) == 0:
				return &usageError{"uninstall takes NAME, or --all, and none is given", cmd.CommandPath()}
			case !o.all && len(args) != 1:
				return &usageError{fmt.Sprintf("uninstall takes NAME, or --all; given: %d", len(args)), cmd.CommandPath()}
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return a.uninstallAll(cmd.Context(), o)
			}
			o.name = args[0]
			return a.uninstall(cmd.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "remove every connector")
	c.Flags().BoolVar(&o.purge, "purge", false, "with --all: remove everything else of this program too, and prove it")
	c.Flags().BoolVar(&o.keepData, "keep-data", false, "keep the connector's own data, such as a pairing session")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

func (a *app) uninstall(ctx context.Context, o *uninstallOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	rec, err := act.Records().Read(o.name)
	linked := err == nil && isQR(rec) && rec.AuthState == record.Ready && !o.keepData
	if act.Records().Taken(o.name) {
		if err := a.agreeToRemove(ctx, o, fmt.Sprintf("Remove %s, its settings and its secrets?", o.name), o.name); err != nil {
			return err
		}
	}
	removed, err := act.Uninstall(ctx, o.name, o.keepData)
	if removed != nil {
		if a.json && err == nil {
			return a.printJSON(removed)
		}
		a.printRemoved(removed)
		if linked {
			a.say("your phone still lists this machine as a linked device of %s; remove it there (logout before uninstall does both)", o.name)
		}
	}
	return err
}

func (a *app) agreeToRemove(ctx context.Context, o *uninstallOptions, question, what string) error {
	term := a.terminal()
	if term == nil || o.yes {
		return nil
	}
	ok, err := term.Confirm(ctx, question, "", "Remove", "Keep it")
	if err == nil && !ok {
		err = &exitError{exitFailed, fmt.Errorf("%q was not removed: you said no", what)}
	}
	return err
}

func (a *app) printRemoved(r *activate.Removed) {
	a.line("%s is removed:", r.Name)
	for _, item := range r.Items {
		a.line("  removed  %s", item)
	}
	for _, item := range r.Kept {
		a.line("  kept     %s", item)
	}
}

// removal is one run of uninstall --all, and its JSON document.
type removal struct {
	Removed []*activate.Removed `json:"uninstalled"`
	Failed  []failure           `json:"failed"`
	Proof   *proof              `json:"proof,omitempty"`

	failed []failed
}

// proof is what a purge looked at when it was done. The lists are what is left.
type proof struct {
	Home     string   `json:"home"`
	Files    []string `json:"files"`
	Vaults   int      `json:"vaults"`
	Key      string   `json:"key"`
	KeyGone  bool     `json:"key_gone"`
	Mounts   []string `json:"mounts"`
	Looked   int      `json:"clients_looked_at"`
	Unread   []string `json:"clients_not_read"` // files of clients that nobody can parse
	Sessions int      `json:"open_sessions"`
	Revoked  []string `json:"revoked"`
	// Unrevoked are sign-ins that are good at their provider still, which could not be told.
	Unrevoked []string `json:"not_revoked"`
}

func (p *proof) holds() bool {
	return len(p.Files)+p.Vaults+len(p.Mounts)+len(p.Unrevoked) == 0 && p.KeyGone
}

func (a *app) uninstallAll(ctx context.Context, o *uninstallOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	listed, err := act.Records().List()
	if err != nil {
		return err
	}
	names := act.LeftInClients(listed)
	for _, l := range listed {
		names = append(names, l.Name)
	}
	question := fmt.Sprintf("Remove %s, %s settings and secrets?", plural(len(names), "connector", "connectors"), plainly(len(names), "its", "their"))
	if o.purge {
		what := "everything of this program"
		if n := len(listed); n > 0 {
			what = plural(n, "connector", "connectors") + " and everything else of this program"
		}
		question = fmt.Sprintf("Remove %s below %s?", what, form.Clean(a.short(act.Home)))
	}
	if o.purge && !o.yes && a.terminal() == nil {
		return withHint(usagef("--purge removes everything of this program, and nobody can be asked"), "agree to it with --yes")
	}
	if len(names) > 0 || o.purge {
		if err := a.agreeToRemove(ctx, o, question, "everything"); err != nil {
			return err
		}
	}
	r := &removal{Removed: []*activate.Removed{}, Failed: []failure{}}
	if o.purge {
		r.Proof = &proof{Home: act.Home, Files: []string{}, Mounts: []string{}, Unread: []string{}, Revoked: []string{}, Unrevoked: []string{}}
		if key, err := act.Keys.Describe(); err == nil && key.Backend != "" { // the last uninstall forgets it
			r.Proof.Key = key.Where
		}
	}
	r.uninstall(ctx, a, act, names, o.keepData)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if o.purge {
		r.purge(ctx, a, act)
	}
	return r.report(a, len(names))
}

// uninstall removes each activation, also what one has left in clients.
func (r *removal) uninstall(ctx context.Context, a *app, act *activate.Activator, names []string, keepData bool) {
	act.Leaving = names
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		removed, err := act.Uninstall(ctx, name, keepData)
		if removed != nil {
			r.Removed = append(r.Removed, removed)
		}
		if err != nil {
			r.fail(a, name, err)
		}
	}
}

func (r *removal) fail(a *app, name string, err error) {
	a.complain(err)
	r.failed = append(r.failed, failed{name, err})
}

// purge removes what belongs to no activation, and looks at what is left.
func (r *removal) purge(ctx context.Context, a *app, act *activate.Activator) {
	p := r.Proof
	if _, err := act.Sweep(ctx); err != nil { // gives back the sign-ins that interrupted commands left
		a.say("%v", err)
	}
	if err := p.forget(ctx, act); err != nil {
		p.KeyGone = false
		r.fail(a, "", err)
	}
	if p.KeyGone { // else what leads to the key would be lost
		var err error
		if p.Sessions, err = act.Wipe(ctx, homeNames(anyPlace)); err != nil {
			r.fail(a, "", err)
		}
	}
	entries, err := os.ReadDir(act.Home)
	for _, e := range entries {
		p.Files = append(p.Files, e.Name())
	}
	if err == nil && len(entries) == 0 {
		p.Files = append(p.Files, act.Home)
	}
	p.lookAtMounts(act)
	for _, one := range r.Removed {
		for _, provider := range one.Revoked {
			p.Revoked = append(p.Revoked, fmt.Sprintf("the sign-in of %s with %s", one.Name, provider))
		}
		for _, provider := range one.Unrevoked {
			p.Unrevoked = append(p.Unrevoked, fmt.Sprintf("the sign-in of %s with %s; remove the access in your account there", one.Name, provider))
		}
	}
}

// forget removes every vault that is left and the key of them all.
func (p *proof) forget(ctx context.Context, act *activate.Activator) error {
	names, err := act.Keys.Names()
	if act.Step != nil {
		act.Step("purge-vaults")
	}
	for _, name := range names {
		err = errors.Join(err, act.Keys.Remove(name))
	}
	err = errors.Join(err, act.Keys.Forget(ctx))
	now, derr := act.Keys.Describe()
	if p.Vaults = now.Vaults; derr != nil { // it counts what it can read of
		left, _ := act.Keys.Names()
		p.Vaults = len(left)
	}
	p.KeyGone = err == nil && derr == nil && now.Backend == ""
	return errors.Join(err, derr)
}

// lookAtMounts reads the files of every client that is here once more: nothing is installed now.
func (p *proof) lookAtMounts(act *activate.Activator) {
	if act.Mounts == nil {
		return
	}
	for _, c := range act.Mounts.Clients() {
		if c.Detected {
			p.Looked++
		}
	}
	installed := func(string) bool { return false }
	for _, f := range act.Mounts.Drift(nil, installed) {
		switch f.Kind {
		case mount.ActivationGone:
			p.Mounts = append(p.Mounts, fmt.Sprintf("%s in %s", f.Name, f.File))
		case mount.FileUnreadable:
			p.Unread = append(p.Unread, f.File)
		}
	}
}

// report says what was done and, after a purge, what was found then.
func (r *removal) report(a *app, total int) error {
	r.Failed = append(r.Failed, failures(r.failed)...)
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		for _, one := range r.Removed {
			a.printRemoved(one)
		}
		if r.Proof != nil {
			r.Proof.print(a)
		} else if total == 0 {
			a.say("nothing is installed")
		}
	}
	if n := len(r.failed); n > 0 && r.failed[n-1].name == "" { // the home itself
		a.json = false
		return &exitError{classifyOnly(r.failed[0].err), errors.New("something is left; the lines above name it")}
	}
	if len(r.failed) > 0 {
		return a.someFailed(r.failed, max(total, len(r.failed)), "could not be removed whole")
	}
	if r.Proof != nil && !r.Proof.holds() {
		a.json = false
		return &exitError{exitFailed, errors.New("something is left; the lines above name it")}
	}
	return nil
}

func (p *proof) print(a *app) {
	row := func(label, text string) { a.line("  %-8s %s", label, text) }
	none := func(list []string, empty string) string {
		if len(list) == 0 {
			return empty
		}
		return "LEFT: " + strings.Join(list, ", ")
	}
	fmt.Fprintln(a.stdout, "What is left:")
	row("files", none(p.Files, "none below "+p.Home))
	row("vaults", map[bool]string{true: "none", false: fmt.Sprintf("LEFT: %d", p.Vaults)}[p.Vaults == 0])
	switch {
	case p.Key == "" && p.KeyGone:
		row("key", "there was none")
	case p.KeyGone:
		row("key", "gone: "+p.Key)
	default:
		row("key", "LEFT: "+orElse(p.Key, "it is not known where"))
	}
	looked := "none in the files of " + plural(p.Looked, "client", "clients")
	if p.Looked == 0 {
		looked = "none: no MCP client is on this machine"
	}
	row("mounts", none(p.Mounts, looked))
	if len(p.Unread) > 0 {
		row("unread", strings.Join(p.Unread, ", ")+": look there yourself")
	}
	for _, s := range p.Revoked {
		row("revoked", s)
	}
	if len(p.Unrevoked) > 0 {
		row("sign-ins", none(p.Unrevoked, ""))
	}
	if p.Sessions > 0 {
		row("open", plural(p.Sessions, "session; its client ends it", "sessions; their clients end them"))
	}
}
