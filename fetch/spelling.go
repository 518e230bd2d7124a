package fetch

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// onePlace is the one spelling of a marketplace's address, without its credentials: what is known of its keys is found by it, and
// another spelling of it would be a marketplace without keys. refused says why an address has none, or "".
func onePlace(u *url.URL) (place *url.URL, refused string) {
	host, refused := oneHost(u.Hostname())
	if refused != "" {
		return nil, refused
	}
	port, refused := onePort(u)
	if refused != "" {
		return nil, refused
	}
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.Contains(escaped, "%00") {
		return nil, "its path has an encoded slash or a control character, which servers read in different ways"
	}
	p := path.Clean("/" + u.Path) // dot segments and double slashes, however they are written
	return &url.URL{Scheme: u.Scheme, Host: host + port, Path: strings.TrimRight(p, "/")}, ""
}

// oneHost spells an address of a number shortest, and a name as it is asked for: in lower case, other scripts as xn--, without the
// final dot.
func oneHost(host string) (one, refused string) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip = ip.Unmap(); ip.Is6() {
			return "[" + strings.ReplaceAll(ip.String(), "%", "%25") + "]", ""
		}
		return ip.String(), ""
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if isASCII(name) {
		return name, "" // a name with a mark that no rule for names knows (a_b) is for the resolver to judge
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return "", fmt.Sprintf("%q is not the name of a host", name)
	}
	return strings.TrimSuffix(ascii, "."), ""
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e })
}

// onePort is ":" and the port, or "" for that of the scheme.
func onePort(u *url.URL) (one, refused string) {
	if u.Port() == "" {
		return "", ""
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err != nil || n == 0:
		return "", fmt.Sprintf("there is no port %s", u.Port())
	case u.Scheme == "https" && n == 443, u.Scheme == "http" && n == 80:
		return "", ""
	}
	return fmt.Sprintf(":%d", n), ""
}
