package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/manifest"
	"skald-connectors/mount"
)

type mountOptions struct {
	name    string
	to      clientFlags
	dryRun  bool
	adopt   string
	install installOptions // of --adopt
}

func (a *app) mountCommand() *cobra.Command {
	o := &mountOptions{}
	c := &cobra.Command{
		Use:     "mount NAME | mount --adopt ENTRY",
		GroupID: "main",
		Short:   "Let MCP clients start an installed connector",
		Long: "mount writes one entry into the configuration of MCP clients (Claude Code, Cursor, Codex…), so\n" +
			"that they start the connector. Every other byte of these files stays as it is, an entry of\n" +
			"the same name that is not ours is never touched, and no secret is written. Without --client\n" +
			"you are asked which of the clients that are here.\n\n" +
			"--adopt takes an entry that a client has already, makes an activation of it with its secrets\n" +
			"in the key store, and puts our entry in its place.",
		Example: "  skald-connectors mount email\n" +
			"  skald-connectors mount email --client cursor --client zed\n" +
			"  skald-connectors mount email --all-clients --dry-run\n" +
			"  skald-connectors mount email --client engine --config-dir /etc/engine\n" +
			"  skald-connectors mount --adopt github",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.adopt != "" && (len(args) > 0 || o.dryRun):
				return usagef("--adopt stands alone: it takes no NAME and no --dry-run")
			case o.adopt == "" && len(args) != 1:
				return usagef("mount takes NAME; given: %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.adopt != "" {
				return a.adopt(cmd.Context(), o)
			}
			o.name = args[0]
			return a.mount(cmd.Context(), o)
		},
	}
	o.to.register(a, c)
	f := c.Flags()
	f.StringVar(&o.adopt, "adopt", "", "take over the `ENTRY` of a client, with its secrets into the key store")
	f.BoolVarP(&o.install.yes, "yes", "y", false, "with --adopt: agree to the plan")
	f.BoolVar(&o.install.allowOther, "allow-command", false, "with --adopt: agree to a command that is not one of the usual runtimes")
	f.BoolVar(&o.install.scripts, "allow-scripts", false, "with --adopt: let install scripts of packages run")
	f.StringVar(&o.install.sandbox, "sandbox", "auto", "with --adopt: protection to start it with (`MODE`)")
	o.install.access.register(c)
	o.install.depsTimeout = depsTimeout
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the difference, write nothing; exit 10 when there is one")
	return c
}

func (a *app) mount(ctx context.Context, o *mountOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	reqs, err := a.wanted(ctx, act, o)
	if err != nil {
		return err
	}
	report := newMountReport()
	for _, req := range reqs {
		res, err := a.mountOne(ctx, act, req)
		res.Diff = withoutSecrets(act.Mounts, req, res.Diff)
		if err := report.add(req, res, err); err != nil {
			return err
		}
	}
	if !o.dryRun {
		a.noteTemporary(act.Home, report)
	}
	return a.endMounts(report, true, o.dryRun)
}

// mountOne mounts one request. The engine's catalogue takes an entry before its
// connector is installed: the engine then says what is missing.
func (a *app) mountOne(ctx context.Context, act *activate.Activator, req mount.Request) (mount.Result, error) {
	if req.Client != mount.Engine || manifest.ValidID(req.Name) == nil && act.Records().Taken(req.Name) {
		return act.Mount(ctx, req)
	}
	res, err := act.Mounts.Mount(ctx, req)
	if err == nil {
		a.say("note: %s is not installed yet; install it with %s install %s", req.Name, program, req.Name)
	}
	return res, err
}

// wanted turns the flags, or the person's answer, into requests.
func (a *app) wanted(ctx context.Context, act *activate.Activator, o *mountOptions) ([]mount.Request, error) {
	ids, err := o.to.named(a, act.Mounts)
	if err != nil {
		return nil, err
	}
	onlyEngine := len(ids) == 1 && ids[0] == mount.Engine
	if len(ids) == 0 && !o.to.all && a.terminal() == nil && a.getenv(configDirVariable) != "" {
		ids, onlyEngine = []string{mount.Engine}, true // an engine runs us
	}
	if !onlyEngine {
		if _, err := act.Records().Read(o.name); err != nil {
			return nil, err
		}
	}
	if len(ids) > 0 {
		return a.requests(act.Mounts, ids, o)
	}
	offered := a.offered(ctx, act, []string{o.name}, o.to.engineDir(a))
	switch {
	case offered.none():
		return nil, withHint(&exitError{exitFailed, errors.New("no MCP client was found on this machine")}, "name one with --client CLIENT; see %s clients --all", program)
	case o.to.all:
		return a.requests(act.Mounts, offered.here, o)
	case a.terminal() == nil:
		return nil, withHint(usagef("mounting %q: it is not said into which clients; here are %s", o.name, strings.Join(offered.here, ", ")), "name them with --client CLIENT, or take all with --all-clients")
	}
	if ids, err = a.askClients(ctx, offered, "Mount into:"); err != nil {
		return nil, err
	}
	return a.requests(act.Mounts, ids, o)
}

func (a *app) requests(m *mount.Mounter, ids []string, o *mountOptions) ([]mount.Request, error) {
	var out []mount.Request
	for _, id := range ids {
		reqs, err := placesIn(m, id, o.name, o.to.engineDir(a))
		if err != nil {
			return nil, err
		}
		for _, r := range reqs {
			r.DryRun, r.Create = o.dryRun, r.Create && len(o.to.clients) > 0 // a client that was named is meant
			out = append(out, r)
		}
	}
	return out, nil
}

