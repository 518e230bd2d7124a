package activate

import (
	"context"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/login"
)

// samePlace tells whether two credentials may be one grant to their provider: then one is the other's successor, and the provider
// may forget both with one of them.
func samePlace(x, y login.Credential) bool {
	if x.Provider != "" && x.Provider == y.Provider {
		return true
	}
	return x.TokenURL == y.TokenURL && (x.ClientID == y.ClientID || x.Resource != "" && x.Resource == y.Resource)
}

// signInOf loads the credential of a record; ok is false where there is none, and where it cannot be read, which is said.
func (a *Activator) signInOf(ctx context.Context, rec *record.Record) (cred login.Credential, ok bool) {
	if rec == nil || rec.Vault == 0 || !SignsIn(rec) {
		return cred, false
	}
	hs, err := a.secretsOf(ctx, rec)
	if err != nil {
		a.say("note: the sign-in of %q, version %d, could not be read and is not revoked: %v", rec.Name, rec.Version, err)
		return cred, false
	}
	cred, ok, err = login.Find(hs)
	return cred, ok && err == nil
}

// leftSignIns gives the credentials that go when next takes the place of present: those of vaults that next does not name, of
// providers that nothing of next signs in with.
func (a *Activator) leftSignIns(ctx context.Context, present, next *record.Record) (left []login.Credential) {
	if present == nil {
		return nil
	}
	stays := next.Generations()
	var kept []login.Credential
	for _, r := range withPrior(present) {
		if cred, ok := a.signInOf(ctx, r); ok && !slices.Contains(stays, r.Vault) {
			left = append(left, cred)
		}
	}
	if len(left) == 0 {
		return nil
	}
	for _, r := range withPrior(next) {
		if cred, ok := a.signInOf(ctx, r); ok {
			kept = append(kept, cred)
		}
	}
	return slices.DeleteFunc(left, func(l login.Credential) bool {
		return slices.ContainsFunc(kept, func(k login.Credential) bool { return samePlace(k, l) })
	})
}

// withPrior is a record and the one that it keeps for a rollback.
func withPrior(r *record.Record) []*record.Record {
	if p, err := r.Prior(); err == nil && p != nil {
		return []*record.Record{r, p}
	}
	return []*record.Record{r}
}

// revokeLeft tells the providers to forget credentials that are about to be deleted with nothing in their place. Where another
// activation may use the same account, it does not; and nothing that a provider answers changes what was done.
func (a *Activator) revokeLeft(ctx context.Context, name string, left []login.Credential) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeLimit)
	defer cancel()
	for _, cred := range left {
		if !cred.Revokes() || len(a.othersSignedIn(name, cred)) > 0 {
			continue
		}
		if err := a.Logins().Revoke(ctx, cred); err != nil {
			a.say("note: the sign-in with %s, which %q does not use any more, could not be revoked: %v", cred.Name(), name, err)
			continue
		}
		a.say("the sign-in with %s, which %q does not use any more, was revoked", cred.Name(), name)
	}
}
