package manifest

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ValidURL checks the URL of a remote connector as it stands in the manifest,
// tokens unfilled: https (http only for this machine), no user or password, no
// token before the path, no fragment, no link-local or metadata address, no
// address in a spelling that hides one (security.md, H21). What a name resolves
// to is checked again when it is dialled.
func ValidURL(raw string) error {
	authority, _ := splitURL(raw)
	if refs := Tokens(authority); len(refs) > 0 {
		return &TokenPlaceError{Token: authority[refs[0].Start:refs[0].End], Place: "the scheme or host of a URL"}
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] == 0x7f || raw[i] == '\\' {
			return errors.New("a URL with white space, a control character or a backslash")
		}
	}
	u, err := url.Parse(blankTokens(raw))
	if err != nil {
		return errors.New("not a URL")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("a URL of scheme %q; expected https", u.Scheme)
	case u.User != nil:
		return errors.New("a URL with a user or password")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return errors.New("a URL with a fragment")
	}
	return validHost(u)
}

func validHost(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	addr, err := netip.ParseAddr(host)
	isAddr := err == nil
	switch {
	case host == "":
		return errors.New("a URL without a host")
	case isAddr && addr.Is4In6():
		return fmt.Errorf("host %q is an IPv4 address written as IPv6", host)
	case isAddr && addr.Zone() != "":
		return fmt.Errorf("host %q names a network interface", host)
	case isAddr && (addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.Contains(metadataAddrs[:], addr)):
		return fmt.Errorf("host %q is a link-local, metadata, multicast or unspecified address", host)
	case !isAddr && looksNumeric(host):
		return fmt.Errorf("host %q is an address in an unusual spelling", host)
	case slices.Contains(metadataNames[:], strings.TrimSuffix(host, ".")):
		return fmt.Errorf("host %q is a metadata service", host)
	case u.Scheme == "http" && !(host == "localhost" || isAddr && addr.IsLoopback()):
		return errors.New("an http URL to another machine; expected https")
	}
	return nil
}

// metadataAddrs are cloud metadata services outside the link-local range.
var metadataAddrs = [...]netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

var metadataNames = [...]string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data"}

// looksNumeric tells whether a resolver could read the host as an address: its
// last label is a number, decimal or hexadecimal (0x7f.1, 2130706433).
func looksNumeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// splitURL cuts a URL behind its authority.
func splitURL(raw string) (authority, rest string) {
	start := 0
	if n := strings.Index(raw, "://"); n >= 0 {
		start = n + 3
	}
	if n := strings.IndexAny(raw[start:], "/?#"); n >= 0 {
		return raw[:start+n], raw[start+n:]
	}
	return raw, ""
}

// blankTokens replaces the tokens by a letter, so that a URL can be parsed.
func blankTokens(s string) string {
	return replaceTokens(s, func(TokenRef) string { return "x" })
}

// refusedHeaders belong to the transport, not to a manifest.
var refusedHeaders = [...]string{"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer",
	"keep-alive", "proxy-authorization", "proxy-connection", "accept", "accept-encoding", "expect", "cookie2",
	"mcp-session-id", "mcp-protocol-version", "last-event-id"}

// validHeaderName checks the name of a header: a token of RFC 9110, and none
// that belongs to the transport.
func validHeaderName(name string) error {
	if name == "" {
		return errors.New("a header without a name")
	}
	for i := range len(name) {
		if !isNameByte(name[i]) && !strings.ContainsRune("!#$%&'*+-.^`|~", rune(name[i])) {
			return fmt.Errorf("header %q holds something other than letters, digits and -", name)
		}
	}
	if slices.Contains(refusedHeaders[:], strings.ToLower(name)) {
		return fmt.Errorf("header %q belongs to the transport", name)
	}
	return nil
}
