package activate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

const (
	oauth2 = "oauth2"
	// revokeLimit bounds what is asked of a provider when nobody waits for its answer any more.
	revokeLimit = 10 * time.Second
)

// Signer is how a sign-in reaches the person.
type Signer struct {
	// Link shows the address at a provider that the person opens, whole.
	Link func(provider, address string)
	// Open opens it in a browser; nil = the person does.
	Open func(ctx context.Context, address string)
	// Paste reads a code or an address, and is asked again with what was wrong with it; nil = none is pasted.
	Paste func(ctx context.Context, problem string) (string, error)
	// Code shows a code that is typed on another device; nil = that way is not wanted.
	Code func(provider string, c login.DeviceCode)
}

// UnsignedError says that a sign-in is needed and nobody can be asked.
type UnsignedError struct{ Name, Provider string }

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("%q signs in with %s, in a browser, and nobody can be asked", e.Name, e.Provider)
}

// Providers are those that the person has set up.
func (a *Activator) Providers() login.Providers {
	return login.Providers{Dir: filepath.Join(a.Home, "providers"), Keys: a.Keys}
}

// Logins asks providers, with the network policy of the remote probe.
func (a *Activator) Logins() *login.Client {
	return &login.Client{HTTP: &http.Client{Transport: a.HTTP.Transport}, Now: a.Now}
}

// signsIn tells whether a manifest's credential comes from a sign-in.
func signsIn(m *manifest.Manifest) bool { return m.Auth.Type == oauth2 }

// SignsIn tells whether the credential of an activation comes, or came, from a sign-in.
func SignsIn(rec *record.Record) bool {
	return rec.Auth.Type == oauth2 || slices.ContainsFunc(rec.Secrets, func(s record.SecretRef) bool { return login.IsHandle(s.Name) })
}

// CanSignIn is SignsIn, and tells a remote connector that waits for its first sign-in, or its next: its server asks for one by
// itself, the manifest knows of none, and nothing secret is typed that could be missing.
func (a *Activator) CanSignIn(rec *record.Record) bool {
	if SignsIn(rec) {
		return true
	}
	if !rec.Remote() || rec.Auth.Type != "" && rec.Auth.Type != "none" || rec.AuthState != record.Unauthorized && rec.AuthState != record.Expired {
		return false
	}
	m, err := a.Manifest(rec)
	return err == nil && !slices.ContainsFunc(m.Fields(), func(f manifest.Field) bool { return f.Secret })
}

// supportedSignIn says what of a manifest's sign-in could not work, "" = nothing.
func supportedSignIn(m *manifest.Manifest) string {
	d := m.Auth.Deliver
	switch {
	case m.Auth.Provider == "":
		return "it signs in by oauth2 and names no provider"
	case m.Remote():
		return "" // an access token goes as bearer, whatever deliver says
	case d == nil:
		return "it does not say how its server gets the credential (auth.deliver)"
	case d.As == "file":
		if _, ok := fileDelivery(m); !ok {
			return fmt.Sprintf("its auth.deliver.path is not a file directly below %s", secretsToken)
		}
	}
	return ""
}

// renewsItself tells whether a local server renews the credential by itself.
func renewsItself(m *manifest.Manifest) bool {
	return !m.Remote() && m.Auth.Deliver != nil && m.Auth.Deliver.Format != "access_token"
}

// CheckSignIn finds out, before anything is downloaded, whether the person can sign in where the plan needs it. Errors:
// *login.NoClientError, *UnsignedError, *UnsupportedError.
func (a *Activator) CheckSignIn(p *Plan) error {
	if !signsIn(p.Manifest) || p.Pending {
		return nil
	}
	provider, err := a.Providers().Look(p.Manifest.Auth.Provider)
	if err != nil {
		return err
	}
	if provider.Rotates && renewsItself(p.Manifest) {
		return &UnsupportedError{Connector: p.Entry.ID, What: fmt.Sprintf("its server renews the credential itself, and a refresh token of %s is good for one use: ours and its own would destroy each other; "+
			"auth.deliver with the format access_token can work", provider.Title)}
	}
	if a.Signer == nil {
		return &UnsignedError{Name: p.Name, Provider: p.Manifest.Auth.Provider}
	}
	return nil
}

// signInOAuth gets a new credential from the provider that the manifest names.
func (a *Activator) signInOAuth(ctx context.Context, t *trial) error {
	p, err := a.Providers().Get(ctx, t.manifest.Auth.Provider)
	if err != nil {
		return err
	}
	return a.obtain(ctx, t, login.SignIn{Provider: p, Scopes: t.manifest.Auth.Scopes})
}

// signInServer gets a credential for a remote server that answered 401, the way that the server names.
func (a *Activator) signInServer(ctx context.Context, t *trial, challenges []string) error {
	address, _, err := remoteRequest(t.manifest, t.values)
	if err != nil {
		return err
	}
	a.say("%s asks for a sign-in", t.manifest.ID)
	needs, err := a.Logins().DiscoverServer(ctx, address, challenges)
	if err != nil {
		return err
	}
	return a.obtain(ctx, t, login.SignIn{Provider: needs.Provider, Scopes: needs.Scopes, Resource: needs.Resource})
}

