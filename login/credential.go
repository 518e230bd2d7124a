package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skald-connectors/keystore"
)

// The handles of a credential in the vault of an activation. Fields of a form cannot have a dot in their names. The
// parts are handles of their own, so that the redactor knows each.
const (
	handlePrefix  = "oauth."
	handleGrant   = "oauth.grant" // what is no secret, as JSON
	handleAccess  = "oauth.access_token"
	handleRefresh = "oauth.refresh_token"
	handleClient  = "oauth.client_secret"
)

// IsHandle tells the handles of a sign-in from those of a form.
func IsHandle(name string) bool { return strings.HasPrefix(name, handlePrefix) }

const grantFormat = 1

// Credential is what a sign-in brought, with all that is needed to renew and to revoke it.
type Credential struct {
	Provider  string // slug; "" = MCP authorization
	Issuer    string
	TokenURL  string
	RevokeURL string

	ClientID     string
	ClientSecret keystore.Secret
	TokenAuth    string
	Registered   bool   // the client registered itself, for Redirect
	Redirect     string // the address that the answer came to
	Resource     string // of RFC 8707; "" = none

	Access  keystore.Secret
	Refresh keystore.Secret // zero = it cannot be renewed
	Asked   []string        // scopes
	Granted []string
	// Obtained is when the access token came, by this machine's clock; Expires when it ends, zero = the provider did
	// not say, and it is used until it is refused.
	Obtained, Expires time.Time
	Rotates           bool
	// Renewing is set while a refresh is under way: where it stays, a refresh was interrupted.
	Renewing time.Time
}

// grant is what is no secret.
type grant struct {
	Format     int       `json:"format"`
	Provider   string    `json:"provider,omitempty"`
	Issuer     string    `json:"issuer,omitempty"`
	TokenURL   string    `json:"token_url"`
	RevokeURL  string    `json:"revoke_url,omitempty"`
	ClientID   string    `json:"client_id"`
	TokenAuth  string    `json:"token_auth,omitempty"`
	Registered bool      `json:"registered,omitempty"`
	Redirect   string    `json:"redirect,omitempty"`
	Resource   string    `json:"resource,omitempty"`
	Asked      []string  `json:"asked,omitempty"`
	Granted    []string  `json:"granted,omitempty"`
	Obtained   time.Time `json:"obtained"`
	Expires    time.Time `json:"expires,omitzero"`
	Rotates    bool      `json:"rotates,omitempty"`
	Renewing   time.Time `json:"renewing,omitzero"`
}

// Name is how messages call where the credential is from.
func (c Credential) Name() string {
	if c.Provider != "" {
		return c.Provider
	}
	return hostOf(c.TokenURL)
}

// Missing are the scopes that were asked for and not granted.
func (c Credential) Missing() []string {
	var out []string
	for _, s := range c.Asked {
		if !slices.Contains(c.Granted, s) && !impliedScope(s) {
			out = append(out, s)
		}
	}
	return out
}

// impliedScope are scopes that providers act on and do not list.
func impliedScope(s string) bool {
	return slices.Contains([]string{"openid", "offline_access", "email", "profile"}, s)
}

// early is how long before its end a token counts as ended: a minute, or a quarter of a short life.
const early = time.Minute

// FreshAt tells whether the access token can be used at that time, as far as is known. A clock that stands before the moment in which
// it was obtained has been set back since, and says nothing about its end.
func (c Credential) FreshAt(now time.Time) bool {
	if c.Access.IsZero() || !c.Expires.IsZero() && now.Before(c.Obtained.Add(-early)) {
		return false
	}
	return c.Expires.IsZero() || now.Before(c.RenewAt())
}

// RenewAt is when the access token should be renewed; zero = only when it is refused.
func (c Credential) RenewAt() time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	lead := early
	if life := c.Expires.Sub(c.Obtained); life > 0 && life/4 < lead {
		lead = life / 4
	}
	return c.Expires.Add(-lead)
}

