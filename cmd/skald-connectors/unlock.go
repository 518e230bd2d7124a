package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"skald-connectors/keystore"
)

func (a *app) unlockCommand() *cobra.Command {
	forget := false
	c := &cobra.Command{
		Use:     "unlock",
		GroupID: "main",
		Short:   "Open the key store; sessions that wait for it go on",
		Long: "unlock asks your system to open the keychain that holds the key of your secrets, or asks\n" +
			"you for their passphrase. Sessions that are parked because it was locked start their\n" +
			"connectors within seconds. On Linux the key behind a passphrase is kept in the memory of the\n" +
			"kernel for all your programs until you log out, or until unlock --forget.",
		Example: "  skald-connectors unlock\n  skald-connectors unlock --forget",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forget {
				return a.lockAgain()
			}
			return a.unlock(cmd.Context())
		},
	}
	c.Flags().BoolVar(&forget, "forget", false, "close a passphrase store again for new sessions")
	return c
}

func (a *app) unlock(ctx context.Context) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	kept, err := act.Keys.UnlockLogin(ctx)
	if err != nil {
		return err
	}
	store, err := act.Keys.Describe()
	if err != nil {
		return err
	}
	others := kept || store.Backend != keystore.BackendPassphrase
	if a.json {
		return a.printJSON(map[string]any{"keystore": store.Backend, "open": true, "for_other_programs": others})
	}
	a.line("the key store (%s) is open", store.Backend)
	if !others {
		a.say("this system does not keep it open for other programs; sessions need SKALD_CONNECTORS_PASSPHRASE_FILE")
	} else if kept {
		a.say("your programs can open it until you log out or run %s unlock --forget", program)
	}
	return nil
}

// lockAgain takes back what unlock keeps for the login.
func (a *app) lockAgain() error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	was, err := act.Keys.LockLogin()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"forgotten": was})
	}
	if was {
		fmt.Fprintln(a.stdout, "the key is forgotten; open sessions keep what they have")
	} else {
		fmt.Fprintln(a.stdout, "no key was kept")
	}
	return nil
}
