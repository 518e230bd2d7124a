package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"skald-connectors/keystore"
)

const (
	// signInLimit is how long a person may take in the browser: two-step sign-in, a lost phone, a new password.
	signInLimit = 10 * time.Minute
	// randomBytes are 256 bits, for state and verifier (RFC 7636 section 4.1).
	randomBytes = 32
)

// SignIn is one sign-in as it was asked for, and how it reaches the person. All functions may be called from other
// goroutines, Link and Open once.
type SignIn struct {
	Provider Provider
	Scopes   []string
	Resource string // RFC 8707; "" = none
	// Before is the credential that this one follows; a client that registered itself is used again.
	Before Credential
	// Link shows the address to be opened.
	Link func(address string)
	// Open opens it in a browser; nil = the person does. It does not wait for the browser.
	Open func(ctx context.Context, address string)
	// Paste reads what the person pastes, and is asked again with what was wrong with it; nil = nothing is pasted.
	Paste func(ctx context.Context, problem string) (string, error)
	// Code shows the code of the device flow.
	Code func(DeviceCode)
	// Limit is how long all of it may take; 0 = ten minutes.
	Limit time.Duration
}

func (s SignIn) limit() time.Duration {
	if s.Limit > 0 {
		return s.Limit
	}
	return signInLimit
}

// SignIn takes a person through the browser and brings back a credential. Nothing is stored. Errors: *DeniedError,
// *AnswerError, *TimeoutError, *ReplyError, ctx's cause. Whoever left while the provider was answering gets the credential with
// ctx's cause, to give it back: whether it may be revoked depends on what else is signed in.
func (c *Client) SignIn(ctx context.Context, s SignIn) (Credential, error) {
	at, paste, err := s.Provider.redirect()
	if err != nil {
		return Credential{}, err
	}
	f := &flow{c: c, s: s, p: s.Provider, redirect: at.String()}
	if f.state, f.verifier, err = c.random2(); err != nil {
		return Credential{}, err
	}
	if paste {
		if f.p.ClientID == "" {
			return Credential{}, &NoClientError{Slug: f.p.Slug, Title: f.p.name(), Console: f.p.Console, Known: true}
		}
		return f.run(ctx, nil)
	}
	l, on, err := listen(at, f.wish())
	if err != nil {
		return Credential{}, err
	}
	f.redirect, l.state = l.redirect, f.state
	if err := c.register(ctx, &f.p, s, f.redirect); err != nil {
		for _, ln := range on {
			_ = ln.Close()
		}
		return Credential{}, err
	}
	f.judge = judgement(f.p)
	l.judge = f.judge
	l.serve(on)
	cred, err := f.run(ctx, l)
	if err != nil {
		l.close(failedPage(err))
	} else {
		l.close(donePage(f.p.name()))
	}
	return cred, err
}

// flow is one sign-in under way.
type flow struct {
	c               *Client
	s               SignIn
	p               Provider // with its client
	redirect        string
	state, verifier string
	judge           func(url.Values) answer
}

