package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/keystore"
)

type applyOptions struct {
	agreeFlags
	file                  string
	dryRun, latest        bool
	noMount, wider        bool
	bundles               []string
	expired               bool
	secretFile, secretEnv []string
}

func (a *app) applyCommand() *cobra.Command {
	o := &applyOptions{}
	c := &cobra.Command{
		Use:     "apply FILE",
		GroupID: "main",
		Short:   "Make this machine match a set that export wrote",
		Long: "apply installs what the set names and is not here, in the very versions and bytes of the set,\n" +
			"brings settings in line, and mounts into the clients that are here. It asks for secrets,\n" +
			"and before it changes a setting or allows a tool of what is here.\n" +
			"Applied twice it changes nothing the second time. What is not in the set is left alone.",
		Example: "  skald-connectors apply set.json --dry-run\n" +
			"  skald-connectors apply set.json\n" +
			"  skald-connectors apply set.json --yes --secret-file email/EMAIL_PASSWORD=pw.txt",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return a.apply(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, change nothing; exit 10 when there is something")
	f.BoolVar(&o.latest, "latest", false, "where a version is gone, take the marketplace's newest")
	o.agreeFlags.register(c, "agree to the plans and to changed settings")
	f.BoolVar(&o.noMount, "no-mount", false, "do not mount into clients")
	f.BoolVar(&o.wider, "allow-wider", false, "agree to what the set lets a connector do besides what it asks for: grants, no sandbox")
	f.StringArrayVar(&o.bundles, "bundle", nil, "take connectors from this bundle `FILE` (repeatable)")
	registerExpired(c, &o.expired)
	f.StringArrayVar(&o.secretFile, "secret-file", nil, "read a secret from a file, - for standard input: `NAME/FIELD=PATH`")
	f.StringArrayVar(&o.secretEnv, "secret-env", nil, "read a secret from an environment variable: `NAME/FIELD=VARIABLE`")
	return c
}

// The actions of a step.
const (
	stepInstall = "install"
	stepChange  = "change"
	stepSame    = "same"
	stepDiffers = "differs" // here in another version, or as another connector
	stepFailed  = "failed"
)

// applyStep is what one activation of the set needs here.
type applyStep struct {
	Name    string   `json:"name"`
	Action  string   `json:"action"`
	What    string   `json:"what,omitempty"` // connector, version and marketplace
	Asks    []string `json:"asks"`
	Changes []string `json:"changes"`
	Mounts  []string `json:"mounts"` // clients to mount into
	Message string   `json:"message,omitempty"`
	Done    bool     `json:"done"`

	member setMember
	opts   *installOptions
	plan   *activate.Plan
	shop   *shop
	given  map[string]activate.Given
	allows []string // tools that are denied here
	detail []string // the changes with their values, for whoever agrees
	err    error
}

func (a *app) apply(ctx context.Context, o *applyOptions) error {
	used := ""
	data, err := a.readInput(ctx, "apply", o.file, setLimit, &used)
	if err != nil {
		return err
	}
	want, err := readSet(data)
	if err != nil {
		return usagef("reading the set %s: %v", o.file, err)
	}
	secrets, err := o.readSecrets(ctx, a, want, &used)
	if err != nil {
		return err
	}
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	a.startProgress()
	defer dropAdopted(act, want)
	steps := make([]*applyStep, len(want.Activations))
	for i, m := range want.Activations {
		if steps[i] = a.planMember(ctx, act, m, o, secrets[m.Name]); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	a.clearProgress()
	if o.dryRun {
		return a.endApply(act, want, steps, true)
	}
	if err := a.agreeSteps(ctx, steps, o); err != nil {
		return err
	}
	for _, s := range steps {
		if s.err == nil {
			a.takeStep(ctx, act, s)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return a.endApply(act, want, steps, false)
}

// readSecrets gathers the secrets that flags name as NAME/FIELD.
func (o *applyOptions) readSecrets(ctx context.Context, a *app, want *set, used *string) (map[string]map[string]activate.Given, error) {
	out := map[string]map[string]activate.Given{}
	add := func(flag, key string, v keystore.Secret) error {
		name, field, ok := strings.Cut(key, "/")
		if !ok || !slices.ContainsFunc(want.Activations, func(m setMember) bool { return m.Name == name }) {
			return usagef("%s takes NAME/FIELD=…, with an activation of the set as NAME", flag)
		}
		if out[name] == nil {
			out[name] = map[string]activate.Given{}
		}
		out[name][field] = activate.Given{Value: v, Source: flag}
		return nil
	}
	for _, kv := range o.secretFile {
		key, path, err := pair("--secret-file", kv)
		if err != nil {
			return nil, err
		}
		data, err := a.readSecretFile(ctx, "--secret-file "+key, path, used)
		if err == nil {
			err = add("--secret-file", key, keystore.NewSecret(string(data)))
		}
		if err != nil {
			return nil, err
		}
	}
	for _, kv := range o.secretEnv {
		key, variable, err := pair("--secret-env", kv)
		if err != nil {
			return nil, err
		}
		value := a.getenv(variable)
		if value == "" {
			return nil, usagef("--secret-env %s: the variable %s is not set", key, variable)
		}
		if err := add("--secret-env", key, keystore.NewSecret(value)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// takeStep does what was planned; what goes wrong stays in the step.
func (a *app) takeStep(ctx context.Context, act *activate.Activator, s *applyStep) {
	switch s.Action {
	case stepInstall:
		s.err = a.installMember(ctx, act, s)
	case stepChange:
		s.err = a.changeMember(ctx, act, s)
	default:
		return
	}
	if s.Done = s.err == nil; !s.Done {
		s.Message = words(s.err)
		if !a.json {
			a.complain(s.err)
		}
	}
}

func (a *app) installMember(ctx context.Context, act *activate.Activator, s *applyStep) error {
	undo, err := act.PrepareKeys(ctx, s.plan, s.given)
	if err != nil {
		return err
	}
	defer undo()
	a.showFiles()
	b, err := s.shop.market.Bundle(ctx, s.plan.Index, s.plan.Entry)
	if err != nil {
		return err
	}
	o := s.opts
	o.bundle = s.shop.bundle
	packages, carried, err := o.unpackPackages(s.shop)
	if err != nil {
		return err
	}
	defer carried()
	rec, err := act.Install(ctx, activate.Request{Plan: s.plan, Bundle: b, Given: s.given, NoVerify: o.noVerify, AllowScripts: o.scripts, DepsTimeout: o.depsTimeout,
		Packages: packages, Grant: record.Grant{Allow: o.allow, Deny: o.deny}, Mode: o.sandbox, Grants: o.grants, Withheld: o.withheld, Ask: append([]string{}, s.Asks...)})
	if err != nil {
		return err
	}
	return a.mountMember(ctx, act, s, rec)
}

// mountMember mounts into the clients of the set that are here.
func (a *app) mountMember(ctx context.Context, act *activate.Activator, s *applyStep, rec *record.Record) error {
	if len(s.Mounts) == 0 {
		return nil
	}
	report, err := a.mountInstalled(ctx, act, &installOptions{mount: s.Mounts}, []*record.Record{rec})
	if err == nil && len(report.Refused) > 0 {
		err = report.Refused[0].err
	}
	return err
}

// changeMember brings settings and tools in line.
func (a *app) changeMember(ctx context.Context, act *activate.Activator, s *applyStep) error {
	rec, err := act.Records().Read(s.Name)
	if err != nil {
		return err
	}
	if len(s.given) > 0 {
		if rec, err = act.Configure(ctx, s.Name, s.given, activate.ConfigureOptions{NoVerify: s.opts.noVerify}); err != nil {
			return err
		}
	}
	allow, deny := toolChanges(rec.Grant, s.member.Grant)
	if len(allow)+len(deny) > 0 {
		if rec, err = act.LimitTools(ctx, s.Name, allow, deny); err != nil {
			return err
		}
	}
	return a.mountMember(ctx, act, s, rec)
}

// toolChanges is what makes one list of denied tools the other.
func toolChanges(has, want record.Grant) (allow, deny []string) {
	for _, t := range has.Deny {
		if !slices.Contains(want.Deny, t) {
			allow = append(allow, t)
		}
	}
	for _, t := range want.Deny {
		if !slices.Contains(has.Deny, t) {
			deny = append(deny, t)
		}
	}
	return allow, deny
}

// endApply says what was done, or would be, and what of this machine is not in the set.
func (a *app) endApply(act *activate.Activator, want *set, steps []*applyStep, dryRun bool) error {
	extra := []string{}
	listed, _ := act.Records().List()
	for _, l := range listed {
		if !slices.ContainsFunc(want.Activations, func(m setMember) bool { return m.Name == l.Name }) {
			extra = append(extra, l.Name)
		}
	}
	var first error
	todo := false
	for _, s := range steps {
		first = cmp.Or(first, s.err)
		todo = todo || s.Action == stepInstall || s.Action == stepChange
	}
	if a.json {
		if err := a.printJSON(map[string]any{"dry_run": dryRun, "steps": steps, "not_in_set": extra}); err != nil {
			return err
		}
	} else if err := a.showSteps(steps, dryRun, extra); err != nil {
		return err
	}
	switch {
	case first != nil && errors.Is(first, context.Canceled):
		return first
	case first != nil:
		return &saidError{classifyOnly(first)}
	case dryRun && todo:
		return &saidError{exitToDo}
	}
	return nil
}

func (a *app) showSteps(steps []*applyStep, dryRun bool, extra []string) error {
	rows := make([][]string, len(steps))
	for i, s := range steps {
		action := s.Action
		if s.Done && !dryRun {
			action = map[string]string{stepInstall: "installed", stepChange: "changed"}[action]
		}
		rows[i] = []string{action, s.Name, s.text()}
	}
	if err := a.table(nil, rows); err != nil {
		return err
	}
	for _, s := range steps {
		if s.err != nil && s.plan == nil { // the others were told when they failed
			a.complain(fmt.Errorf("applying %q: %w", s.Name, s.err))
		}
	}
	if len(extra) > 0 {
		a.say("not in the set, and left as it is: %s", strings.Join(extra, ", "))
	}
	return nil
}

// text is what a step is about, in words.
func (s *applyStep) text() string {
	parts := []string{}
	if s.What != "" {
		parts = append(parts, s.What)
	}
	if len(s.Asks) > 0 && !s.Done {
		parts = append(parts, "asks for "+strings.Join(s.Asks, ", "))
	}
	if len(s.Changes) > 0 {
		parts = append(parts, strings.Join(s.Changes, ", "))
	}
	if len(s.Mounts) > 0 {
		parts = append(parts, "mounted in "+strings.Join(s.Mounts, ", "))
	}
	if s.Message != "" {
		parts = append(parts, s.Message)
	}
	return strings.Join(parts, "; ")
}
