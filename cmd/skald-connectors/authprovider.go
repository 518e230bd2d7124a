package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/login"
)

func (a *app) providerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "provider",
		Short: "The providers that connectors sign in with: google and others",
		Long: "A provider is where you sign in, together with a client of yours there. What is public of\n" +
			"google, microsoft, github, slack, notion, spotify, linear and atlassian is known; the client\n" +
			"is your own, and no marketplace can name one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.providerAddCommand(), a.providerListCommand(), a.providerRemoveCommand())
	return c
}

type providerOptions struct {
	p                                           login.Provider
	clientFile, clientID, secretFile, secretEnv string
	params                                      []string
}

func (a *app) providerAddCommand() *cobra.Command {
	o := &providerOptions{}
	c := &cobra.Command{
		Use:   "add PROVIDER",
		Short: "Set a provider up: your client ID and secret there",
		Long: "add stores your client of a provider: from the file that its console offers for download,\n" +
			"from flags, or from a form. The secret goes into the key store. For a provider that this\n" +
			"program does not know, name its issuer, or its addresses.",
		Example: "  skald-connectors auth provider add google --client-file client_secret_123.json\n" +
			"  skald-connectors auth provider add github --client-id Iv1.0123456789abcdef\n" +
			"  skald-connectors auth provider add ours --issuer https://id.example.org --client-id connectors --secret-file secret.txt",
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"google", "microsoft", "github", "slack", "notion", "spotify", "linear", "atlassian"}, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.p.Slug = args[0]
			return a.providerAdd(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.clientFile, "client-file", "", "the downloaded client_secret_….json (`FILE`)")
	f.StringVar(&o.clientID, "client-id", "", "the client's `ID`")
	f.StringVar(&o.secretFile, "secret-file", "", "read the client's secret from a file, - for standard input (`PATH`)")
	f.StringVar(&o.secretEnv, "secret-env", "", "read the client's secret from an environment `VARIABLE`")
	f.StringVar(&o.p.Issuer, "issuer", "", "the authorization server, which is asked for its addresses (`URL`)")
	f.StringVar(&o.p.AuthURL, "auth-url", "", "where the browser goes (`URL`)")
	f.StringVar(&o.p.TokenURL, "token-url", "", "where tokens come from (`URL`)")
	f.StringVar(&o.p.DeviceURL, "device-url", "", "where device codes come from (`URL`)")
	f.StringVar(&o.p.RevokeURL, "revoke-url", "", "where tokens are revoked (`URL`)")
	f.StringVar(&o.p.Redirect, "redirect", "", "`WHERE` the answer comes: loopback, a loopback address, or an https page that shows the code")
	f.StringVar(&o.p.TokenAuth, "token-auth", "", "`HOW` the client names itself: post, basic or none")
	f.StringVar(&o.p.Separator, "scope-separator", "", "what stands between scopes: a space (default) or a comma (`TEXT`)")
	f.StringArrayVar(&o.params, "param", nil, "one more parameter of the link: `NAME=VALUE` (repeatable)")
	f.BoolVar(&o.p.Rotates, "rotates", false, "its refresh tokens are good for one use")
	return c
}

// over puts what flags say over what is known.
func (o *providerOptions) over(p login.Provider) (login.Provider, error) {
	for _, pair := range []struct{ to, from *string }{
		{&p.Issuer, &o.p.Issuer}, {&p.AuthURL, &o.p.AuthURL}, {&p.TokenURL, &o.p.TokenURL}, {&p.DeviceURL, &o.p.DeviceURL}, {&p.RevokeURL, &o.p.RevokeURL},
		{&p.Redirect, &o.p.Redirect}, {&p.TokenAuth, &o.p.TokenAuth}, {&p.Separator, &o.p.Separator}, {&p.ClientID, &o.clientID},
	} {
		if *pair.from != "" {
			*pair.to = *pair.from
		}
	}
	if o.p.Issuer == "" && (o.p.AuthURL != "" || o.p.TokenURL != "") {
		p.Issuer = "" // that of the known addresses
	}
	p.Rotates = p.Rotates || o.p.Rotates
	for _, kv := range o.params {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return p, usagef("--param takes NAME=VALUE")
		}
		if p.Extra == nil {
			p.Extra = map[string]string{}
		}
		p.Extra[name] = value
	}
	return p, nil
}

