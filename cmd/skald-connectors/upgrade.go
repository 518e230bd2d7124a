package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
)

type upgradeOptions struct {
	agreeFlags
	packageFlags
	names  []string
	all    bool
	dryRun bool
	wider  bool
	accept bool
	again  bool
	given  givenFlags
	ways   signInFlags
}

func (a *app) upgradeCommand() *cobra.Command {
	o := &upgradeOptions{}
	c := &cobra.Command{
		Use:     "upgrade NAME… | --all",
		GroupID: "main",
		Short:   "Put newer versions of installed connectors in place",
		Long: "upgrade asks the marketplace that a connector came from, shows what a greater version would\n" +
			"change, and asks; whatever would let it do more than you agreed to is named, and is not\n" +
			"agreed to by --yes. The new version is tested before it replaces the old one, which is\n" +
			"kept for rollback. Settings, secrets and the connector's own data stay; open sessions go\n" +
			"on with the version that they were started with.",
		Example: "  skald-connectors upgrade email\n  skald-connectors upgrade --all --yes\n  skald-connectors upgrade --all --dry-run --json",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.all && len(args) > 0:
				return usagef("--all upgrades every connector, and some are named")
			case !o.all && len(args) == 0:
				return &usageError{"name what shall be upgraded, or say --all", cmd.CommandPath()}
			}
			return nil
		},
		ValidArgsFunction: a.completeMoreNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return a.upgrade(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "upgrade everything that has a newer version")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "only say what would change; exit code 10 when there is something")
	o.agreeFlags.register(c, "agree to the plan, as long as it does not widen what a connector may do")
	o.packageFlags.register(c)
	f.BoolVar(&o.wider, "allow-wider", false, "agree to what a connector may do besides: hosts, files, scopes, another address")
	f.BoolVar(&o.accept, "accept", false, "accept new and changed tool definitions; without it they are held back")
	f.BoolVar(&o.again, "again", false, "also a version that was rolled back from")
	o.ways.register(c)
	o.given.register(c)
	return c
}

// upgrading is one run of upgrade.
type upgrading struct {
	app    *app
	o      *upgradeOptions
	act    *activate.Activator
	given  map[string]activate.Given
	plans  []*activate.UpgradePlan
	from   map[string]string // marketplace of a plan, in words
	held   []update
	done   []doneUpgrade
	failed []failed
	old    []string // see updates
	asked  int      // activations that were looked at
}

type doneUpgrade struct {
	from *record.Record
	out  *activate.Upgraded
}

func (a *app) upgrade(ctx context.Context, o *upgradeOptions) error {
	if len(o.names) != 1 && o.given.any() {
		return usagef("values can be given for one connector at a time")
	}
	if dup := firstRepeated(o.names); dup != "" {
		return usagef("%q is named twice", dup)
	}
	if err := o.depsLimit.check(); err != nil {
		return err
	}
	given, err := o.given.read(ctx, a)
	if err != nil {
		return err
	}
	a.startProgress()
	act, err := a.openHome()
	if err != nil {
		return err
	}
	act.Signer = a.signer(o.ways)
	u := &upgrading{app: a, o: o, act: act, given: given, from: map[string]string{}}
	if err := u.find(ctx); err != nil {
		return err
	}
	if o.dryRun {
		return u.reportPlans()
	}
	if _, err := act.Sweep(ctx); err != nil {
		a.say("clearing what earlier commands left: %v", err)
	}
	if err := u.agreeAll(ctx); err != nil {
		return err
	}
	u.upgradeAll(ctx)
	return u.report()
}

// find looks for newer versions, downloads them side by side and plans each.
func (u *upgrading) find(ctx context.Context) error {
	listed, err := u.chosen()
	if err != nil {
		return err
	}
	u.asked = len(listed)
	found := u.app.findUpdates(ctx, u.act.Home, listed, fetch.Refresh)
	u.fail(found.failed...)
	u.old = found.old
	var todo []update
	for _, x := range found.found {
		switch {
		case x.held == heldRolledBack && u.o.again, x.held == "":
			todo = append(todo, x)
		case x.held == heldPinned && !u.o.all && !u.o.dryRun:
			u.fail(failed{x.rec.Name, withHint(usagef("%q is pinned to %s", x.rec.Name, displayVersion(x.rec)), "free it with %s unpin %s", program, x.rec.Name)})
		default:
			u.held = append(u.held, x)
		}
	}
	bundles := u.app.downloadAll(len(todo), func(i int) (*fetch.Bundle, error) {
		return todo[i].shop.market.Bundle(ctx, todo[i].shop.index, todo[i].entry)
	})
	for i, x := range todo {
		err := bundles[i].err
		var p *activate.UpgradePlan
		if err == nil {
			p, err = u.act.PlanUpgrade(ctx, x.rec, bundles[i].bundle, activate.PlanOptions{NoDeps: u.o.noDeps, Given: u.given})
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			u.fail(failed{x.rec.Name, err})
			continue
		}
		u.plans = append(u.plans, p)
		u.from[p.Name] = x.shop.from()
	}
	return nil
}

// chosen lists the activations that are meant, by their records.
func (u *upgrading) chosen() ([]record.Listed, error) {
	if u.o.all {
		return u.act.Records().List()
	}
	var out []record.Listed
	for _, name := range u.o.names {
		rec, err := u.act.Records().Read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, record.Listed{Name: name, Record: rec})
	}
	return out, nil
}

