package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
)

// storeTries is how often a new token is put into the key store before that is given up: it cannot be had again.
const storeTries = 5

// Keep is where the credential of one activation is. Both methods find out anew which generation of its vault counts.
type Keep interface {
	Load(ctx context.Context) ([]keystore.Handle, error)
	Update(ctx context.Context, change func([]keystore.Handle) ([]keystore.Handle, error)) error
}

// Fresh gives the credential of an activation with an access token that is good for a while, and renews it where that is
// needed: once, whatever the number of processes that ask at the same time. lock is the path of the lock that they share. refused
// is an access token that was not taken; it is never given back. Where the token has no known end and was not
// refused, always says that it is renewed all the same.
//
// Errors: *ExpiredError when only a new sign-in helps (what was refused is deleted then), *ReplyError when it may help to try again
// later (nothing is changed then), *keystore.Error, ctx's. A credential comes with an error where a new one could not be stored.
func (c *Client) Fresh(ctx context.Context, lock string, k Keep, refused keystore.Secret) (Credential, error) {
	cred, err := load(ctx, k)
	if err != nil || c.usable(cred, refused) {
		return cred, err
	}
	unlock, err := atomicfile.Lock(ctx, lock, nil)
	if err != nil {
		return Credential{}, err
	}
	defer unlock()
	if cred, err = load(ctx, k); err != nil || c.usable(cred, refused) {
		return cred, err // another process was faster
	}
	if cred.Refresh.IsZero() {
		if refused.IsZero() && c.Now().Before(cred.Expires) {
			return cred, nil // near its end, and nothing can be done about it
		}
		return Credential{}, &ExpiredError{Provider: cred.Name(), Detail: "it cannot be renewed: the provider gave no refresh token"}
	}
	next, err := c.renew(ctx, k, cred)
	var expired *ExpiredError
	if !errors.As(err, &expired) {
		return next, err
	}
	// A rollback or another program may have put another one in place meanwhile.
	again, lerr := load(ctx, k)
	if lerr == nil && !again.Refresh.IsZero() && !again.Refresh.Equal(cred.Refresh) {
		if c.usable(again, refused) {
			return again, nil
		}
		return c.renew(ctx, k, again)
	}
	return Credential{}, errors.Join(err, forget(context.WithoutCancel(ctx), k, cred))
}

func (c *Client) usable(cred Credential, refused keystore.Secret) bool {
	if !refused.IsZero() && cred.Access.Equal(refused) {
		return false
	}
	return cred.FreshAt(c.Now())
}

func load(ctx context.Context, k Keep) (Credential, error) {
	hs, err := k.Load(ctx)
	if err != nil {
		return Credential{}, err
	}
	cred, ok, err := Find(hs)
	if err == nil && !ok {
		err = &ExpiredError{Provider: "its provider", Detail: "there is no sign-in"}
	}
	return cred, err
}

// renew asks for new tokens and stores them. From the request on it is not given up: the old refresh token may be worth
// nothing from then on.
func (c *Client) renew(ctx context.Context, k Keep, cred Credential) (Credential, error) {
	interrupted := !cred.Renewing.IsZero()
	if err := mark(ctx, k, cred, c.Now().UTC()); err != nil {
		return Credential{}, err // a store that cannot be written to would lose the new token
	}
	calm := context.WithoutCancel(ctx)
	next, err := c.refresh(calm, cred)
	var expired *ExpiredError
	if errors.As(err, &expired) && interrupted && expired.Detail == "" {
		expired.Detail = "an earlier refresh was interrupted"
	}
	if err != nil {
		return Credential{}, err
	}
	for try := 1; ; try++ {
		err = k.Update(calm, func(hs []keystore.Handle) ([]keystore.Handle, error) { return next.Merge(hs) })
		if err == nil || try == storeTries {
			break
		}
		pause(calm, time.Duration(try)*100*time.Millisecond)
	}
	if err != nil {
		return next, fmt.Errorf("storing the new token: %w", err)
	}
	return next, nil
}

// refresh is RFC 6749 section 6.
func (c *Client) refresh(ctx context.Context, cred Credential) (Credential, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {cred.Refresh.Reveal()}}
	if cred.Resource != "" {
		form.Set("resource", cred.Resource)
	}
	obj, fail := c.post(ctx, cred.TokenURL, "a new token", cred.asker(), form)
	if fail == nil {
		cred, fail = c.take(cred, obj, Provider{})
	}
	switch {
	case fail == nil:
		return cred, nil
	case fail.Code == "invalid_grant", fail.Code == "bad_refresh_token", // GitHub
		fail.Code == "invalid_refresh_token",             // Slack
		fail.Code == "invalid_client" && cred.Registered: // the provider has forgotten the client that registered itself
		return Credential{}, &ExpiredError{Provider: cred.Name(), Detail: fail.Problem}
	}
	return Credential{}, fail
}

// mark notes that a refresh begins, and so finds out whether the store takes anything.
func mark(ctx context.Context, k Keep, cred Credential, now time.Time) error {
	return k.Update(ctx, func(hs []keystore.Handle) ([]keystore.Handle, error) {
		cred.Renewing = now
		return cred.Merge(hs)
	})
}

// forget deletes the tokens that were refused, and only those.
func forget(ctx context.Context, k Keep, refused Credential) error {
	return k.Update(ctx, func(hs []keystore.Handle) ([]keystore.Handle, error) {
		now, ok, err := Find(hs)
		if err != nil || !ok || !now.Refresh.Equal(refused.Refresh) {
			return hs, err
		}
		now.Refresh, now.Renewing = keystore.Secret{}, time.Time{}
		if now.Access.Equal(refused.Access) {
			now.Access = keystore.Secret{}
		}
		return now.Merge(hs)
	})
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