// endMounts prints what came of it and gives the exit.
func (a *app) endMounts(report *mountReport, mounted, dryRun bool) error {
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
		return report.ended(dryRun)
	}
	a.sayMounts(report, mounted, dryRun)
	return report.ended(dryRun)
}

// offer is what a person can be asked about clients.
type offer struct {
	here    []string // clients that were found
	options []form.Option
	already []string // where nothing would change, by name
	refused []mountRefusal
}

func (o *offer) none() bool { return len(o.here) == 0 }

// offered looks, without writing, what mounting these activations into each
// client that is here would do.
func (a *app) offered(ctx context.Context, act *activate.Activator, names []string, engineDir string) *offer {
	out := &offer{}
	for _, c := range act.Mounts.Clients() {
		if c.Detected && c.Problem == "" {
			a.lookAt(ctx, act, out, c, names, "")
		}
	}
	if engineDir != "" {
		a.lookAt(ctx, act, out, mount.Client{ID: mount.Engine, Name: "the engine", Files: []string{act.Mounts.EngineFile(engineDir)}}, names, engineDir)
	}
	return out
}

func (a *app) lookAt(ctx context.Context, act *activate.Activator, out *offer, c mount.Client, names []string, engineDir string) {
	report := newMountReport()
	for _, name := range names {
		reqs, _ := placesIn(act.Mounts, c.ID, name, engineDir)
		for _, r := range reqs {
			r.DryRun, r.Create = true, false
			res, err := act.Mount(ctx, r)
			if report.add(r, res, err) != nil {
				return
			}
		}
	}
	out.here = append(out.here, c.ID)
	switch {
	case report.changed():
		out.options = append(out.options, form.Option{Value: c.ID, Label: fmt.Sprintf("%s (%s)", c.Name, a.short(c.Files[0]))})
	case len(report.Refused) > 0:
		out.refused = append(out.refused, report.Refused...)
	default:
		out.already = append(out.already, c.Name)
	}
}

// short writes a path below the person's home with a tilde.
func (a *app) short(path string) string {
	home := a.userHome()
	if rest, ok := strings.CutPrefix(path, strings.TrimRight(home, string(filepath.Separator))+string(filepath.Separator)); ok && home != "" {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}

// askClients asks which of the clients are meant; one Enter takes all.
func (a *app) askClients(ctx context.Context, o *offer, title string) ([]string, error) {
	a.clearProgress()
	for _, f := range o.refused {
		a.sayRefusal(f, true)
	}
	if len(o.options) == 0 {
		if len(o.already) > 0 {
			a.say("it is mounted already in %s", strings.Join(o.already, ", "))
		}
		return nil, nil
	}
	return a.terminal().Pick(ctx, title, o.options)
}

func (a *app) unmountCommand() *cobra.Command {
	o := &mountOptions{}
	c := &cobra.Command{
		Use:     "unmount NAME",
		GroupID: "main",
		Short:   "Take a connector out of MCP clients again",
		Long: "unmount takes the entry of a connector out of the clients that have it: of all, or of those\n" +
			"that --client names. A file that nobody changed since becomes what it was, byte for byte;\n" +
			"one that mount had made goes away.",
		Example:           "  skald-connectors unmount email\n  skald-connectors unmount email --client cursor --dry-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return a.unmount(cmd.Context(), o)
		},
	}
	o.to.register(a, c)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the difference, write nothing; exit 10 when there is one")
	return c
}

func (a *app) unmount(ctx context.Context, o *mountOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	ids, err := o.to.named(a, act.Mounts)
	if err != nil {
		return err
	}
	reqs := act.MountsOf(o.name)
	if len(ids) > 0 {
		if reqs, err = a.unmountFrom(act, ids, reqs, o); err != nil {
			return err
		}
	}
	if len(reqs) == 0 {
		if !act.Records().Taken(o.name) {
			return &record.NotInstalledError{Name: o.name}
		}
		a.say("%s is mounted nowhere", o.name)
	}
	report := newMountReport()
	for _, req := range reqs {
		req.DryRun = o.dryRun
		res, err := a.unmountOne(ctx, act, req)
		res.Diff = withoutSecrets(act.Mounts, req, res.Diff)
		if err := report.add(req, res, err); err != nil {
			return err
		}
	}
	return a.endMounts(report, false, o.dryRun)
}

// unmountOne takes one entry out. A name that no activation can have is the engine's to refuse.
func (a *app) unmountOne(ctx context.Context, act *activate.Activator, req mount.Request) (mount.Result, error) {
	if req.Client == mount.Engine && manifest.ValidID(req.Name) != nil {
		return act.Mounts.Unmount(ctx, req)
	}
	return act.Unmount(ctx, req)
}

// unmountFrom limits what is known to the named clients, and looks into their files besides.
func (a *app) unmountFrom(act *activate.Activator, ids []string, known []mount.Request, o *mountOptions) ([]mount.Request, error) {
	var out []mount.Request
	seen := map[string]bool{}
	for _, id := range ids {
		dir, recorded := o.to.engineDir(a), len(out)
		for _, r := range known {
			if r.Client == id && (id != mount.Engine || dir == "") {
				out, seen[r.Client+r.File] = append(out, r), true
			}
		}
		if id == mount.Engine && dir == "" && len(out) > recorded {
			continue // the record knows the engine's folder
		}
		reqs, err := placesIn(act.Mounts, id, o.name, o.to.engineDir(a))
		if err != nil {
			return nil, err
		}
		for _, r := range reqs {
			if !seen[r.Client+r.File] {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
