package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
)

func (a *app) rollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rollback NAME",
		GroupID: "main",
		Short:   "Go back to the version from before the last upgrade",
		Long: "rollback puts the version that the last upgrade replaced back in force, in one step and\n" +
			"without the network. Its settings are those from before the upgrade; secrets that were\n" +
			"renewed since stay renewed, and the connector's own data stays. upgrade passes over the\n" +
			"version that you went back from until a newer one is there. A version that its marketplace\n" +
			"has taken back since is refused.",
		Example:           "  skald-connectors rollback email",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.rollback(cmd.Context(), args[0]) },
	}
}

func (a *app) rollback(ctx context.Context, name string) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.mayGoBack(act, name); err != nil {
		return err
	}
	rec, err := act.Rollback(ctx, name)
	if _, none := errors.AsType[*activate.NoPriorError](err); none {
		if now, rerr := act.Records().Read(name); rerr == nil && now.PassOver > 0 {
			return withHint(err, "you went back already; %s upgrade %s --again goes forward", program, name)
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"name": rec.Name, "version": rec.Version, "version_string": displayVersion(rec), "state": rec.AuthState, "passed_over": rec.PassOver})
	}
	a.line("%s is back at %s, %s.", rec.Name, versionOf(rec), rec.AuthState)
	a.say("upgrade passes over version %d until a newer one is there", rec.PassOver)
	return nil
}

// mayGoBack says early, and with advice, that a version is refused that its marketplace took back since: it could not run. What is remembered decides; the
// network is not asked.
func (a *app) mayGoBack(act *activate.Activator, name string) error {
	rec, err := act.Records().Read(name)
	if err != nil {
		return err
	}
	prior, err := rec.Prior()
	if err != nil || prior == nil || prior.Index.URL == "" {
		return nil // Rollback says what is wrong
	}
	m, err := a.remembered(prior.Index.URL, act.Home)
	if err != nil {
		return nil // it is no address any more
	}
	if err := revoked(m, prior); err != nil {
		return withHint(fmt.Errorf("going back with %q: %w", name, err), "%s stays in force; where it does not work, wait for a newer one", versionOf(rec))
	}
	return nil
}

func (a *app) pinCommand() *cobra.Command {
	return a.pinning(true, &cobra.Command{
		Use:     "pin NAME",
		Short:   "Keep an installed connector at its version",
		Long:    "pin lets upgrade pass over a connector until unpin. A rollback is still possible.",
		Example: "  skald-connectors pin email",
	})
}

func (a *app) unpinCommand() *cobra.Command {
	return a.pinning(false, &cobra.Command{
		Use:     "unpin NAME",
		Short:   "Let a pinned connector be upgraded again",
		Long:    "unpin ends what pin began.",
		Example: "  skald-connectors unpin email",
	})
}

func (a *app) pinning(pin bool, c *cobra.Command) *cobra.Command {
	c.GroupID, c.Args, c.ValidArgsFunction = "main", cobra.ExactArgs(1), a.completeNames
	c.RunE = func(cmd *cobra.Command, args []string) error { return a.pin(cmd.Context(), args[0], pin) }
	return c
}

func (a *app) pin(ctx context.Context, name string, pin bool) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	rec, err := act.SetPinned(ctx, name, pin)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"name": rec.Name, "version": rec.Version, "pinned": rec.Pinned})
	}
	fmt.Fprintln(a.stdout, pinText(rec))
	return nil
}

func pinText(rec *record.Record) string {
	if rec.Pinned {
		return fmt.Sprintf("%s is pinned to %s.", rec.Name, form.Clean(displayVersion(rec)))
	}
	return fmt.Sprintf("%s is not pinned; upgrades are put in place.", rec.Name)
}
