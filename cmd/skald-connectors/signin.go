package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/login/pairing"
)

// authQR pairs with a phone.
func (a *app) authQR(ctx context.Context, act *activate.Activator, o *configureOptions) error {
	if o.given.any() || o.sandbox != "" || o.noVerify || len(o.access.grant)+len(o.access.withhold) > 0 {
		return withHint(usagef("%s is signed in by a phone; auth takes no settings for it", o.name), "change its settings with %s configure %s", program, o.name)
	}
	rec, scanned, err := act.SignIn(ctx, o.name)
	var left *activate.SignInError
	if errors.As(err, &left) && errors.Is(err, form.ErrLeft) {
		return form.ErrAborted
	}
	if errors.As(err, &left) && a.terminal() == nil {
		return withHint(err, "run it in a terminal, where it can show the code")
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(rec)
	}
	if !scanned {
		a.line("%s was signed in already; it is %s.", rec.Name, rec.AuthState)
		a.line("  another phone: %s logout %s, then %s auth %s", program, rec.Name, program, rec.Name)
		return nil
	}
	a.line("%s is signed in; it is %s.", rec.Name, rec.AuthState)
	return nil
}

// logoutReport is the JSON document of the logout of a phone. Told is false where the service
// could not be told, for the reason in Problem.
type logoutReport struct {
	Name    string `json:"name"`
	Told    bool   `json:"told"`
	Problem string `json:"problem,omitempty"`
}

// logoutQR takes a phone's session away.
func (a *app) logoutQR(ctx context.Context, act *activate.Activator, name string) error {
	a.startProgress()
	done := a.busy("signing out", 0)
	untold, err := act.SignOut(ctx, name)
	done()
	if err != nil {
		return err
	}
	report := logoutReport{Name: name, Told: untold == nil}
	if untold != nil {
		report.Problem = words(untold)
	}
	if a.json {
		return a.printJSON(report)
	}
	a.line("%s is signed out; its session here is removed.", name)
	if untold != nil {
		a.say("its service could not be told: %s", report.Problem)
		a.say("remove this machine on your phone, from the list of linked devices")
	}
	return nil
}

// Pair shows the QR code that a phone has to read.
func (p *person) Pair(ctx context.Context, name string, run func(ctx context.Context, show func(form.QRView)) error) error {
	p.app.clearProgress()
	home, err := p.app.home()
	if err != nil {
		return err
	}
	picture := filepath.Join(home, "login", name+".png")
	defer os.Remove(picture) // it is a way in, for as long as the code holds
	save := func(image []byte) (string, error) {
		if err := atomicfile.PrivateDir(filepath.Dir(picture)); err != nil {
			return "", err
		}
		return picture, atomicfile.Write(picture, image, 0o600)
	}
	return p.term.QR(ctx, "Sign in to "+name+" with your phone", save, run)
}

// signInOptions are the ways on from a sign-in that came to nothing: what was to be
// edited and tried again is another code here.
func signInOptions(options []form.Option, f activate.Failure) []form.Option {
	out := []form.Option{{Value: "retry", Label: "Show a new code"}}
	for _, o := range options {
		switch {
		case o.Value == "pending":
			out = append(out, form.Option{Value: o.Value, Label: "Save it without signing in (it stays parked until `auth " + f.Name + "`)"})
		case o.Value == "edit" && f.CanEdit, o.Value == "give-up":
			out = append(out, o)
		}
	}
	return out
}

// signInCode is classify for what keeps a connector from being signed in.
func signInCode(err error) (int, string, bool) {
	var (
		left   *activate.LeftError
		signIn *activate.SignInError
		qr     *pairing.Error
		used   *activate.InUseError
	)
	switch {
	case errors.As(err, &left):
		return exitInterrupted, fmt.Sprintf("sign in with %s auth %s", program, left.Name), true
	case errors.As(err, &used):
		return exitUsage, "it can have one session at a time: close the client that uses it, and run the command again", true
	case !errors.As(err, &signIn):
		return 0, "", false
	case errors.As(err, &qr) && (qr.Kind == pairing.Unseen || qr.Kind == pairing.LoggedOut):
		return exitUsage, fmt.Sprintf("run it in a terminal; or install it with --pending, and sign in later with %s auth %s", program, signIn.Name), true
	case errors.As(err, &qr) && qr.Kind != pairing.TimedOut:
		return exitConnector, "", true
	}
	return exitFailed, "run the command again for a new code", true
}
