package login

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"skald-connectors/internal/lazyre"
	"skald-connectors/keystore"
)

// Provider is an authorization server and our client at it.
type Provider struct {
	Slug  string // what manifests name, e.g. "google"; "" = a server named it (MCP authorization)
	Title string

	Issuer      string // byte for byte as its answers name it; "" = not checked
	AuthURL     string
	TokenURL    string
	DeviceURL   string // "" = no device flow
	RevokeURL   string // "" = it cannot revoke
	RegisterURL string // where a client registers itself; used only while ClientID is ""

	ClientID     string
	ClientSecret keystore.Secret
	TokenAuth    string // how the client names itself at TokenURL: "post" (also ""), "basic", "none"

	// Redirect is where the browser brings the answer: "loopback" (also ""), a loopback URL with a fixed port, host or
	// path, or an https page that shows the code to be pasted.
	Redirect  string
	Extra     map[string]string // more parameters of the authorization request
	Separator string            // between scopes; "" = a space
	// NamesIssuer says that its answers name the issuer (RFC 9207): one that does not is refused.
	NamesIssuer bool
	// Rotates says that a refresh token is good for one use, so that only one program may use it.
	Rotates bool
	Console string // the page where a client is made
}

const loopback = "loopback"

// validSlug is a file name and what a manifest may name.
var validSlug = lazyre.New(`^[a-z0-9][a-z0-9-]{0,31}$`)

// name is how messages call the provider.
func (p Provider) name() string {
	if p.Title != "" {
		return p.Title
	}
	if p.Slug != "" {
		return p.Slug
	}
	return hostOf(p.TokenURL)
}

// Check says what keeps a provider from being used, without its client.
func (p Provider) Check() error {
	for _, u := range []struct {
		what, value string
		needed      bool
	}{
		{"auth_url", p.AuthURL, true}, {"token_url", p.TokenURL, true}, {"device_url", p.DeviceURL, false},
		{"revoke_url", p.RevokeURL, false}, {"issuer", p.Issuer, false}, {"registration", p.RegisterURL, false},
	} {
		if u.value == "" && !u.needed {
			continue
		}
		if err := checkEndpoint(u.value); err != nil {
			return fmt.Errorf("%s of the provider %q: %w", u.what, p.Slug, err)
		}
	}
	if !slices.Contains([]string{"", "post", "basic", "none"}, p.TokenAuth) {
		return fmt.Errorf("token_auth %q of the provider %q is not post, basic or none", p.TokenAuth, p.Slug)
	}
	if _, _, err := p.redirect(); err != nil {
		return fmt.Errorf("redirect of the provider %q: %w", p.Slug, err)
	}
	for name := range p.Extra {
		if slices.Contains([]string{"client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method", "scope", "resource"}, name) {
			return fmt.Errorf("extra_params of the provider %q: %q is ours to say", p.Slug, name)
		}
	}
	return nil
}

// checkEndpoint accepts https anywhere and http on this machine.
func checkEndpoint(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("%s is no address", foreign(raw))
	case u.User != nil:
		return fmt.Errorf("%s has credentials in it", foreign(u.Redacted()))
	case u.Fragment != "":
		return fmt.Errorf("%s has a fragment", foreign(raw))
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is not https", foreign(raw))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func hostOf(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return u.Host
	}
	return "the provider"
}

// redirect reads Redirect: a loopback address to listen on, or (paste) a page that shows the code.
func (p Provider) redirect() (u *url.URL, paste bool, err error) {
	switch p.Redirect {
	case "", loopback:
		return &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/callback"}, false, nil
	}
	u, err = url.Parse(p.Redirect)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, false, fmt.Errorf("%s is neither loopback nor an address without a query", foreign(p.Redirect))
	}
	switch {
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		if u.Path == "" {
			u.Path = "/"
		}
		return u, false, nil
	case u.Scheme == "https":
		return u, true, nil
	}
	return nil, false, fmt.Errorf("%s is neither https nor on this machine", foreign(p.Redirect))
}

// Pastes tells whether a sign-in always ends in a code to be pasted.
func (p Provider) Pastes() bool {
	_, paste, err := p.redirect()
	return err == nil && paste
}

func (p Provider) joinScopes(scopes []string) string {
	if p.Separator == "" {
		return strings.Join(scopes, " ")
	}
	return strings.Join(scopes, p.Separator)
}

// authorize is the address that the person opens.
func (p Provider) authorize(redirect, state, challenge, resource string, scopes []string) (string, error) {
	u, err := url.Parse(p.AuthURL)
	if err != nil {
		return "", fmt.Errorf("auth_url of the provider %q: %s is no address", p.Slug, foreign(p.AuthURL))
	}
	q := u.Query()
	for name, value := range maps.All(p.Extra) {
		q.Set(name, value)
	}
	q.Set("response_type", "code")
	q.Set("client_id", p.ClientID)
	q.Set("redirect_uri", redirect)
	q.Set("state", state)
	q.Set("code_challenge", challenge)
	q.Set("code_challenge_method", "S256")
	if len(scopes) > 0 {
		q.Set("scope", p.joinScopes(scopes))
	}
	if resource != "" {
		q.Set("resource", resource)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // some readers of links stop at a plus
	return u.String(), nil
}
