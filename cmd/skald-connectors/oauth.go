package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// pasteLimit bounds one pasted line: an address with a code in it.
const pasteLimit = 64 << 10

// signInFlags are the ways to sign in.
type signInFlags struct{ browser, noBrowser, paste, device bool }

func (g *signInFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&g.browser, "browser", false, "sign-in: open the browser also where there is no terminal")
	f.BoolVar(&g.noBrowser, "no-browser", false, "sign-in: show the link and open nothing")
	f.BoolVar(&g.paste, "paste", false, "sign-in: read the code, or the address that the browser ends at, from the terminal or standard input")
	f.BoolVar(&g.device, "device", false, "sign-in: with a code that is typed on another device, where the provider has that")
	c.MarkFlagsMutuallyExclusive("paste", "device")
	c.MarkFlagsMutuallyExclusive("browser", "no-browser")
}

// signer is how a sign-in reaches the person; nil where nobody is there and no flag says how.
func (a *app) signer(g signInFlags) *activate.Signer {
	if !a.interactive() && g == (signInFlags{}) {
		return nil
	}
	s := &activate.Signer{Link: func(provider, address string) { a.showLink(provider, address, g) }}
	if open, ok := a.browser(); ok && !g.noBrowser && !g.paste {
		s.Open = open
	}
	if g.paste {
		s.Paste = a.paster()
	}
	if g.device {
		s.Code = a.showDeviceCode
	}
	return s
}

// showLink prints the address as one unbroken line, also with --quiet: without it nobody can go on.
func (a *app) showLink(provider, address string, g signInFlags) {
	a.clearProgress()
	fmt.Fprintf(a.stderr, "\nSign in with %s. The link:\n\n%s\n\n", form.Clean(provider), form.Clean(address))
	_, canOpen := a.browser()
	switch {
	case g.paste:
		fmt.Fprintln(a.stderr, a.wrapped("Open it in any browser. At its end the browser shows a code, or a page that cannot be reached: paste the code, or that page's whole address."))
	case g.noBrowser || !canOpen:
		fmt.Fprintln(a.stderr, a.wrapped("Open it in a browser on this machine; this waits for it. For a browser on another machine, stop this and add --paste."))
	default:
		fmt.Fprintln(a.stderr, a.wrapped("Your browser opens it now; this waits for it, at most ten minutes."))
	}
}

func (a *app) showDeviceCode(provider string, c login.DeviceCode) {
	a.clearProgress()
	fmt.Fprintf(a.stderr, "\nSign in with %s. On any device, open\n\n%s\n\nand type the code\n\n%s\n\n", form.Clean(provider), form.Clean(c.Address), form.Clean(c.Code))
	fmt.Fprintln(a.stderr, a.wrapped(fmt.Sprintf("This waits for it, at most %s.", lasting(c.Life))))
}

// browser gives what opens an address, where this machine shows any: $BROWSER, or the system's own way.
func (a *app) browser() (open func(context.Context, string), ok bool) {
	var words []string
	switch {
	case a.getenv("BROWSER") != "":
		first, _, _ := strings.Cut(a.getenv("BROWSER"), ":")
		words = strings.Fields(first)
	case runtime.GOOS == "darwin":
		words = []string{"open"}
	case runtime.GOOS == "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case a.getenv("DISPLAY") != "" || a.getenv("WAYLAND_DISPLAY") != "":
		words = []string{"xdg-open"}
	case a.getenv("WSL_DISTRO_NAME") != "":
		words = []string{"wslview"}
	}
	if len(words) == 0 {
		return nil, false
	}
	return func(_ context.Context, address string) {
		argv, placed := make([]string, len(words)), false
		for i, w := range words { // no shell: the address is one argument
			argv[i] = strings.ReplaceAll(w, "%s", address)
			placed = placed || strings.Contains(w, "%s")
		}
		if !placed {
			argv = append(argv, address)
		}
		if err := sandbox.Detach(sandbox.Command{Argv: argv, Env: a.environ}); err != nil {
			a.say("the browser could not be opened (%v); open the link yourself", err)
		}
	}, true
}

