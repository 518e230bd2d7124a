package activate

import (
	"net/url"
	"strings"

	"skald-connectors/login"
	"skald-connectors/manifest"
)

// dropForeignSignIn takes a credential out of a trial that was made for another provider or another server than the manifest and
// the values name now: it was given for that one, and goes to no other, whatever else was agreed to. What it was is what a new
// sign-in follows.
func (a *Activator) dropForeignSignIn(t *trial) {
	cred := t.values.cred
	if cred == nil || t.values.fitsSignIn(t.manifest) {
		return
	}
	a.say("note: its sign-in was for %s and is not used for this", cred.Name())
	t.before, t.values.cred = *cred, nil
}

// fitsSignIn tells whether the credential is of the provider that the manifest names; where that names none, of the server whose
// address is in it.
func (v *values) fitsSignIn(m *manifest.Manifest) bool {
	switch {
	case signsIn(m):
		return v.cred.Provider == m.Auth.Provider
	case v.cred.Provider != "" || !m.Remote():
		return false
	}
	address, _, err := remoteRequest(m, &values{fields: v.fields, filled: v.filled})
	return err != nil || sameServer(address, *v.cred)
}

func sameServer(address string, cred login.Credential) bool {
	is, err := url.Parse(address)
	if err != nil {
		return false
	}
	was, err := url.Parse(cred.Resource)
	return err == nil && is.Scheme == was.Scheme && strings.EqualFold(is.Host, was.Host)
}
