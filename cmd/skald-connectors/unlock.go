package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) unlockCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unlock",
		GroupID: "main",
		Short:   "Open a locked keychain; sessions that wait for it go on",
		Long: "unlock asks your system to open the keychain that holds the key of your secrets. Sessions\n" +
			"that are parked because it was locked start their connectors within seconds.",
		Example: "  skald-connectors unlock",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.unlock(cmd.Context()) },
	}
}

func (a *app) unlock(ctx context.Context) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := act.Keys.Unlock(ctx); err != nil {
		return err
	}
	store, err := act.Keys.Describe()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"keystore": store.Backend, "open": true})
	}
	fmt.Fprintf(a.stdout, "the key store (%s) is open\n", store.Backend)
	return nil
}