// paster reads what is pasted: on the terminal in a masked field, else line by line from standard input.
func (a *app) paster() func(context.Context, string) (string, error) {
	if term := a.terminal(); term != nil {
		return func(ctx context.Context, problem string) (string, error) {
			field := manifest.Field{Name: "answer", Label: "Code or address", Secret: true, Required: true}
			answers, err := term.Fill(ctx, "Sign-in", []form.Question{{Field: field, Problem: problem}})
			return answers["answer"].Value.Reveal(), err
		}
	}
	type line struct {
		text string
		err  error
	}
	lines := make(chan line)
	started := false
	return func(ctx context.Context, problem string) (string, error) {
		if problem != "" {
			a.say("%s", problem)
		}
		if !started {
			started = true
			go func() {
				defer close(lines)
				r := bufio.NewReaderSize(io.LimitReader(a.stdin, pasteLimit), 4<<10)
				for {
					text, err := r.ReadString('\n')
					if strings.TrimSpace(text) != "" {
						lines <- line{text, nil}
					}
					if err != nil {
						return
					}
				}
			}()
		}
		select {
		case l, ok := <-lines:
			if !ok {
				return "", usagef("--paste: standard input ended without a code")
			}
			return l.text, l.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// clientHelp says in four lines what is needed to sign in with a provider for the first time; asked tells that the client is
// asked for right below.
func clientHelp(e *login.NoClientError, asked bool) string {
	if !e.Known {
		return fmt.Sprintf("set it up once: %s auth provider add %s --issuer URL --client-id ID, or with --auth-url and --token-url", program, form.Clean(e.Slug))
	}
	make := "make an application there; its redirect address is http://127.0.0.1/callback"
	if e.Slug == "google" {
		make = `make a client of the type "Desktop app", and enable the API that is used`
	}
	then := fmt.Sprintf("%s auth provider add %s --client-file FILE, which it offers", program, e.Slug)
	if asked {
		then = "give its client ID and secret here, or the file that it offers"
	}
	open := "open " + e.Console + " (it costs nothing)"
	if e.Console == "" {
		open = "open the page of it where clients are made, or ask whoever runs it for one"
	}
	return fmt.Sprintf("signing in with %s needs a client of your own, once for all its connectors:\n"+
		"  1. %s\n  2. %s\n  3. %s", e.Title, open, make, then)
}

// clientText says in a plan that a client of one's own is needed and where it comes from, before anybody agrees.
func clientText(e *login.NoClientError) string {
	if !e.Known {
		return fmt.Sprintf("a client of your own is needed, and the provider %q is not known here; set both up first: %s auth provider add %s", e.Slug, program, e.Slug)
	}
	text := fmt.Sprintf("a client of your own is needed, once for all connectors of %s, and none is set up here; you make it at %s, which costs nothing", e.Title, e.Console)
	if e.Slug == "google" {
		text += " (docs/google.md says how, step by step)"
	}
	return text
}

// readyProvider makes sure that a plan's provider has a client, and takes it from the person where it has none.
func (a *app) readyProvider(ctx context.Context, act *activate.Activator, p *activate.Plan) error {
	err := act.CheckSignIn(p)
	missing, none := errors.AsType[*login.NoClientError](err)
	term := a.terminal()
	if !none || term == nil || !missing.Known {
		return err
	}
	a.say("\n%s\n", capital(clientHelp(missing, true)))
	provider := act.Providers().Preset(missing.Slug)
	if provider, err = a.askClient(ctx, term, provider); err != nil {
		return err
	}
	if err := act.Providers().Put(ctx, provider); err != nil {
		return err
	}
	return act.CheckSignIn(p)
}

// askClient asks for client ID and secret; a path in place of the ID names the downloaded file.
func (a *app) askClient(ctx context.Context, term *form.Terminal, p login.Provider) (login.Provider, error) {
	questions := []form.Question{
		{Field: manifest.Field{Name: "id", Label: "Client ID", Description: "Or the path of the downloaded JSON file; then the secret below stays empty.", Required: true}},
		{Field: manifest.Field{Name: "secret", Label: "Client secret", Description: "Leave it empty if the client has none.", Secret: true}},
	}
	for {
		answers, err := term.Fill(ctx, "Client of "+p.Title, questions)
		if err != nil {
			return p, err
		}
		id := strings.TrimSpace(answers["id"].Value.Reveal())
		if !strings.HasSuffix(strings.ToLower(id), ".json") {
			p.ClientID, p.ClientSecret = id, answers["secret"].Value
			return p, nil
		}
		full, err := a.clientFile(ctx, a.underHome(id), p)
		if err == nil {
			return full, nil
		}
		questions[0].Problem = err.Error()
	}
}

func (a *app) underHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return a.userHome() + "/" + rest
	}
	return path
}

func (a *app) clientFile(ctx context.Context, path string, p login.Provider) (login.Provider, error) {
	used := ""
	data, err := a.readInput(ctx, "the client file", path, login.ClientFileLimit, &used)
	if err != nil {
		return p, err
	}
	return login.ParseClientFile(data, p)
}

// oauthCode gives the errors of a sign-in their exit codes and advice.
func oauthCode(err error) (int, string, bool) {
	var (
		client   *login.NoClientError
		unsigned *activate.UnsignedError
		none     *activate.NoSignInError
		expired  *login.ExpiredError
		denied   *login.DeniedError
		late     *login.TimeoutError
		answer   *login.AnswerError
		reply    *login.ReplyError
		unknown  *login.NoAuthorizationError
	)
	switch {
	case errors.As(err, &client):
		return exitUsage, clientHelp(client, false), true
	case errors.As(err, &unsigned):
		return exitUsage, "run it in a terminal, or say how to sign in: --browser, --no-browser (shows the link and waits), --paste (reads the code) or --device", true
	case errors.As(err, &none):
		return exitUsage, fmt.Sprintf("take a typed secret away with %s secrets remove %s NAME", program, none.Name), true
	case errors.As(err, &unknown):
		return exitConnector, "its publisher has to say how its credential is got; what the program asks for is in the message", true
	case errors.As(err, &expired):
		return exitRefused, "sign in again: " + program + " auth NAME", true
	case errors.As(err, &denied):
		return exitFailed, "nothing was stored; run the command again to sign in", true
	case errors.As(err, &late), errors.As(err, &answer):
		return exitFailed, "nothing was stored; run the command again. With the browser on another machine, add --paste", true
	case errors.As(err, &reply):
		return exitFailed, replyHint(reply), true
	}
	return 0, "", false
}

func replyHint(e *login.ReplyError) string {
	switch {
	case e.Code == "invalid_client" || e.Code == "unauthorized_client":
		return "the client is not the right one: check its ID and secret, and set it up again with " + program + " auth provider add"
	case e.Code == "redirect_uri_mismatch" || e.Code == "invalid_redirect_uri":
		return `the provider does not take answers on this machine for this client: with Google its type has to be "Desktop app"`
	case e.Status == 0 || e.Status >= 500:
		return "check the network and run the command again; nothing has changed"
	}
	return "nothing was stored; run the command again"
}

// secretOf reads a secret of a flag pair: a file ("-" for standard input) or a variable.
func (a *app) secretOf(ctx context.Context, file, variable string) (keystore.Secret, error) {
	switch {
	case file != "" && variable != "":
		return keystore.Secret{}, usagef("--secret-file and --secret-env give the same value")
	case variable != "":
		value := a.getenv(variable)
		if value == "" {
			return keystore.Secret{}, usagef("--secret-env: the variable %s is not set", variable)
		}
		return keystore.NewSecret(value), nil
	case file != "":
		used := ""
		data, err := a.readSecretFile(ctx, "--secret-file", file, &used)
		return keystore.NewSecret(strings.TrimSpace(string(data))), err
	}
	return keystore.Secret{}, nil
}

// oauthText says in a plan where the person signs in, and what for.
func oauthText(m *manifest.Manifest) string {
	text := "in a browser, with " + form.Clean(m.Auth.Provider)
	if len(m.Auth.Scopes) > 0 {
		text += ", for " + form.Clean(strings.Join(m.Auth.Scopes, ", "))
	}
	return text
}

// wantsSignIn tells that a connector's credential is missing or not taken any more.
func wantsSignIn(err error) bool {
	if probe, ok := errors.AsType[*activate.ProbeError](err); ok && probe.Unauthorized {
		return true
	}
	_, expired := errors.AsType[*login.ExpiredError](err)
	_, unsigned := errors.AsType[*activate.UnsignedError](err)
	return expired || unsigned
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