// wish is the port that a registered client came back to before; 0 = none.
func (f *flow) wish() int {
	if !f.s.Before.Registered || f.s.Before.Issuer != f.p.Issuer {
		return 0
	}
	u, err := url.Parse(f.s.Before.Redirect)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// run shows the link, waits for the answer and exchanges it. l is nil where the answer can only be pasted.
func (f *flow) run(ctx context.Context, l *listener) (Credential, error) {
	if f.judge == nil {
		f.judge = judgement(f.p)
	}
	digest := sha256.Sum256([]byte(f.verifier))
	link, err := f.p.authorize(f.redirect, f.state, base64.RawURLEncoding.EncodeToString(digest[:]), f.s.Resource, f.s.Scopes)
	if err != nil {
		return Credential{}, err
	}
	f.s.Link(link)
	if f.s.Open != nil {
		f.s.Open(ctx, link)
	}
	got, err := f.wait(ctx, l)
	if err != nil {
		return Credential{}, err
	}
	if got.err != nil {
		return Credential{}, got.err
	}
	return f.exchange(ctx, got.code)
}

// wait waits for the first answer: of the browser, or pasted.
func (f *flow) wait(ctx context.Context, l *listener) (answer, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(f.s.limit())
	defer timer.Stop()
	var answers chan answer
	if l != nil {
		answers = l.answers
	}
	type typed struct {
		answer
		failed error
	}
	var pastes chan typed
	if f.s.Paste != nil {
		pastes = make(chan typed, 1)
		go func() {
			a, err := f.paste(limited)
			pastes <- typed{a, err}
		}()
		defer func() { // the terminal is given back before anything else is printed
			cancel()
			if pastes != nil {
				<-pastes
			}
		}()
	}
	select {
	case a := <-answers:
		return a, nil
	case t := <-pastes:
		pastes = nil
		return t.answer, t.failed
	case <-timer.C:
		return answer{}, &TimeoutError{After: f.s.limit()}
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

func (f *flow) paste(ctx context.Context) (answer, error) {
	problem := ""
	for {
		text, err := f.s.Paste(ctx, problem)
		if err != nil {
			return answer{}, err
		}
		var a answer
		if a, problem = pasted(text, f.state, f.judge); problem == "" {
			return a, nil
		}
	}
}

// exchange turns the code into tokens (RFC 6749 section 4.1.3). A code is good once, so the request is not given up half-way.
func (f *flow) exchange(ctx context.Context, code string) (Credential, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.redirect}, "code_verifier": {f.verifier}}
	if f.s.Resource != "" {
		form.Set("resource", f.s.Resource)
	}
	cred := newCredential(f.p, f.s)
	cred.Redirect = f.redirect
	calm := context.WithoutCancel(ctx)
	obj, fail := f.c.post(calm, f.p.TokenURL, codeTraded, cred.asker(), form)
	if fail == nil {
		cred, fail = f.c.take(cred, obj, f.p)
	}
	if fail != nil {
		return Credential{}, fail
	}
	if ctx.Err() != nil {
		return cred, context.Cause(ctx)
	}
	return cred, nil
}

func newCredential(p Provider, s SignIn) Credential {
	return Credential{Provider: p.Slug, Issuer: p.Issuer, TokenURL: p.TokenURL, RevokeURL: p.RevokeURL, ClientID: p.ClientID,
		ClientSecret: p.ClientSecret, TokenAuth: p.TokenAuth, Registered: p.RegisterURL != "" && s.Provider.ClientID == "",
		Resource: s.Resource, Asked: s.Scopes, Granted: s.Scopes, Rotates: p.Rotates}
}

func (c Credential) asker() asker {
	return asker{id: c.ClientID, secret: c.ClientSecret, auth: c.TokenAuth}
}

// random2 gives a state and a verifier.
func (c *Client) random2() (state, verifier string, err error) {
	source := c.Rand
	if source == nil {
		source = rand.Reader
	}
	b := make([]byte, 2*randomBytes)
	for n := 0; n < len(b); {
		m, err := source.Read(b[n:])
		if err != nil {
			return "", "", fmt.Errorf("making a random state: %w", err)
		}
		n += m
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(b[:randomBytes]), enc.EncodeToString(b[randomBytes:]), nil
}

// Revoke tells the provider that the credential is no longer wanted (RFC 7009): the refresh token, and with it at most
// providers all that came from it; else the access token. Where the provider has no place for that, it does nothing.
func (c *Client) Revoke(ctx context.Context, cred Credential) error {
	token, hint := cred.Refresh, "refresh_token"
	if token.IsZero() {
		token, hint = cred.Access, "access_token"
	}
	if cred.RevokeURL == "" || token.IsZero() {
		return nil
	}
	return c.revokeOne(ctx, cred, token, hint)
}

func (c *Client) revokeOne(ctx context.Context, cred Credential, token keystore.Secret, hint string) error {
	form := url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}}
	_, fail := c.post(ctx, cred.RevokeURL, "the revocation of a token", cred.asker(), form)
	switch {
	case fail == nil, fail.Status == 200: // whatever it says, an empty answer included
		return nil
	case fail.Code == "invalid_token" || fail.Code == "invalid_grant": // it is gone already
		return nil
	}
	return fail
}

// Revokes tells whether the provider of a credential can be told to forget it.
func (c Credential) Revokes() bool { return c.RevokeURL != "" }
