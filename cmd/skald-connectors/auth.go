package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
)

type authOptions struct {
	configureOptions
	ways signInFlags
}

func (a *app) authCommand() *cobra.Command {
	o := &authOptions{}
	c := &cobra.Command{
		Use:     "auth NAME",
		GroupID: "main",
		Short:   "Sign an installed connector in",
		Long: "auth signs an installed connector in anew: in a browser, and tests it with the new sign-in\n" +
			"before that replaces the old one; or with the QR code that a phone has to read. Where a\n" +
			"credential is typed, it shows the settings, as configure does. A session that waits for it\n" +
			"wakes by itself.",
		Example: "  skald-connectors auth gmail\n  skald-connectors auth whatsapp\n  skald-connectors auth gmail --paste  # browser elsewhere\n" +
			"  skald-connectors auth status\n  skald-connectors auth provider list",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return a.auth(cmd.Context(), o)
		},
	}
	o.ways.register(c)
	o.register(c)
	c.AddCommand(a.authStatusCommand(), a.providerCommand())
	return c
}

func (a *app) auth(ctx context.Context, o *authOptions) error {
	act, rec, err := a.openInstalled(o.name)
	if err != nil {
		return err
	}
	switch {
	case rec.Auth.Type == "qr":
		return a.authQR(ctx, act, &o.configureOptions)
	case !act.CanSignIn(rec):
		return a.configure(ctx, &o.configureOptions)
	case o.given.any() || o.sandbox != "" || o.noVerify || len(o.access.grant)+len(o.access.withhold) > 0:
		return withHint(usagef("%s signs in in a browser; auth takes no settings for it", o.name), "change its settings with %s configure %s", program, o.name)
	}
	if act.Signer = a.signer(o.ways); act.Signer == nil {
		return &activate.UnsignedError{Name: o.name, Provider: orElse(rec.Auth.Provider, "its server's provider")}
	}
	rec, followed, err := act.Authorize(ctx, o.name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(rec)
	}
	if followed {
		a.line("%s was signed in meanwhile by another %s; it is %s.", rec.Name, program, rec.AuthState)
		return nil
	}
	a.line("%s is signed in; it is %s.", rec.Name, rec.AuthState)
	return nil
}

func (a *app) authStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show who is signed in where, with which scopes, and how long it lasts",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.authStatus(cmd.Context()) },
	}
}

// phoneProvider stands where a provider would, for a sign-in by QR code.
const phoneProvider = "phone"

// signInLine is one sign-in of `auth status --json`. Times are RFC 3339; lasts is "renewed", "until" (with access_expires),
// "unknown" or "over".
type signInLine struct {
	Name     string       `json:"name"`
	Provider string       `json:"provider"`
	State    record.State `json:"state"`
	SignedIn bool         `json:"signed_in"`
	Asked    []string     `json:"scopes_asked"`
	Granted  []string     `json:"scopes_granted"`
	Missing  []string     `json:"scopes_missing"`
	Obtained time.Time    `json:"obtained,omitzero"`
	Expires  time.Time    `json:"access_expires,omitzero"`
	Lasts    string       `json:"lasts"`
	Revokes  bool         `json:"can_revoke"`
	Error    string       `json:"error,omitempty"`
}

func (a *app) authStatus(ctx context.Context) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	list, err := act.SignIns(ctx)
	if err != nil {
		return err
	}
	lines, rows := make([]signInLine, len(list)), make([][]string, len(list))
	for i, s := range list {
		l := a.signInLine(s)
		lines[i] = l
		scopes := fmt.Sprintf("%d of %d", len(l.Asked)-len(l.Missing), len(l.Asked))
		if !l.SignedIn || s.QR {
			scopes = "-"
		}
		rows[i] = []string{l.Name, orElse(l.Provider, "-"), string(l.State), scopes, a.lastsText(l)}
	}
	if a.json {
		return a.printJSON(map[string]any{"sign_ins": lines})
	}
	if len(rows) == 0 {
		a.say("no connector here signs in; those whose credential is typed are not listed here")
		return nil
	}
	if err := a.table([]string{"NAME", "PROVIDER", "STATE", "SCOPES", "LASTS"}, rows); err != nil {
		return err
	}
	for _, l := range lines {
		if len(l.Missing) > 0 {
			fmt.Fprintln(a.stdout, a.wrapped(fmt.Sprintf("%s: not granted: %s; ask again with %s auth %s", l.Name, form.Clean(strings.Join(l.Missing, ", ")), program, l.Name)))
		}
	}
	return nil
}

