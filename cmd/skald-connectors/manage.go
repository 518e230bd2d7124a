package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
)

type configureOptions struct {
	name     string
	given    givenFlags
	noVerify bool
	sandbox  string
	access   accessFlags
}

func (a *app) configureCommand() *cobra.Command {
	o := &configureOptions{}
	c := &cobra.Command{
		Use:     "configure NAME",
		GroupID: "main",
		Short:   "Change the settings of an installed connector",
		Long: "configure shows the settings of an installed connector again. A stored secret shows as\n" +
			"kept, and an empty answer keeps it. The new settings are verified before they replace\n" +
			"the old ones.",
		Example:           "  skald-connectors configure email\n  skald-connectors configure email --set EMAIL_IMAP_PORT=993",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return a.configure(cmd.Context(), o)
		},
	}
	o.register(c)
	return c
}

func (o *configureOptions) register(c *cobra.Command) {
	c.Flags().BoolVar(&o.noVerify, "no-verify", false, "do not run the connector's verify command")
	c.Flags().StringVar(&o.sandbox, "sandbox", "", "change its protection: auto, bwrap, landlock, container or none (`MODE`)")
	o.access.register(c)
	o.given.register(c)
}

func (a *app) configure(ctx context.Context, o *configureOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	given, err := o.given.read(ctx, a)
	if err != nil {
		return err
	}
	if o.sandbox != "" {
		if err := checkSandbox(o.sandbox); err != nil {
			return err
		}
	}
	grants, withheld, err := o.access.read()
	if err != nil {
		return err
	}
	rec, err := act.Configure(ctx, o.name, given, activate.ConfigureOptions{NoVerify: o.noVerify, Mode: o.sandbox, Grants: grants, Withheld: withheld})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(rec)
	}
	a.line("%s has new settings; it is %s.", rec.Name, rec.AuthState)
	if runsHere(rec) {
		a.line("  sandbox  %s", rec.Sandbox.Enforced)
	}
	return nil
}

// runsHere tells whether code of an activation runs on this machine: a remote server's does not, but for its test.
func runsHere(rec *record.Record) bool { return rec.MCPConfig.URL == "" || rec.Verify.Ran }

// openHome builds the activator of the chosen home.
func (a *app) openHome() (*activate.Activator, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	return a.activator(home)
}

// installed lists what is installed in the home of this run.
func (a *app) installed() (home string, listed []record.Listed, err error) {
	if home, err = a.home(); err == nil {
		listed, err = record.Open(home).List()
	}
	return home, listed, err
}

// openInstalled opens the home of this run and reads the record of one activation.
func (a *app) openInstalled(name string) (*activate.Activator, *record.Record, error) {
	act, err := a.openHome()
	if err != nil {
		return nil, nil, err
	}
	rec, err := act.Records().Read(name)
	return act, rec, err
}

func (a *app) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "verify NAME",
		GroupID:           "main",
		Short:             "Test an installed connector with its stored settings",
		Long:              "verify runs the connector's verify command with the stored settings and starts its server\nonce. A connector that was saved unverified becomes ready when it passes.",
		Example:           "  skald-connectors verify email",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args[0]) },
	}
}

// verifyReport is the JSON document of verify.
type verifyReport struct {
	Name   string           `json:"name"`
	OK     bool             `json:"ok"`
	State  record.State     `json:"state"`
	Verify record.VerifyRef `json:"verify"`
	Error  string           `json:"error,omitempty"`
}

func (a *app) verify(ctx context.Context, name string) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	rec, outcome, err := act.Verify(ctx, name)
	if wantsSignIn(err) {
		err = withHint(&exitError{classifyOnly(err), err}, "sign in again with %s auth %s", program, name)
	}
	if rec == nil {
		return err
	}
	if a.json {
		report := verifyReport{Name: name, OK: err == nil, State: rec.AuthState, Verify: rec.Verify}
		if err != nil {
			report.Error = err.Error()
		}
		if perr := a.printJSON(report); perr != nil {
			return perr
		}
		a.json = false // the one document is out
		return withoutHint(err)
	}
	var signIn *activate.SignInError
	if errors.As(err, &signIn) {
		return withHint(&exitError{exitRefused, err}, "sign in with %s auth %s", program, name)
	}
	if err != nil && wantsSignIn(err) {
		return err
	}
	if err != nil {
		return withHint(&exitError{classifyOnly(err), err}, "change its settings with %s configure %s", program, name)
	}
	a.line("%s works: %s", name, orElse(outcome.Message, "its server started and answered"))
	if outcome.Details != "" && a.verbose {
		fmt.Fprintln(a.stdout, indent(outcome.Details))
	}
	return nil
}

// withoutHint keeps an error's exit code and drops advice that speaks of an
// install.
func withoutHint(err error) error {
	if err == nil {
		return nil
	}
	code, _ := classify(err)
	return &hintError{err: &exitError{code, err}}
}
