package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

// hopLimit bounds the redirects of a discovery document.
const hopLimit = 3

// Discover reads what an authorization server says about itself (RFC 8414, OpenID Connect Discovery 1.0) into p, whose Issuer names
// it. What p says already stays.
func (c *Client) Discover(ctx context.Context, p Provider) (Provider, error) {
	m, err := c.serverMetadata(ctx, p.Issuer)
	if err != nil {
		return p, err
	}
	return m.fill(p), nil
}

// metadata is the part of RFC 8414 section 2 that is used.
type metadata struct {
	issuer, auth, token, device, revoke, register string
	methods, scopes, auths                        []string
	namesIssuer                                   bool
}

func (m metadata) fill(p Provider) Provider {
	set := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}
	p.Issuer = m.issuer
	set(&p.AuthURL, m.auth)
	set(&p.TokenURL, m.token)
	set(&p.DeviceURL, m.device)
	set(&p.RevokeURL, m.revoke)
	set(&p.RegisterURL, m.register)
	p.NamesIssuer = p.NamesIssuer || m.namesIssuer
	if p.TokenAuth == "" && len(m.auths) > 0 && !slices.Contains(m.auths, "none") {
		p.TokenAuth = "basic" // what RFC 8414 takes for granted
		if slices.Contains(m.auths, "client_secret_post") {
			p.TokenAuth = "post"
		}
	}
	return p
}

// serverMetadata asks the places where an issuer's metadata can be, in the order of the MCP specification.
func (c *Client) serverMetadata(ctx context.Context, issuer string) (metadata, error) {
	u, err := url.Parse(issuer)
	if err == nil {
		err = checkEndpoint(issuer)
	}
	if err != nil {
		return metadata{}, fmt.Errorf("looking for the authorization server: %w", err)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	origin := u.Scheme + "://" + u.Host
	places := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	var first error
	for _, place := range places {
		obj, fail := c.document(ctx, place, "the metadata of the authorization server")
		if fail != nil {
			if ctx.Err() != nil {
				return metadata{}, context.Cause(ctx)
			}
			if first == nil || first.(*ReplyError).Status == http.StatusNotFound {
				first = fail
			}
			continue
		}
		m := readMetadata(obj)
		return m, m.check(issuer)
	}
	return metadata{}, first
}

func readMetadata(obj exactjson.Value) metadata {
	names, _ := obj.Get("authorization_response_iss_parameter_supported")
	return metadata{
		issuer: text(obj, "issuer"), auth: text(obj, "authorization_endpoint"), token: text(obj, "token_endpoint"),
		device: text(obj, "device_authorization_endpoint"), revoke: text(obj, "revocation_endpoint"), register: text(obj, "registration_endpoint"),
		methods: texts(obj, "code_challenge_methods_supported"), scopes: texts(obj, "scopes_supported"),
		auths: texts(obj, "token_endpoint_auth_methods_supported"), namesIssuer: names.Kind == exactjson.Bool && names.Str == "true",
	}
}

// check holds metadata against the issuer that was asked for (RFC 8414 section 3.3). A final slash is forgiven here, where both
// texts were written by people; what an answer names later is compared byte for byte with what the metadata says.
func (m metadata) check(issuer string) error {
	if strings.TrimSuffix(m.issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return &AnswerError{fmt.Sprintf("the metadata at %s is of the issuer %s", foreign(issuer), foreign(m.issuer))}
	}
	for _, endpoint := range []string{m.auth, m.token, m.device, m.revoke, m.register} {
		if endpoint == "" {
			continue
		}
		if err := checkReach(issuer, endpoint); err != nil {
			return &AnswerError{fmt.Sprintf("the metadata of %s: %v", foreign(issuer), err)}
		}
	}
	if m.auth == "" || m.token == "" {
		return &AnswerError{fmt.Sprintf("the metadata of %s names no endpoints", foreign(issuer))}
	}
	return nil
}

// document reads one public JSON document. Nothing of ours travels with the request, so redirects may be followed; not to this
// machine from another.
func (c *Client) document(ctx context.Context, address, what string) (exactjson.Value, *ReplyError) {
	fail := &ReplyError{Host: hostOf(address), What: what}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for first := address; ; {
		if fail.Err = checkReach(first, address); fail.Err != nil {
			return exactjson.Value{}, fail
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			fail.Err = errors.New("the address cannot be used")
			return exactjson.Value{}, fail
		}
		obj, failed := c.reply(req, &ReplyError{Host: fail.Host, What: what, hops: fail.hops}, nil)
		if failed == nil || failed.location == "" || failed.hops >= hopLimit {
			return obj, failed
		}
		address, fail = failed.location, &ReplyError{Host: fail.Host, What: what, hops: failed.hops + 1}
	}
}

// checkReach accepts an address that another one leads to: an endpoint, and on this machine only when both are.
func checkReach(from, to string) error {
	if err := checkEndpoint(to); err != nil {
		return err
	}
	f, ferr := url.Parse(from)
	t, terr := url.Parse(to)
	if ferr != nil || terr != nil || isLoopback(t.Hostname()) && !isLoopback(f.Hostname()) {
		return fmt.Errorf("%s is on this machine, and %s is not", foreign(to), foreign(from))
	}
	if ip := net.ParseIP(t.Hostname()); ip != nil && (ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()) {
		return fmt.Errorf("%s is not an address of the internet", foreign(to))
	}
	return nil
}