func (a *app) signInLine(s activate.SignInState) signInLine {
	l := signInLine{Name: s.Name, Provider: s.Provider, State: s.State, Asked: []string{}, Granted: []string{}, Missing: []string{}, Lasts: "over"}
	if s.Locked != nil {
		l.Error, l.Lasts = s.Locked.Error(), "unknown"
	}
	if s.QR {
		l.Provider = phoneProvider
		if l.SignedIn = s.State == record.Ready; l.SignedIn {
			l.Lasts = "unknown"
		}
	}
	c := s.Credential
	if c == nil {
		return l
	}
	l.SignedIn = !c.Refresh.IsZero() || c.FreshAt(a.hooks.now())
	l.Asked, l.Granted, l.Missing = append(l.Asked, c.Asked...), append(l.Granted, c.Granted...), append(l.Missing, c.Missing()...)
	l.Obtained, l.Expires, l.Revokes = c.Obtained, c.Expires, c.Revokes()
	switch {
	case !c.Refresh.IsZero():
		l.Lasts = "renewed"
	case !l.SignedIn:
	case c.Expires.IsZero():
		l.Lasts = "unknown"
	default:
		l.Lasts = "until"
	}
	return l
}

func (a *app) lastsText(l signInLine) string {
	switch l.Lasts {
	case "renewed":
		return "renewed by itself, until it is revoked"
	case "until":
		return "until " + l.Expires.Local().Format("2006-01-02 15:04") + "; cannot be renewed"
	case "over":
		if l.Obtained.IsZero() {
			return fmt.Sprintf("not signed in; run: %s auth %s", program, l.Name)
		}
		return fmt.Sprintf("over; run: %s auth %s", program, l.Name)
	}
	if l.Error != "" {
		return "not known: " + form.Clean(l.Error)
	}
	if l.Provider == phoneProvider {
		return "until the phone ends it"
	}
	return "until the provider ends it"
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "logout NAME",
		GroupID: "main",
		Short:   "Sign an installed connector out",
		Long: "logout tells the provider, or the service, to forget the sign-in, where it can be told, and\n" +
			"deletes it here. Open sessions of the connector park at once; it stays installed, and auth\n" +
			"signs it in again. Some providers forget every sign-in of the same account with it.",
		Example:           "  skald-connectors logout gmail\n  skald-connectors logout whatsapp",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logout(cmd.Context(), args[0]) },
	}
}

func (a *app) logout(ctx context.Context, name string) error {
	act, rec, err := a.openInstalled(name)
	if err != nil {
		return err
	}
	if rec.Auth.Type == "qr" {
		return a.logoutQR(ctx, act, name)
	}
	out, err := act.Logout(ctx, name)
	if err != nil {
		return err
	}
	if a.json {
		doc := map[string]any{"name": name, "provider": out.Provider, "was_signed_in": out.Had, "revoked": out.Revoked}
		if out.Failed != nil {
			doc["error"] = words(out.Failed)
		}
		return a.printJSON(doc)
	}
	switch {
	case !out.Had:
		a.line("%s was not signed in.", name)
	case out.Revoked:
		a.line("%s is signed out: %s has revoked the sign-in, and it is deleted here.", name, out.Provider)
	case out.Failed != nil:
		a.line("%s is signed out here; %s could not be told: %s", name, out.Provider, words(out.Failed))
	default:
		a.line("%s is signed out here; %s has no way to be told: remove this program in the settings of your account there.", name, out.Provider)
	}
	if len(out.Others) > 0 && out.Revoked {
		a.say("if %s uses the same account, it may have to sign in again", strings.Join(out.Others, ", "))
	}
	return nil
}
