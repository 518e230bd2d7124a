package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/keystore"
)

type installOptions struct {
	agreeFlags
	packageFlags
	ids         []string
	as          string
	given       givenFlags
	pending     bool
	sandbox     string
	access      accessFlags
	ways        signInFlags
	grants      []activate.Access
	withheld    []activate.Access
	allow, deny []string
	bundle      string
	expired     bool
	mount       []string
	noMount     bool
	adopted     *adoption // the entry of a client that it is made from; nil = none
}

func (a *app) installCommand() *cobra.Command {
	o := &installOptions{}
	c := &cobra.Command{
		Use:     "install ID…",
		GroupID: "main",
		Short:   "Install a connector: download, check, ask, verify, record",
		Long: "install downloads a connector, checks every file against its pinned SHA-256 and size,\n" +
			"asks for its settings, runs its verify command, starts its server once to list its\n" +
			"tools, puts secrets into the key store and writes the activation record. Until the\n" +
			"last step nothing is stored; interrupting it leaves the machine as it was.",
		Example: "  skald-connectors install email\n" +
			"  skald-connectors install email --as work\n" +
			"  skald-connectors install email --yes --set EMAIL_IMAP_HOST=imap.example.org --secret-file EMAIL_PASSWORD=pw.txt",
		Args:              atLeastUnless(1, "bundle"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return a.install(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.as, "as", "", "`NAME` of the activation, for a second account")
	o.agreeFlags.register(c, "agree to the plan, and to leaving open what need not be given")
	o.packageFlags.register(c)
	f.BoolVar(&o.pending, "pending", false, "leave the sign-in for later: it stays parked until auth NAME")
	f.StringVar(&o.bundle, "bundle", "", "install from this bundle `FILE`, without a network")
	registerExpired(c, &o.expired)
	f.StringVar(&o.sandbox, "sandbox", "auto", "protection to start the connector with: auto, bwrap, landlock, container or none (`MODE`)")
	o.access.register(c)
	o.ways.register(c)
	f.StringArrayVar(&o.allow, "allow", nil, "let only this `TOOL` through (repeatable)")
	f.StringArrayVar(&o.deny, "deny", nil, "keep this `TOOL` back (repeatable)")
	f.StringSliceVar(&o.mount, "mount", nil, "mount it into this `CLIENT` at the end, or all that are here: all (repeatable)")
	f.BoolVar(&o.noMount, "no-mount", false, "do not offer to mount it")
	_ = c.RegisterFlagCompletionFunc("mount", a.completeClients)
	o.given.register(c)
	return c
}

func (a *app) install(ctx context.Context, o *installOptions) error {
	if len(o.ids) > 1 && o.as != "" {
		return usagef("--as names one activation, and %d connectors are named", len(o.ids))
	}
	if len(o.ids) > 1 && o.given.any() {
		return usagef("values can be given for one connector at a time, and %d are named", len(o.ids))
	}
	if dup := firstRepeated(o.ids); dup != "" {
		return usagef("%q is named twice", dup)
	}
	if err := o.depsLimit.check(); err != nil {
		return err
	}
	given, err := o.given.read(ctx, a)
	if err != nil {
		return err
	}
	if err := checkSandbox(o.sandbox); err != nil {
		return err
	}
	if o.grants, o.withheld, err = o.access.read(); err != nil {
		return err
	}
	a.startProgress()
	all, err := a.installFrom(ctx, o)
	if err != nil {
		return err
	}
	defer all.close()
	act, err := a.activator(all.home())
	if err != nil {
		return err
	}
	if err := a.checkMountFlags(act, o); err != nil {
		return err
	}
	act.Signer = a.signer(o.ways)
	plans, err := a.agreeAll(ctx, act, all, o, given)
	if err != nil {
		return err
	}
	return a.installAll(ctx, act, o, plans, given)
}

func firstRepeated(list []string) string {
	for i, s := range list {
		if slices.Contains(list[:i], s) {
			return s
		}
	}
	return ""
}

// agreed is one plan that has its yes, with the marketplace it is from.
type agreed struct {
	*activate.Plan
	shop *shop
}

func (p *agreed) download(ctx context.Context) (*fetch.Bundle, error) {
	return p.shop.market.Bundle(ctx, p.Index, p.Entry)
}

// agreeAll plans every connector and gets a yes for each, before anything is
// downloaded.
func (a *app) agreeAll(ctx context.Context, act *activate.Activator, all *shops, o *installOptions, given map[string]activate.Given) ([]agreed, error) {
	var plans []agreed
	for _, id := range o.ids {
		s, e, err := all.lookup(id)
		if err != nil {
			return nil, err
		}
		name := orElse(o.as, e.ID)
		p, err := act.Plan(ctx, s.market, s.index, e, name, activate.PlanOptions{NoDeps: o.noDeps, Pending: o.pending, Brief: o.yes, Mode: o.sandbox, Grants: o.grants, Withheld: o.withheld, Given: given})
		if err != nil {
			return nil, err
		}
		if err := a.sameKeystore(p); err != nil {
			return nil, err
		}
		notes, err := act.CheckGiven(p, given)
		if err != nil {
			return nil, err
		}
		for _, n := range notes {
			a.say("note: %s", n)
		}
		for _, d := range p.Diagnostics {
			if a.verbose {
				a.say("%s", d.String())
			}
		}
		if a.terminal() == nil {
			if err := act.CheckSignIn(p); err != nil {
				return nil, err
			}
		}
		if err := a.agree(ctx, p, s, o); err != nil {
			return nil, err
		}
		if err := a.readyProvider(ctx, act, p); err != nil {
			return nil, err
		}
		plans = append(plans, agreed{p, s})
	}
	return plans, nil
}

// sameKeystore refuses, before anybody agrees to anything, a key store that is
// not the one that is in use already.
func (a *app) sameKeystore(p *activate.Plan) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	want, err := a.wantedKeystore(home)
	if err != nil || want == "" || p.Store.Backend == "" || want == p.Store.Backend {
		return err
	}
	return withHint(usagef("the key of your secrets is kept %s already, and there is one place for all", keyPlace(p.Store.Backend)), "leave --keystore away")
}

// agree shows one plan and asks.
func (a *app) agree(ctx context.Context, p *activate.Plan, s *shop, o *installOptions) error {
	text := a.planText(p, s, o.scripts)
	term := a.terminal()
	switch {
	case term == nil && p.Loud != "" && !o.allowOther:
		return withHint(usagef("%s: %s", p.Name, p.Loud), "agree to it with --allow-command")
	case o.yes && (p.Loud == "" || o.allowOther):
		if !a.quiet {
			a.say("%s", strings.TrimRight(text, "\n"))
		}
		return nil
	case term == nil && !p.NeedsConsent():
		return nil
	case term == nil:
		return withHint(usagef("installing %q runs code of the connector on this machine, and nobody can be asked", p.Name), "agree to it with --yes")
	}
	a.clearProgress()
	if p.Loud != "" && !o.allowOther {
		a.say("%s", text)
		ok, err := term.Type(ctx, fmt.Sprintf("%s. Type %s to install it all the same", p.Loud, p.Name), p.Name)
		return declined(ok, err, p.Name, "installed")
	}
	title := fmt.Sprintf("Install %s?", p.Name)
	if p.Name != p.Entry.ID {
		title = fmt.Sprintf("Install %s as %s?", p.Entry.ID, p.Name)
	}
	if o.sandbox == "none" {
		a.say("%s", text)
		ok, err := term.Type(ctx, fmt.Sprintf("%s would run without any protection. Type %s to install it all the same", p.Name, p.Name), p.Name)
		return declined(ok, err, p.Name, "installed")
	}
	ok, err := term.Confirm(ctx, title, text, "Install", "Cancel")
	return declined(ok, err, p.Name, "installed")
}

// declined is the error of a no; done says what did not become of it.
func declined(ok bool, err error, name, done string) error {
	if err == nil && !ok {
		return &exitError{exitFailed, fmt.Errorf("%q was not %s: you said no", name, done)}
	}
	return err
}

// installAll downloads all bundles side by side and installs one after the
// other. One that fails does not stop the others; the first failure decides
// the exit code.
func (a *app) installAll(ctx context.Context, act *activate.Activator, o *installOptions, plans []agreed, given map[string]activate.Given) error {
	for _, p := range plans {
		undo, err := act.PrepareKeys(ctx, p.Plan, given)
		if err != nil {
			return err
		}
		defer undo()
	}
	bundles := a.downloadAll(len(plans), func(i int) (*fetch.Bundle, error) { return plans[i].download(ctx) })
	packages, carried, err := o.unpackPackages(plans[0].shop)
	if err != nil {
		return err
	}
	defer carried()
	done, failed := []*record.Record{}, []failure{}
	var first error
	for i, p := range plans {
		err := bundles[i].err
		if err == nil {
			var rec *record.Record
			rec, err = act.Install(ctx, activate.Request{Plan: p.Plan, Bundle: bundles[i].bundle, Given: given, NoVerify: o.noVerify,
				AllowScripts: o.scripts, DepsTimeout: o.depsTimeout, Packages: packages,
				Grant: record.Grant{Allow: o.allow, Deny: o.deny}, Mode: o.sandbox, Grants: o.grants, Withheld: o.withheld})
			if rec != nil {
				done = append(done, rec)
			}
		}
		if err != nil && !isLeft(err) {
			failed = append(failed, failure{Name: p.Name, Error: words(err)})
			if first != nil || len(plans) > 1 {
				a.complain(err)
			}
		}
		first = cmp.Or(first, err)
		if ctx.Err() != nil {
			break
		}
	}
	a.clearProgress()
	a.pruneCache(act)
	if len(plans) == 1 && first != nil && len(done) == 0 {
		return first
	}
	mounted := done
	if isLeft(first) { // who leaves is not asked more
		mounted = nil
	}
	mounts, err := a.mountInstalled(ctx, act, o, mounted)
	if err != nil {
		return err
	}
	if err := a.reportInstalled(act, done, failed, mounts); err != nil {
		return err
	}
	if first == nil || len(plans) == 1 || classifyOnly(first) == exitInterrupted {
		return cmp.Or(first, mounts.ended(false))
	}
	a.json = false // the one document is out, and every error is said
	return &exitError{classifyOnly(first), fmt.Errorf("%d of %d connectors are not installed", len(plans)-len(done), len(plans))}
}

// isLeft tells an error that comes with an installed connector.
func isLeft(err error) bool {
	_, left := errors.AsType[*activate.LeftError](err)
	return left
}

// failure is one connector that could not be installed, among several.
type failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

func classifyOnly(err error) int {
	code, _ := classify(err)
	return code
}

type download struct {
	bundle *fetch.Bundle
	err    error
}

// downloadAll gets n bundles side by side.
func (a *app) downloadAll(n int, get func(i int) (*fetch.Bundle, error)) []download {
	out := make([]download, n)
	a.showFiles()
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].bundle, out[i].err = get(i) })
	}
	all.Wait()
	return out
}

