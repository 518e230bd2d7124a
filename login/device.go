package login

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"skald-connectors/internal/exactjson"
)

const (
	// devicePause is the pause between two questions where the provider names none, and what slow_down adds to it (RFC
	// 8628 sections 3.2 and 3.5).
	devicePause = 5 * time.Second
	// longestPause bounds what a provider may ask for.
	longestPause = time.Minute
	// userCodeLimit bounds what a person has to type.
	userCodeLimit = 64
)

// DeviceCode is what the person types on another device.
type DeviceCode struct {
	Code     string
	Address  string        // the page to open
	Complete string        // the same with the code in it; "" = none
	Life     time.Duration // how long both are good
}

// SignInDevice signs in with the device flow (RFC 8628). Errors as of SignIn.
func (c *Client) SignInDevice(ctx context.Context, s SignIn) (Credential, error) {
	p := s.Provider
	if p.DeviceURL == "" {
		return Credential{}, &AnswerError{p.name() + " has no device flow"}
	}
	form := url.Values{}
	if len(s.Scopes) > 0 {
		form.Set("scope", p.joinScopes(s.Scopes))
	}
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	cred := newCredential(p, s)
	obj, fail := c.post(ctx, p.DeviceURL, "a device code", cred.asker(), form)
	if fail != nil {
		return Credential{}, stopped(ctx, fail)
	}
	d, device, pause, fail := deviceReply(obj, p.DeviceURL)
	if fail != nil {
		return Credential{}, fail
	}
	if d.Life <= 0 || d.Life > s.limit() {
		d.Life = s.limit()
	}
	s.Code(d)
	return c.poll(ctx, s, cred, device, pause, d.Life)
}

// deviceReply reads RFC 8628 section 3.2.
func deviceReply(obj exactjson.Value, endpoint string) (d DeviceCode, device string, pause time.Duration, fail *ReplyError) {
	fail = &ReplyError{Host: hostOf(endpoint), What: "a device code", Status: 200}
	device = text(obj, "device_code")
	d = DeviceCode{Code: text(obj, "user_code"), Address: text(obj, "verification_uri"), Complete: text(obj, "verification_uri_complete"), Life: lifeOf(obj)}
	if d.Address == "" {
		d.Address = text(obj, "verification_url") // Google
	}
	switch {
	case device == "" || !printable(device) || len(device) > codeLimit:
		fail.Problem = "the answer has no device code"
	case d.Code == "" || !printable(d.Code) || len(d.Code) > userCodeLimit:
		fail.Problem = "the answer has no code to type"
	case checkEndpoint(d.Address) != nil || !printable(d.Address):
		fail.Problem = "the page in the answer cannot be opened safely"
	default:
		fail = nil
	}
	if checkEndpoint(d.Complete) != nil || !printable(d.Complete) {
		d.Complete = ""
	}
	pause = devicePause
	if v, ok := obj.Get("interval"); ok {
		if n, err := strconv.Atoi(v.Str); err == nil && n > 0 {
			pause = min(time.Duration(n)*time.Second, longestPause)
		}
	}
	return d, device, pause, fail
}

// poll asks until the person has decided.
func (c *Client) poll(ctx context.Context, s SignIn, cred Credential, device string, pause, life time.Duration) (Credential, error) {
	over := time.NewTimer(life)
	defer over.Stop()
	next := time.NewTimer(pause)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return Credential{}, context.Cause(ctx)
		case <-over.C:
			return Credential{}, &TimeoutError{After: life}
		case <-next.C:
		}
		form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device}}
		calm := context.WithoutCancel(ctx) // an answer with a token must not be lost
		obj, fail := c.post(calm, cred.TokenURL, codeTraded, cred.asker(), form)
		if fail == nil {
			if cred, fail = c.take(cred, obj, s.Provider); fail != nil {
				return Credential{}, fail
			}
			if ctx.Err() != nil {
				return cred, context.Cause(ctx)
			}
			return cred, nil
		}
		switch {
		case fail.Code == "authorization_pending":
		case fail.Code == "slow_down":
			pause = min(pause+devicePause, longestPause)
		case fail.Code == "expired_token":
			return Credential{}, &TimeoutError{After: life}
		case fail.Code == "access_denied", fail.Code == "authorization_declined": // Microsoft
			return Credential{}, &DeniedError{Code: "access_denied", Detail: fail.Problem}
		case fail.Code == "" && (fail.Status == 0 || fail.Status >= 500 || fail.Status == 429):
			pause = min(2*pause, longestPause) // section 3.5: back off when the network fails
		default:
			return Credential{}, fail
		}
		next.Reset(pause)
	}
}

// stopped prefers the end of the context to what it made of a request.
func stopped(ctx context.Context, fail *ReplyError) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fail
}
