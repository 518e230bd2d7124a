package login

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
)

// Needs is what a remote MCP server wants of whoever asks it (MCP 2025-11-25, "Authorization").
type Needs struct {
	Provider Provider // a client registers itself there
	Resource string   // RFC 8707
	Scopes   []string
}

// NoAuthorizationError says that a server refuses and does not say how to be let in.
type NoAuthorizationError struct {
	Host string
	Err  error
}

func (e *NoAuthorizationError) Error() string {
	return fmt.Sprintf("looking for the sign-in of %s: it asks for a credential and does not say how to get one: %v", e.Host, e.Err)
}

// Unwrap gives the cause.
func (e *NoAuthorizationError) Unwrap() error { return e.Err }

// DiscoverServer finds out where to sign in for a remote MCP server that answered 401 with these WWW-Authenticate headers: the
// protected resource's metadata (RFC 9728), the authorization server's (RFC 8414), and for servers of before 2025-06 their
// own origin's.
func (c *Client) DiscoverServer(ctx context.Context, server string, challenges []string) (Needs, error) {
	none := func(err error) (Needs, error) {
		if ctx.Err() != nil {
			return Needs{}, context.Cause(ctx)
		}
		return Needs{}, &NoAuthorizationError{Host: hostOf(server), Err: err}
	}
	u, err := url.Parse(server)
	if err != nil {
		return none(fmt.Errorf("%s is no address", foreign(server)))
	}
	u.Fragment, u.RawQuery = "", ""
	ch := readChallenge(challenges)
	n := Needs{Resource: u.String(), Scopes: ch.scopes}
	issuer := u.Scheme + "://" + u.Host
	obj, fail := c.resourceMetadata(ctx, u, ch.metadata)
	switch {
	case fail == nil:
		if err := n.read(obj, u); err != nil {
			return none(err)
		}
		if list := texts(obj, "authorization_servers"); len(list) > 0 {
			issuer = list[0]
		}
	case ch.metadata != "" || fail.Status == 0:
		return none(fail)
	}
	if err := checkReach(server, issuer); err != nil {
		return none(err)
	}
	m, err := c.serverMetadata(ctx, issuer)
	if err != nil {
		return none(err)
	}
	if !slices.Contains(m.methods, "S256") { // the specification: refuse without it
		return none(&AnswerError{fmt.Sprintf("the authorization server %s does not offer PKCE with S256", foreign(issuer))})
	}
	n.Provider = m.fill(Provider{Title: hostOf(issuer)})
	if slices.Contains(m.scopes, "offline_access") && !slices.Contains(n.Scopes, "offline_access") {
		n.Scopes = append(slices.Clone(n.Scopes), "offline_access")
	}
	if slices.Contains(n.Scopes, "offline_access") {
		n.Provider.Extra = map[string]string{"prompt": "consent"} // OpenID Connect Core section 11
	}
	return n, nil
}

// read takes what the resource says of itself; it must be the one that was asked (RFC 9728 section 3.3).
func (n *Needs) read(obj exactjson.Value, server *url.URL) error {
	named := text(obj, "resource")
	r, err := url.Parse(named)
	if named == "" || err != nil || r.Scheme != server.Scheme || !strings.EqualFold(r.Host, server.Host) ||
		!strings.HasPrefix(strings.TrimSuffix(server.Path, "/")+"/", strings.TrimSuffix(r.Path, "/")+"/") {
		return &AnswerError{fmt.Sprintf("the metadata is of the resource %s", foreign(named))}
	}
	n.Resource = named
	if n.Scopes == nil {
		n.Scopes = texts(obj, "scopes_supported")
	}
	return nil
}

// resourceMetadata asks where the challenge says, else at the well-known places.
func (c *Client) resourceMetadata(ctx context.Context, server *url.URL, named string) (exactjson.Value, *ReplyError) {
	const what = "the metadata of the protected resource"
	if named != "" {
		if err := checkReach(server.String(), named); err != nil {
			return exactjson.Value{}, &ReplyError{Host: server.Host, What: what, Err: err}
		}
		return c.document(ctx, named, what)
	}
	root := server.Scheme + "://" + server.Host + "/.well-known/oauth-protected-resource"
	path := strings.TrimSuffix(server.EscapedPath(), "/")
	obj, fail := c.document(ctx, root+path, what)
	if fail != nil && path != "" && fail.Status != 0 {
		obj, fail = c.document(ctx, root, what)
	}
	return obj, fail
}

// challenge is the Bearer part of WWW-Authenticate.
type challenge struct {
	metadata string // the URL of RFC 9728 section 5.1
	scopes   []string
}