// reportInstalled says what was done and what to do next.
func (a *app) reportInstalled(act *activate.Activator, done []*record.Record, failed []failure, mounts *mountReport) error {
	if a.json {
		return a.printJSON(map[string]any{"installed": done, "failed": failed, "mount_refused": mounts.Refused})
	}
	for _, rec := range done {
		fmt.Fprint(a.stdout, a.installedText(act, rec), a.nextText(rec, mounts))
	}
	for _, f := range mounts.Refused {
		a.sayRefusal(f, true)
	}
	return nil
}

func (a *app) installedText(act *activate.Activator, rec *record.Record) string {
	var b strings.Builder
	row := func(label, format string, args ...any) {
		a.row(&b, label, fmt.Sprintf(format, args...))
	}
	say := func(format string, args ...any) {
		b.WriteString(a.wrappedFor(a.stdout, fmt.Sprintf(format, args...)) + "\n")
	}
	b.WriteString("\n")
	say("%s is installed: %s, %s.", rec.Name, versionOf(rec), rec.AuthState)
	if rec.AuthState == record.Unauthorized {
		say("  It stays parked until it is signed in: %s auth %s", program, rec.Name)
	}
	if rec.AuthState == record.Pending {
		say("  It stays parked until its test passes: %s configure %s", program, rec.Name)
	}
	granted := 0
	for _, t := range rec.Tools {
		if t.Granted {
			granted++
		}
	}
	if len(rec.Tools) > 0 {
		row("tools", "%d of %d let through", granted, len(rec.Tools))
	}
	row("record", "%s", a.short(act.Records().Path(rec.Name)))
	if len(rec.Secrets) > 0 {
		row("secrets", "%s %s", plural(len(rec.Secrets), "secret, encrypted; its key is", "secrets, encrypted; their key is"), keyPlace(keystore.Backend(rec.Secrets[0].Store)))
	}
	if runsHere(rec) {
		row("sandbox", "%s", rec.Sandbox.Enforced)
	}
	return b.String()
}

func versionOf(rec *record.Record) string {
	if rec.VersionString == "" {
		return fmt.Sprintf("version %d", rec.Version)
	}
	return fmt.Sprintf("%s (version %d)", form.Clean(rec.VersionString), rec.Version)
}