// Merge puts the credential among the handles of a vault, in place of an earlier one. The zero Credential takes it out.
func (c Credential) Merge(hs []keystore.Handle) ([]keystore.Handle, error) {
	hs = slices.DeleteFunc(slices.Clone(hs), func(h keystore.Handle) bool { return IsHandle(h.Name) })
	if c.TokenURL == "" {
		return hs, nil
	}
	data, err := json.Marshal(grant{Format: grantFormat, Provider: c.Provider, Issuer: c.Issuer, TokenURL: c.TokenURL, RevokeURL: c.RevokeURL,
		ClientID: c.ClientID, TokenAuth: c.TokenAuth, Registered: c.Registered, Redirect: c.Redirect, Resource: c.Resource, Asked: c.Asked,
		Granted: c.Granted, Obtained: c.Obtained, Expires: c.Expires, Rotates: c.Rotates, Renewing: c.Renewing})
	if err != nil {
		return nil, err
	}
	hs = append(hs, keystore.Handle{Name: handleGrant, Value: keystore.NewSecret(string(data))})
	for _, part := range []keystore.Handle{
		{Name: handleAccess, Value: c.Access, ExpiresAt: c.Expires}, {Name: handleRefresh, Value: c.Refresh}, {Name: handleClient, Value: c.ClientSecret},
	} {
		if !part.Value.IsZero() {
			part.Secret = true
			hs = append(hs, part)
		}
	}
	return hs, nil
}

// Find takes the credential out of the handles of a vault. ok is false where there is none.
func Find(hs []keystore.Handle) (c Credential, ok bool, err error) {
	for _, h := range hs {
		switch h.Name {
		case handleAccess:
			c.Access = h.Value
		case handleRefresh:
			c.Refresh = h.Value
		case handleClient:
			c.ClientSecret = h.Value
		case handleGrant:
			var g grant
			if err := json.Unmarshal([]byte(h.Value.Reveal()), &g); err != nil {
				return Credential{}, false, errors.New("reading the stored sign-in: it is damaged")
			}
			if g.Format > grantFormat {
				return Credential{}, false, fmt.Errorf("reading the stored sign-in: format %d was written by a newer version", g.Format)
			}
			ok = true
			c.Provider, c.Issuer, c.TokenURL, c.RevokeURL, c.ClientID, c.TokenAuth = g.Provider, g.Issuer, g.TokenURL, g.RevokeURL, g.ClientID, g.TokenAuth
			c.Registered, c.Redirect, c.Resource, c.Asked, c.Granted = g.Registered, g.Redirect, g.Resource, g.Asked, g.Granted
			c.Obtained, c.Expires, c.Rotates, c.Renewing = g.Obtained, g.Expires, g.Rotates, g.Renewing
		}
	}
	if !ok {
		return Credential{}, false, nil
	}
	return c, true, nil
}

// Deliver writes the credential in one of the formats of a manifest's auth.deliver (format.md section 7).
func (c Credential) Deliver(format string) (keystore.Secret, error) {
	switch format {
	case "access_token":
		return c.Access, nil
	case "refresh_token":
		if c.Refresh.IsZero() {
			return keystore.Secret{}, &ExpiredError{Provider: c.Name(), Detail: "there is no refresh token"}
		}
		return c.Refresh, nil
	case "google_authorized_user":
		return c.authorizedUser()
	}
	return keystore.Secret{}, fmt.Errorf("delivering the sign-in: format %q is not known", format)
}

// authorizedUser is the JSON that Google's libraries read: expiry without a zone is UTC to them.
func (c Credential) authorizedUser() (keystore.Secret, error) {
	if c.Refresh.IsZero() {
		return keystore.Secret{}, &ExpiredError{Provider: c.Name(), Detail: "there is no refresh token"}
	}
	doc := struct {
		Type         string   `json:"type"`
		ClientID     string   `json:"client_id"`
		ClientSecret string   `json:"client_secret"`
		RefreshToken string   `json:"refresh_token"`
		TokenURI     string   `json:"token_uri"`
		Scopes       []string `json:"scopes,omitempty"`
		Token        string   `json:"token,omitempty"`
		Expiry       string   `json:"expiry,omitempty"`
	}{"authorized_user", c.ClientID, c.ClientSecret.Reveal(), c.Refresh.Reveal(), c.TokenURL, c.Granted, "", ""}
	if !c.Expires.IsZero() && !c.Access.IsZero() { // a token whose end is not known would never be renewed there
		doc.Token, doc.Expiry = c.Access.Reveal(), c.Expires.UTC().Format("2006-01-02T15:04:05Z")
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return keystore.Secret{}, err
	}
	return keystore.NewSecret(string(data)), nil
}