func (a *Activator) obtain(ctx context.Context, t *trial, s login.SignIn) error {
	title := orElse(s.Provider.Title, s.Provider.Slug)
	way := a.Signer
	if way == nil {
		return &UnsignedError{Name: t.name, Provider: title}
	}
	t.prepared = true
	if err := a.Keys.Prepare(ctx); err != nil { // before anybody signs in for nothing
		return err
	}
	if s.Before = t.before; t.values.cred != nil {
		s.Before = *t.values.cred
	}
	s.Link = func(address string) { way.Link(title, address) }
	s.Open, s.Paste = way.Open, way.Paste
	ask := a.Logins().SignIn
	if way.Code != nil && s.Provider.DeviceURL != "" {
		s.Code = func(c login.DeviceCode) { way.Code(title, c) }
		ask = a.Logins().SignInDevice
	} else if s.Provider.Pastes() && s.Paste == nil {
		return &UnsignedError{Name: t.name, Provider: title}
	}
	if err := a.keepRoom(ctx, t.name); err != nil {
		return err
	}
	a.step("sign-in")
	cred, err := ask(ctx, s)
	if !cred.Access.IsZero() { // also where the person left meanwhile
		t.obtained = append(t.obtained, cred)
		err = errors.Join(err, a.owe(ctx, t.name, cred))
	}
	if err != nil {
		return err
	}
	a.step("signed-in")
	if cred.Refresh.IsZero() && renewsItself(t.manifest) {
		return &login.AnswerError{Problem: title + " gave no refresh token, which the connector needs"}
	}
	t.values.cred = &cred
	a.noteSignIn(cred, title)
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// noteSignIn says what a person should know about what was granted.
func (a *Activator) noteSignIn(cred login.Credential, title string) {
	a.say("signed in with %s", title)
	if missing := cred.Missing(); len(missing) > 0 {
		a.say("note: not granted: %s; what needs it will not work", strings.Join(missing, ", "))
	}
	switch {
	case !cred.Refresh.IsZero():
	case cred.Expires.IsZero():
		a.say("note: %s gave no refresh token; the sign-in lasts until %s ends it", title, title)
	default:
		a.say("note: %s gave no refresh token; the sign-in lasts until %s", title, cred.Expires.Local().Format("2006-01-02 15:04"))
	}
}

// abandon gives back what was obtained and will not be stored. Providers may take the revocation of one token for that of
// all tokens of the account, so it is left out where an activation, this one included, is signed in with the same provider.
func (a *Activator) abandon(ctx context.Context, t *trial) {
	if !t.prepared {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeLimit)
	defer cancel()
	for _, cred := range t.obtained {
		if shared, _ := a.mayBeShared(ctx, t.name, cred); len(shared) > 0 {
			a.say("note: the new sign-in with %s was dropped and not revoked, since %s may use the same account", cred.Name(), strings.Join(shared, ", "))
			continue
		}
		switch err := a.Logins().Revoke(ctx, cred); {
		case err != nil:
			a.say("the new sign-in with %s could not be revoked: %v", cred.Name(), err)
		case cred.Revokes():
			a.say("the new sign-in with %s was revoked", cred.Name())
		}
	}
	a.settleOwed(t.name)
	t.obtained = nil
	if err := a.Keys.Forget(ctx); err != nil { // a key that was made for it and that no vault needs
		a.say("removing the unused key: %v", err)
	}
}

// othersSignedIn names the activations that are signed in with the provider of cred.
func (a *Activator) othersSignedIn(name string, cred login.Credential) []string {
	list, err := a.Records().List()
	if err != nil || cred.Provider == "" {
		return nil // a client that registered itself is one activation's own
	}
	found := map[string]bool{}
	for _, l := range list {
		if l.Record != nil && l.Name != name && !slices.Contains(a.Leaving, l.Name) && l.Record.Auth.Provider == cred.Provider && SignsIn(l.Record) && l.Record.Vault > 0 {
			found[l.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// askForScopes makes a new version's wider scopes part of its trial: a sign-in asks for them, where there is somebody to sign
// in; else they are what it lacks until the next one.
func (a *Activator) askForScopes(t *trial) {
	if !signsIn(t.manifest) || t.values.cred == nil {
		return
	}
	more := slices.DeleteFunc(slices.Clone(t.manifest.Auth.Scopes), func(s string) bool { return slices.Contains(t.values.cred.Asked, s) })
	switch {
	case len(more) == 0:
	case a.Signer != nil:
		t.signAnew = true
	default:
		a.say("note: it was not signed in for %s; that comes with the next sign-in", strings.Join(more, ", "))
	}
}

// Authorize signs an installed connector in anew, proves it and replaces the credential; until then the old one stays in
// force. Where another process signed it in while this one waited, it does nothing, and followed is true.
func (a *Activator) Authorize(ctx context.Context, name string) (rec *record.Record, followed bool, err error) {
	before, err := a.Records().Read(name)
	if err != nil {
		return nil, false, err
	}
	err = a.onRecord(ctx, name, func(present *record.Record) (err error) {
		if present.Vault != before.Vault && present.AuthState == record.Ready {
			rec, followed = present, true
			return nil
		}
		t, err := a.resume(ctx, present, true)
		if err != nil {
			return err
		}
		defer t.drop()
		defer func() {
			if err != nil {
				a.abandon(ctx, t)
			}
		}()
		if err := a.makeReady(ctx, t, present); err != nil {
			return err
		}
		t.signAnew = true
		p, err := a.prove(ctx, t, len(t.values.missing()) > 0, false)
		if err != nil {
			return err
		}
		rec, err = a.replace(ctx, t, p, present)
		return err
	})
	return rec, followed, err
}

// isSignInFailure tells what a person can go on from by signing in again.
func isSignInFailure(err error) bool {
	var (
		denied  *login.DeniedError
		answer  *login.AnswerError
		late    *login.TimeoutError
		reply   *login.ReplyError
		expired *login.ExpiredError
	)
	return errors.As(err, &denied) || errors.As(err, &answer) || errors.As(err, &late) || errors.As(err, &reply) || errors.As(err, &expired)
}

// failure is what a person is told, and what they can do about it.
func (t *trial) failure(err error) Failure {
	signs := signsIn(t.manifest) || t.values.cred != nil
	return Failure{Name: t.name, Err: err, CanEdit: len(t.values.fields) > 0, CanSign: signs || isSignInFailure(err),
		CanKeep: !t.values.lacksSignIn(t.manifest) && !(t.signAnew && isSignInFailure(err)), KeepsOld: t.replaces, Grants: Relaxations(err)}
}

// signAndTry signs in where that is wanted, and tries the values. A remote server that answers 401 is signed in to the way that
// it names itself, once.
func (a *Activator) signAndTry(ctx context.Context, t *trial, skipVerify bool) (proof, error) {
	a.dropForeignSignIn(t)
	if t.sign == signLater && t.values.lacksSignIn(t.manifest) {
		return proof{state: record.Unauthorized, outcome: Outcome{Message: "not tested: nobody is signed in"}}, nil
	}
	if signsIn(t.manifest) && (t.signAnew || t.values.lacksSignIn(t.manifest)) {
		if err := a.signInOAuth(ctx, t); err != nil {
			return proof{}, err
		}
		t.signAnew = false
	}
	if t.signAnew && !signsIn(t.manifest) && t.values.cred != nil {
		t.before, t.values.cred = *t.values.cred, nil // the server is to ask again
	}
	p, err := a.try(ctx, t, skipVerify)
	refused, ok := errors.AsType[*ProbeError](err)
	if signsIn(t.manifest) || !t.manifest.Remote() || !ok || !refused.Unauthorized || t.challenged && !t.signAnew || len(t.values.fields) > 0 && t.values.keyed(t.manifest) {
		return p, err
	}
	t.challenged, t.signAnew = true, false
	if serr := a.signInServer(ctx, t, refused.challenges); serr != nil {
		if _, ok := errors.AsType[*login.NoAuthorizationError](serr); ok {
			return p, errors.Join(err, serr)
		}
		return p, serr
	}
	return a.try(ctx, t, skipVerify)
}

// keyed tells whether an API key was given for the server: then that one was refused.
func (v *values) keyed(m *manifest.Manifest) bool {
	key, ok := m.KeyField()
	return ok && !v.filled[key.Name].IsZero()
}

// lacksSignIn tells whether the connector cannot be started for want of a credential.
func (v *values) lacksSignIn(m *manifest.Manifest) bool {
	if !signsIn(m) {
		return false
	}
	if v.cred == nil {
		return true
	}
	if d := m.Auth.Deliver; d != nil && !m.Remote() {
		secret, err := v.cred.Deliver(d.Format)
		return err != nil || secret.IsZero()
	}
	return v.cred.Access.IsZero()
}

// deliver puts the credential into an environment (format.md section 7).
func (v *values) deliver(e *environ, m *manifest.Manifest) {
	d := m.Auth.Deliver
	if d == nil || d.As != "env" || d.Env == "" || v.cred == nil || m.Remote() {
		return
	}
	if secret, err := v.cred.Deliver(d.Format); err == nil && !secret.IsZero() {
		e.set(d.Env, secret.Reveal())
	}
}

// withCredential adds the credential's handles to those of the form.
func (v *values) withCredential(hs []keystore.Handle) []keystore.Handle {
	if v.cred == nil {
		return hs
	}
	all, err := v.cred.Merge(hs)
	if err != nil {
		return hs // plain data of ours always has a JSON form
	}
	return all
}
