package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
)

// passphraseLimit bounds a passphrase file: one line.
const passphraseLimit = 4 << 10

// passphraseLeast is the shortest new passphrase: scrypt makes each guess cost
// about a second, so eight characters that are no word hold for years.
const passphraseLeast = 8

// person asks whoever sits at the terminal.
type person struct {
	app  *app
	term *form.Terminal
}

func (p *person) Fill(ctx context.Context, title string, qs []form.Question) (map[string]form.Answer, error) {
	p.app.clearProgress()
	return p.term.Fill(ctx, "Settings of "+title, qs)
}

func (p *person) Decide(ctx context.Context, f activate.Failure) (activate.Decision, error) {
	p.app.clearProgress()
	p.app.showFailure(f.Err)
	var signIn *activate.SignInError
	options := []form.Option{{Value: "edit", Label: "Edit the settings"}, {Value: "retry", Label: "Try again with the same settings"},
		{Value: "pending", Label: "Save them unverified (the connector stays parked until `verify` passes)"}, {Value: "give-up", Label: "Give up; nothing is stored"}}
	if f.KeepsOld {
		options = append(options[:2], form.Option{Value: "give-up", Label: "Give up; the version that is here stays"})
	}
	if errors.As(f.Err, &signIn) {
		options = signInOptions(options, f)
	}
	options = slices.DeleteFunc(options, func(o form.Option) bool {
		return o.Value == "edit" && !f.CanEdit || o.Value == "retry" && !f.CanKeep || o.Value == "pending" && !f.CanKeep
	})
	if f.CanSign {
		options = append([]form.Option{{Value: "sign-in", Label: "Sign in again"}}, options...)
	}
	if len(f.Grants) > 0 {
		options = append([]form.Option{{Value: "grant", Label: "Allow " + accessText(f.Grants) + ", and try again"}}, options...)
	}
	choice, err := p.term.Choose(ctx, "What now?", options)
	if err != nil {
		return activate.GiveUp, err
	}
	return map[string]activate.Decision{"edit": activate.Edit, "sign-in": activate.SignInAgain, "grant": activate.GrantAll, "retry": activate.Retry, "pending": activate.SavePending}[choice], nil
}

// showFailure says what verify or the probe found, with all that helps.
func (a *app) showFailure(err error) {
	fmt.Fprintf(a.stderr, "\n%s\n", a.wrapped(words(err)))
	a.showParticulars(err)
	fmt.Fprintln(a.stderr)
}

// showParticulars shows what an error carries besides its message.
func (a *app) showParticulars(err error) {
	var (
		refused *activate.RefusedError
		probe   *activate.ProbeError
		lost    *lostError
	)
	if errors.As(err, &lost) && len(lost.tail) > 0 {
		fmt.Fprintf(a.stderr, "the last lines that it wrote:\n%s\n", indent(strings.Join(lost.tail, "\n")))
	}
	if a.verbose && errors.As(err, &refused) && refused.Outcome.Details != "" {
		fmt.Fprintln(a.stderr, indent(refused.Outcome.Details))
	}
	if errors.As(err, &probe) && probe.Stderr != "" {
		fmt.Fprintf(a.stderr, "the last lines that it wrote:\n%s\n", indent(probe.Stderr))
	}
	if wanted := activate.Relaxations(err); len(wanted) > 0 {
		fmt.Fprintln(a.stderr, a.wrapped("the sandbox kept from it: "+form.Clean(accessText(wanted))))
		fmt.Fprintln(a.stderr, a.wrapped("if it should have that, allow it with "+form.Clean(grantFlags(wanted))))
	}
}

// accessText names accesses for a person.
func accessText(list []activate.Access) string {
	words := make([]string, len(list))
	for i, x := range list {
		switch x.Kind {
		case "network":
			words[i] = "the network to " + x.Value
		case "read":
			words[i] = "reading " + x.Value
		case "write":
			words[i] = "writing " + x.Value
		default:
			words[i] = x.Kind
		}
	}
	return strings.Join(words, ", ")
}