// readChallenge reads the first Bearer challenge of the headers (RFC 9110 section 11.6.1).
func readChallenge(headers []string) challenge {
	var out challenge
	for _, h := range headers {
		rest, ok := afterScheme(h, "bearer")
		if !ok {
			continue
		}
		for rest != "" {
			var name, value string
			if name, value, rest, ok = nextParam(rest); !ok {
				break
			}
			switch strings.ToLower(name) {
			case "resource_metadata":
				out.metadata = value
			case "scope":
				out.scopes = strings.Fields(value)
			}
		}
		return out
	}
	return out
}

// afterScheme finds a scheme at the start of a header or after a comma.
func afterScheme(h, scheme string) (string, bool) {
	for i := 0; i+len(scheme) <= len(h); i++ {
		begins := i == 0 || h[i-1] == ',' || h[i-1] == ' '
		if begins && strings.EqualFold(h[i:i+len(scheme)], scheme) {
			rest := h[i+len(scheme):]
			if rest == "" || rest[0] == ' ' || rest[0] == ',' {
				return rest, true
			}
		}
	}
	return "", false
}

// nextParam reads name=value or name="value". ok is false at the next challenge and where nothing can be read.
func nextParam(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t,")
	name, after, found := strings.Cut(s, "=")
	name = strings.TrimRight(name, " \t")
	if !found || name == "" || strings.ContainsAny(name, " \t,\"") {
		return "", "", "", false
	}
	after = strings.TrimLeft(after, " \t")
	if !strings.HasPrefix(after, `"`) {
		value, rest, _ = strings.Cut(after, ",")
		return name, strings.TrimSpace(value), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(after); i++ {
		switch c := after[i]; {
		case c == '\\' && i+1 < len(after):
			i++
			b.WriteByte(after[i])
		case c == '"':
			return name, b.String(), after[i+1:], true
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "", false
}

// register makes a client at a provider that lets clients register themselves (RFC 7591), and uses the one of before while
// it answers at the same address.
func (c *Client) register(ctx context.Context, p *Provider, s SignIn, redirect string) error {
	if p.ClientID != "" {
		return nil
	}
	if b := s.Before; b.Registered && b.Issuer == p.Issuer && b.Redirect == redirect && b.ClientID != "" && !b.Refresh.IsZero() {
		p.ClientID, p.ClientSecret, p.TokenAuth = b.ClientID, b.ClientSecret, b.TokenAuth
		return nil
	}
	if p.RegisterURL == "" {
		return &NoClientError{Slug: p.Slug, Title: p.name(), Console: p.Console, Known: true}
	}
	auth := map[string]string{"": "none", "none": "none", "post": "client_secret_post", "basic": "client_secret_basic"}[p.TokenAuth]
	wish := map[string]any{
		"client_name": "skald-connectors", "redirect_uris": []string{redirect}, "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": auth,
	}
	if len(s.Scopes) > 0 {
		wish["scope"] = p.joinScopes(s.Scopes)
	}
	obj, fail := c.postJSON(ctx, p.RegisterURL, "the registration of a client", wish)
	if fail != nil {
		return stopped(ctx, fail)
	}
	p.ClientID, p.ClientSecret = text(obj, "client_id"), keystore.NewSecret(text(obj, "client_secret"))
	switch text(obj, "token_endpoint_auth_method") {
	case "client_secret_post":
		p.TokenAuth = "post"
	case "client_secret_basic":
		p.TokenAuth = "basic"
	case "", "none":
		p.TokenAuth = "none"
		if !p.ClientSecret.IsZero() {
			p.TokenAuth = "post"
		}
	default:
		return &ReplyError{Host: hostOf(p.RegisterURL), What: "the registration of a client", Status: http.StatusCreated,
			Problem: "it wants a way of naming the client that this program does not have: " + foreign(text(obj, "token_endpoint_auth_method"))}
	}
	if p.ClientID == "" || !printable(p.ClientID) {
		return &ReplyError{Host: hostOf(p.RegisterURL), What: "the registration of a client", Status: http.StatusCreated, Problem: "the answer has no client id"}
	}
	return nil
}

func (c *Client) postJSON(ctx context.Context, endpoint, what string, body any) (exactjson.Value, *ReplyError) {
	fail := &ReplyError{Host: hostOf(endpoint), What: what}
	if fail.Err = checkEndpoint(endpoint); fail.Err != nil {
		return exactjson.Value{}, fail
	}
	data, err := json.Marshal(body)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		req, rerr := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(data))
		if rerr == nil {
			req.Header.Set("Content-Type", "application/json")
			return c.reply(req, fail, nil)
		}
		err = rerr
	}
	fail.Err = withoutURL(err)
	return exactjson.Value{}, fail
}
