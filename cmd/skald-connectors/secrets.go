package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

func (a *app) secretsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "secrets",
		GroupID: "main",
		Short:   "List, replace and remove the secrets of an installed connector",
		Long:    "secrets works on single secrets of an installed connector. Values are read from a prompt,\na file or standard input, never from an argument, and are never shown.",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use: "list NAME", Short: "Name the secrets of a connector, never their values",
		Example: "  skald-connectors secrets list email",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeNames,
		RunE: func(_ *cobra.Command, args []string) error { return a.secretsList(args[0]) },
	})
	file, expires := "", ""
	put := &cobra.Command{
		Use: "put NAME HANDLE", Short: "Store or replace one secret",
		Example: "  skald-connectors secrets put email EMAIL_PASSWORD\n  pass show mail | skald-connectors secrets put email EMAIL_PASSWORD",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.secretsPut(cmd.Context(), args[0], args[1], file, expires)
		},
	}
	put.Flags().StringVar(&file, "file", "", "read the value from the file `PATH`, - for standard input")
	put.Flags().StringVar(&expires, "expires-at", "", "when the value stops working: a `TIME` in UTC like 2027-01-31T00:00:00Z; sessions park then, and say so")
	c.AddCommand(put, &cobra.Command{
		Use: "remove NAME HANDLE", Short: "Remove one secret",
		Example: "  skald-connectors secrets remove email EMAIL_PASSWORD",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.secretsRemove(cmd.Context(), args[0], args[1])
		},
	})
	return c
}

// secretLine is one secret as `secrets list` prints it.
type secretLine struct {
	Name      string    `json:"name"`
	Store     string    `json:"store"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

func (a *app) secretsList(name string) error {
	_, rec, err := a.openInstalled(name)
	if err != nil {
		return err
	}
	lines := make([]secretLine, len(rec.Secrets))
	rows := make([][]string, len(rec.Secrets))
	for i, s := range rec.Secrets {
		lines[i] = secretLine(s)
		expires := "never"
		if !s.ExpiresAt.IsZero() {
			expires = s.ExpiresAt.Format(time.RFC3339)
		}
		rows[i] = []string{s.Name, s.Store, expires}
	}
	if a.json {
		return a.printJSON(map[string]any{"name": name, "secrets": lines})
	}
	if len(rows) == 0 {
		a.say("%s has no secrets", name)
		return nil
	}
	return a.table([]string{"SECRET", "KEY IN", "EXPIRES"}, rows)
}

// parseUntil reads --expires-at (launcher.md section 7): RFC 3339 in UTC, with a Z at its end. "" is the zero time.
func parseUntil(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || !strings.HasSuffix(text, "Z") {
		return until, usagef("--expires-at %q is not a time in UTC like 2027-01-31T00:00:00Z", text)
	}
	return until, nil
}

func (a *app) secretsPut(ctx context.Context, name, handle, file, expires string) error {
	until, err := parseUntil(expires)
	if err != nil {
		return err
	}
	act, rec, err := a.openInstalled(name)
	if err != nil {
		return err
	}
	field, err := act.SecretField(name, handle)
	if err != nil {
		return err
	}
	value, err := a.readSecret(ctx, name, field, file)
	if err != nil {
		return err
	}
	existed := rec.Secret(handle)
	if err := act.PutSecret(ctx, name, handle, value, until); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"name": name, "secret": handle, "replaced": existed})
	}
	word := "stored"
	if existed {
		word = "replaced"
	}
	a.line("%s of %s is %s; test it with %s verify %s", form.Clean(handle), name, word, program, name)
	return nil
}

// readSecret takes the value from the named file, from a prompt, or from
// standard input when that is not a terminal.
func (a *app) readSecret(ctx context.Context, name string, field manifest.Field, file string) (keystore.Secret, error) {
	if term := a.terminal(); file == "" && term != nil {
		field.Required = true
		answers, err := term.Fill(ctx, "Secret of "+name, []form.Question{{Field: field}})
		return answers[field.Name].Value, err
	}
	if file == "" && isTerminal(a.stdin) {
		return keystore.Secret{}, withHint(usagef("the value of %s cannot be asked for here", field.Name), "pipe it into the command, or give --file PATH")
	}
	used, what := "", "--file"
	if file == "" {
		what = "standard input"
	}
	data, err := a.readSecretFile(ctx, what, orElse(file, "-"), &used)
	return keystore.NewSecret(string(data)), err
}

func (a *app) secretsRemove(ctx context.Context, name, handle string) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	existed, err := act.RemoveSecret(ctx, name, handle)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"name": name, "secret": handle, "existed": existed})
	}
	if !existed {
		a.line("%s has no secret %s; nothing to remove", name, form.Clean(handle))
		return nil
	}
	a.line("%s of %s is removed", form.Clean(handle), name)
	if rec, err := act.Records().Read(name); err == nil && rec.AuthState == record.Unauthorized {
		a.say("its sessions are parked until it is there again: %s auth %s", program, name)
	}
	return nil
}