func grantFlags(list []activate.Access) string {
	flags := make([]string, len(list))
	for i, x := range list {
		flags[i] = "--grant " + x.String()
	}
	return strings.Join(flags, " ")
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

// wantedKeystore is the back end that was named: flag, variable, settings
// file; "" leaves it to what is recorded.
func (a *app) wantedKeystore(home string) (keystore.Backend, error) {
	for _, named := range []string{a.keystoreFlag, a.getenv("SKALD_CONNECTORS_KEYSTORE")} {
		if named != "" {
			return keystore.Backend(named), nil
		}
	}
	s, err := readSettings(home)
	return keystore.Backend(s.Keystore), err
}

// keystore opens the key store of a home with the ways to ask that this run
// has.
func (a *app) keystore(home string) (*keystore.Store, error) {
	want, err := a.wantedKeystore(home)
	if err != nil {
		return nil, err
	}
	if want != "" && !knownBackend(want) {
		return nil, usagef("there is no key store %q; it is keychain, passphrase or keyfile", want)
	}
	o := keystore.Options{Dir: filepath.Join(home, "keystore"), Want: want, Keychain: a.hooks.keychain, Work: a.hooks.work, Interactive: a.interactive(),
		Notice: func(s string) { a.say("%s", s) }, Now: a.hooks.now}
	switch term := a.terminal(); {
	case a.getenv("SKALD_CONNECTORS_PASSPHRASE_FILE") != "":
		o.Passphrase = a.passphraseFromFile
	case term != nil:
		o.Passphrase = func(ctx context.Context, ask keystore.PassphraseAsk) (keystore.Secret, error) {
			return a.askPassphrase(ctx, term, ask)
		}
	}
	if term := a.terminal(); term != nil {
		o.Consent = func(ctx context.Context, cause error, options []keystore.Backend) (keystore.Backend, error) {
			return a.chooseKeystore(ctx, term, cause, options)
		}
	}
	return keystore.Open(o), nil
}

func (a *app) passphraseFromFile(_ context.Context, ask keystore.PassphraseAsk) (keystore.Secret, error) {
	path := a.getenv("SKALD_CONNECTORS_PASSPHRASE_FILE")
	if ask.Attempt > 1 {
		return keystore.Secret{}, fmt.Errorf("the passphrase in the file that SKALD_CONNECTORS_PASSPHRASE_FILE names: %s", ask.Problem)
	}
	return a.secretLine(path, "passphrase")
}

// secretLine reads a file that holds one line, which is a secret of that kind.
func (a *app) secretLine(path, kind string) (keystore.Secret, error) {
	data, err := atomicfile.Read(path, passphraseLimit)
	if err != nil {
		return keystore.Secret{}, fmt.Errorf("reading the %s file: %w", kind, err)
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return keystore.Secret{}, withHint(usagef("the %s file %s can be read by others", kind, path), "chmod 600 %s", path)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if strings.ContainsAny(line, "\r\n") {
		return keystore.Secret{}, usagef("the %s file %s has several lines; one is expected", kind, path)
	}
	if line == "" {
		return keystore.Secret{}, usagef("the %s file %s is empty", kind, path)
	}
	return keystore.NewSecret(line), nil
}

func (a *app) askPassphrase(ctx context.Context, term *form.Terminal, ask keystore.PassphraseAsk) (keystore.Secret, error) {
	a.clearProgress()
	title := "Passphrase of your secrets"
	if ask.New {
		title = "New passphrase (it cannot be recovered)"
	}
	if ask.Problem != "" {
		title = ask.Problem + ". " + title
	}
	for {
		p, err := term.Passphrase(ctx, title, ask.New)
		if err != nil || !ask.New || p.Len() >= passphraseLeast {
			return p, err
		}
		title = fmt.Sprintf("That has fewer than %d characters. New passphrase", passphraseLeast)
	}
}

// keychainProblem says why the key cannot be kept in the keychain.
func keychainProblem(cause error) string {
	var key *keystore.Error
	if errors.As(cause, &key) {
		switch key.Kind {
		case keystore.Locked:
			return "Your keychain is locked, so their key cannot be kept there now; stop here to unlock it, or choose another place."
		case keystore.TimedOut:
			return "Your keychain does not answer, so their key cannot be kept there now."
		}
	}
	return "There is no keychain on this machine that could keep their key."
}

// chooseKeystore asks, once, where the key of the secrets shall be kept when
// there is no keychain.
func (a *app) chooseKeystore(ctx context.Context, term *form.Terminal, cause error, options []keystore.Backend) (keystore.Backend, error) {
	a.clearProgress()
	fmt.Fprintf(a.stderr, "\n%s\n\n", a.wrapped("Your secrets will be encrypted. "+keychainProblem(cause)))
	if a.verbose {
		a.say("%s", cause)
	}
	labels := map[keystore.Backend]string{
		keystore.BackendKeychain:   "The system's keychain",
		keystore.BackendPassphrase: "Behind a passphrase that you type (asked for when secrets are needed)",
		keystore.BackendKeyfile:    "In a file that only you can read (nothing to type; whoever copies your files has your secrets)",
	}
	list := make([]form.Option, 0, len(options)+1)
	for _, o := range options {
		list = append(list, form.Option{Value: string(o), Label: labels[o]})
	}
	list = append(list, form.Option{Value: "", Label: "Nowhere; stop here"})
	choice, err := term.Choose(ctx, "Where shall the key be kept?", list)
	return keystore.Backend(choice), err
}