func (a *app) providerAdd(ctx context.Context, o *providerOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	p, err := o.over(act.Providers().Preset(o.p.Slug))
	if err != nil {
		return err
	}
	if o.clientFile != "" {
		if o.clientID != "" || o.secretFile != "" || o.secretEnv != "" {
			return usagef("--client-file holds the client ID and the secret; they are not given a second time")
		}
		if p, err = a.clientFile(ctx, o.clientFile, p); err != nil {
			return usagef("%v", err)
		}
	} else if p.ClientSecret, err = a.secretOf(ctx, o.secretFile, o.secretEnv); err != nil {
		return err
	}
	if o.p.Issuer != "" && (p.AuthURL == "" || p.TokenURL == "") {
		if p, err = act.Logins().Discover(ctx, p); err != nil {
			return err
		}
	}
	if p.AuthURL == "" || p.TokenURL == "" {
		return withHint(usagef("the provider %q is not known here", form.Clean(p.Slug)),
			"name its addresses: --issuer URL, or --auth-url URL and --token-url URL; those that are known: %s auth provider list", program)
	}
	if p, err = a.completeClient(ctx, p); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return usagef("%v", err)
	}
	if err := act.Providers().Put(ctx, p); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(a.providerLine(login.ProviderState{Provider: p, Configured: true, HasSecret: !p.ClientSecret.IsZero()}))
	}
	a.line("%s is set up with the client %s.", orElse(p.Title, p.Slug), form.Clean(p.ClientID))
	a.sayAffected(act, p.Slug)
	return nil
}

// completeClient asks for the client where no flag gave it.
func (a *app) completeClient(ctx context.Context, p login.Provider) (login.Provider, error) {
	if p.ClientID != "" {
		return p, nil
	}
	term := a.terminal()
	if term == nil {
		return p, withHint(usagef("the client ID is missing"), "give --client-file FILE, or --client-id ID and --secret-file PATH")
	}
	if p.Title == "" {
		p.Title = p.Slug
	}
	a.say("%s\n", capital(clientHelp(&login.NoClientError{Slug: p.Slug, Title: p.Title, Console: p.Console, Known: true}, true)))
	return a.askClient(ctx, term, p)
}

// sayAffected names connectors whose sign-in was made with another client; it keeps working with that one.
func (a *app) sayAffected(act *activate.Activator, slug string) {
	list, err := act.Records().List()
	if err != nil {
		return
	}
	for _, l := range list {
		if l.Record != nil && l.Record.Auth.Provider == slug && l.Record.AuthState == record.Ready && activate.SignsIn(l.Record) {
			a.say("%s goes on with the client that it signed in with; for the new one: %s auth %s", l.Name, program, l.Name)
		}
	}
}

// providerLine is one provider of `auth provider list --json`.
type providerLine struct {
	Provider   string `json:"provider"`
	Title      string `json:"title"`
	Configured bool   `json:"configured"`
	ClientID   string `json:"client_id,omitempty"`
	HasSecret  bool   `json:"has_secret"`
	AuthURL    string `json:"auth_url,omitempty"`
	TokenURL   string `json:"token_url,omitempty"`
	Device     bool   `json:"device_flow"`
	Revokes    bool   `json:"can_revoke"`
	Redirect   string `json:"redirect"`
	Console    string `json:"console,omitempty"`
	Error      string `json:"error,omitempty"`
}

func (a *app) providerLine(s login.ProviderState) providerLine {
	l := providerLine{Provider: s.Slug, Title: orElse(s.Title, s.Slug), Configured: s.Configured, ClientID: s.ClientID, HasSecret: s.HasSecret, AuthURL: s.AuthURL,
		TokenURL: s.TokenURL, Device: s.DeviceURL != "", Revokes: s.RevokeURL != "", Redirect: orElse(s.Redirect, "loopback"), Console: s.Console}
	if s.Err != nil {
		l.Error = s.Err.Error()
	}
	return l
}

func (a *app) providerListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the providers that are known and set up", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.providerList() },
	}
}

func (a *app) providerList() error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	list, err := act.Providers().List()
	if err != nil {
		return err
	}
	lines, rows := make([]providerLine, len(list)), make([][]string, len(list))
	for i, s := range list {
		l := a.providerLine(s)
		lines[i] = l
		client := "not set up"
		switch {
		case l.Error != "":
			client = "cannot be read: " + form.Clean(l.Error)
		case l.Configured:
			client = form.Clean(l.ClientID)
		}
		rows[i] = []string{l.Provider, client, form.Clean(l.Console)}
	}
	if a.json {
		return a.printJSON(map[string]any{"providers": lines})
	}
	return a.table([]string{"PROVIDER", "CLIENT", "A CLIENT IS MADE AT"}, rows)
}

func (a *app) providerRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove PROVIDER", Short: "Forget your client of a provider", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.providerRemove(cmd.Context(), args[0]) },
	}
}

func (a *app) providerRemove(ctx context.Context, slug string) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	existed, err := act.Providers().Remove(ctx, slug)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"provider": slug, "existed": existed})
	}
	if !existed {
		a.line("%s was not set up; nothing to remove", form.Clean(slug))
		return nil
	}
	a.line("the client of %s is forgotten", form.Clean(slug))
	a.sayAffected(act, slug)
	return nil
}