// fail notes what could not be done, and says it where it is not the only thing.
func (u *upgrading) fail(list ...failed) {
	for _, f := range list {
		if !u.single() {
			u.app.complain(f.err)
		}
		u.failed = append(u.failed, f)
	}
}

// single tells that one connector was named: its error is the command's.
func (u *upgrading) single() bool { return len(u.o.names) == 1 }

// agreeAll gets a yes for each plan before anything is changed. One that is refused
// does not stop the others.
func (u *upgrading) agreeAll(ctx context.Context) error {
	agreed := u.plans[:0]
	for _, p := range u.plans {
		err := u.agree(ctx, p)
		switch {
		case err == nil:
			agreed = append(agreed, p)
		case ctx.Err() != nil || errors.Is(err, form.ErrAborted):
			return err
		default:
			u.fail(failed{p.Name, err})
		}
	}
	u.plans = agreed
	return nil
}

// agree shows one plan and asks.
func (u *upgrading) agree(ctx context.Context, p *activate.UpgradePlan) error {
	a, o := u.app, u.o
	term, text := a.terminal(), a.upgradeText(p, u.from[p.Name], o.scripts)
	wider := len(p.Wider()) > 0 && !o.wider
	loud := p.Loud != "" && !o.allowOther && changesCommand(p)
	if term == nil {
		switch {
		case len(p.Ask) > 0 && missingOf(p, u.given) != nil:
			return missingOf(p, u.given)
		case loud:
			return withHint(usagef("%s: %s", p.Name, p.Loud), "agree to it with --allow-command")
		case wider:
			return withHint(usagef("upgrading %q would let it do more than you agreed to: %s", p.Name, changeList(p.Wider())),
				"see it with %s upgrade %s --dry-run, and agree to it with --allow-wider", program, p.Name)
		case !o.yes && p.RunsHere():
			return withHint(usagef("upgrading %q runs code of the connector on this machine, and nobody can be asked", p.Name), "agree to it with --yes")
		}
	}
	if term == nil || o.yes && !wider && !loud {
		a.say("%s", strings.TrimRight(text, "\n"))
		return nil
	}
	a.clearProgress()
	if loud {
		a.say("%s", text)
		ok, err := term.Type(ctx, fmt.Sprintf("%s. Type %s to upgrade it all the same", p.Loud, p.Name), p.Name)
		return declined(ok, err, p.Name, "upgraded")
	}
	title, yes := fmt.Sprintf("Upgrade %s?", p.Name), "Upgrade"
	if wider {
		title, yes = fmt.Sprintf("Upgrade %s, which may do more then?", p.Name), "Allow it and upgrade"
	}
	ok, err := term.Confirm(ctx, title, text, yes, "Keep the old version")
	return declined(ok, err, p.Name, "upgraded")
}

func changesCommand(p *activate.UpgradePlan) bool {
	return slices.ContainsFunc(p.Changes, func(c activate.Change) bool { return c.Kind == "command" })
}

// missingOf names the new required fields that nothing was given for.
func missingOf(p *activate.UpgradePlan, given map[string]activate.Given) error {
	missing := &activate.MissingError{Name: p.Name}
	for _, f := range p.Ask {
		if _, ok := given[f.Name]; !ok {
			missing.Fields = append(missing.Fields, f)
		}
	}
	if len(missing.Fields) == 0 {
		return nil
	}
	return missing
}

func (u *upgrading) upgradeAll(ctx context.Context) {
	for _, p := range u.plans {
		undo, err := u.act.PrepareKeys(ctx, &p.Plan, u.given)
		if err == nil {
			var out *activate.Upgraded
			out, err = u.act.Upgrade(ctx, activate.UpgradeRequest{Plan: p, Given: u.given, NoVerify: u.o.noVerify,
				AllowScripts: u.o.scripts, DepsTimeout: u.o.depsTimeout, Accept: u.acceptor(p.Name)})
			if err == nil {
				u.done = append(u.done, doneUpgrade{p.Present, out})
				noteHeld(u.act.Home, out)
			}
			undo()
		}
		if err != nil {
			u.fail(failed{p.Name, keptHint(err, p)})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// keptHint says of a refusal that the old version goes on.
func keptHint(err error, p *activate.UpgradePlan) error {
	var back *activate.RolledBackError
	if code := classifyOnly(err); errors.As(err, &back) || code != exitRefused && code != exitConnector {
		return err
	}
	return withHint(err, "%s stays in place; where the test alone is at fault, leave it out with --no-verify", displayVersion(p.Present))
}

// acceptor is how new and changed tools are accepted; nil holds them back.
func (u *upgrading) acceptor(name string) func(context.Context, []activate.Definition) (bool, error) {
	term := u.app.terminal()
	if !u.o.accept && term == nil {
		return nil
	}
	return func(ctx context.Context, changed []activate.Definition) (bool, error) {
		u.app.clearProgress()
		text := differences(changed)
		if u.o.accept {
			u.app.say("%s", text)
			return true, nil
		}
		return term.Confirm(ctx, fmt.Sprintf("Accept the tools of %s as they are now?", name), text, "Accept them", "Hold them back")
	}
}
