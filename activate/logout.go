package activate

import (
	"context"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/login"
)

// SignInState is the sign-in of one activation, without its values.
type SignInState struct {
	Name       string
	Provider   string // slug, or the host that the server named; "" = not known before the first sign-in
	QR         bool   // a phone signs in: there is no credential here, State says whether it has
	State      record.State
	Credential *login.Credential // nil where there is none; its secrets print as redacted, Asked is what the version that is here wants
	Locked     error             // the key store could not be asked
}

// SignIns lists the activations whose credential comes from a sign-in, also those that wait for one.
func (a *Activator) SignIns(ctx context.Context) ([]SignInState, error) {
	list, err := a.Records().List()
	if err != nil {
		return nil, err
	}
	var out []SignInState
	for _, l := range list {
		if l.Record != nil && signedByPhone(l.Record) {
			out = append(out, SignInState{Name: l.Name, State: l.Record.AuthState, QR: true})
			continue
		}
		if l.Record == nil || !a.CanSignIn(l.Record) {
			continue
		}
		s := SignInState{Name: l.Name, Provider: l.Record.Auth.Provider, State: l.Record.AuthState}
		hs, err := a.secretsOf(ctx, l.Record)
		if err != nil {
			s.Locked = err
		} else if cred, ok, err := login.Find(hs); err != nil {
			s.Locked = err
		} else if ok {
			if want := l.Record.Auth.Scopes; l.Record.Auth.Type == oauth2 && len(want) > 0 {
				cred.Asked = want // an upgrade may have come since
			}
			s.Credential = &cred
			s.Provider = orElse(s.Provider, cred.Name())
		}
		out = append(out, s)
	}
	return out, nil
}

func signedByPhone(rec *record.Record) bool { return rec.Auth.Type == "qr" }

// LoggedOut is what a logout did. Revoked is false where the provider has no way to be told, or Failed says why it was not.
type LoggedOut struct {
	Name, Provider string
	Had            bool
	Revoked        bool
	Failed         error
	Others         []string // activations that are signed in with the same provider
}

// NoSignInError says that an activation's credential does not come from a sign-in.
type NoSignInError struct{ Name string }

func (e *NoSignInError) Error() string {
	return e.Name + " has no sign-in: its credentials are typed"
}

// Logout deletes the credential and tells the provider to forget it; sessions park. What the provider does not take keeps nobody
// from the deletion. Before the record is written nothing has changed; after it, what a kill keeps from the provider is told later.
func (a *Activator) Logout(ctx context.Context, name string) (out LoggedOut, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		if !a.CanSignIn(present) {
			return &NoSignInError{Name: name}
		}
		t, err := a.resume(ctx, present, false)
		if err != nil {
			return err
		}
		out.Name, out.Provider = name, present.Auth.Provider
		t.runtimes, t.keepSandbox = present.Runtimes, true
		release, err := a.holdSignIn(ctx, t, present)
		if err != nil {
			return err
		}
		defer release()
		t.held, t.signedOut = true, true
		cred := t.values.cred
		if err := a.dropPriorSignIn(ctx, present, cred); err != nil {
			return err
		}
		t.values.cred = nil
		if cred != nil {
			if err := a.owe(ctx, name, *cred); err != nil {
				return err
			}
		}
		if _, err = a.replace(context.WithoutCancel(ctx), t, proof{state: record.Unauthorized, verify: &present.Verify}, present); err != nil || cred == nil {
			return err
		}
		out.Had, out.Provider, out.Others = true, cred.Name(), a.othersSignedIn(name, *cred)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeLimit)
		defer cancel()
		a.step("revoke")
		out.Failed = a.Logins().Revoke(limited, *cred)
		out.Revoked = out.Failed == nil && cred.Revokes()
		a.settleOwed(name)
		return nil
	})
	return out, err
}

// signedIn gives the sign-ins of an activation that is about to go, each with its provider once: its own, and that of the version
// that is kept for a rollback.
func (a *Activator) signedIn(ctx context.Context, name string) (found []login.Credential) {
	rec, err := a.Records().Read(name)
	if err != nil {
		return nil
	}
	for _, r := range withPrior(rec) {
		cred, ok := a.signInOf(ctx, r)
		if ok && !slices.ContainsFunc(found, func(f login.Credential) bool { return samePlace(f, cred) }) {
			found = append(found, cred)
		}
	}
	return found
}

// revokeAtUninstall tells the providers to forget what goes; where another activation may use the same account, it does not.
func (a *Activator) revokeAtUninstall(ctx context.Context, gone []login.Credential, out *Removed) {
	for _, cred := range gone {
		if !cred.Revokes() {
			out.Kept = append(out.Kept, "the sign-in with "+cred.Name()+", in your account there: "+cred.Name()+" has no way to be told")
			continue
		}
		if len(a.othersSignedIn(out.Name, cred)) > 0 {
			continue
		}
		a.step("revoke")
		limited, cancel := context.WithTimeout(ctx, revokeLimit)
		err := a.Logins().Revoke(limited, cred)
		cancel()
		if err != nil {
			a.say("note: the sign-in with %s could not be revoked: %v", cred.Name(), err)
			out.Unrevoked = append(out.Unrevoked, cred.Name())
			continue
		}
		out.Revoked = append(out.Revoked, cred.Name())
		out.Items = append(out.Items, "the sign-in with "+cred.Name()+", which was revoked")
	}
	a.settleOwed(out.Name)
}

// dropPriorSignIn takes the sign-in out of the vault of the version that is kept for a rollback, too. One with another provider
// is revoked there.
func (a *Activator) dropPriorSignIn(ctx context.Context, present *record.Record, cred *login.Credential) error {
	prior, err := present.Prior()
	if err != nil || prior == nil || prior.Vault == 0 || prior.Vault == present.Vault || !SignsIn(prior) {
		return err
	}
	if was, ok := a.signInOf(ctx, prior); ok && (cred == nil || !samePlace(*cred, was)) {
		a.revokeLeft(ctx, present.Name, []login.Credential{was})
	}
	return a.Keys.Update(ctx, prior.Name, prior.Vault, func(hs []keystore.Handle) ([]keystore.Handle, error) { return login.Credential{}.Merge(hs) })
}
