package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// hostRule is one "host:port" of a policy.
type hostRule struct {
	name   string       // lower case, without a dot at the end; "" for an address
	below  bool         // any name below name, not name itself
	prefix netip.Prefix // for an address or a range
	port   int
}

// parseHosts reads the hosts of a policy. The error is an *UnenforceableError.
func parseHosts(hosts []string) ([]hostRule, error) {
	rules := make([]hostRule, 0, len(hosts))
	for _, h := range hosts {
		r, err := parseHost(h)
		if err != nil {
			return nil, &UnenforceableError{What: "network to " + quote(h), Why: err.Error(), Always: true}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseHost(s string) (hostRule, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 1 {
		return hostRule{}, fmt.Errorf("it is not host:port")
	}
	host, digits := s[:i], s[i+1:]
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != digits {
		return hostRule{}, fmt.Errorf("%q is no port", digits)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if prefix, err := netip.ParsePrefix(host); err == nil {
		return hostRule{prefix: prefix.Masked(), port: port}, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return hostRule{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}, nil
	}
	name, below := strings.CutPrefix(cleanName(host), "*.")
	if !validName(name) {
		return hostRule{}, fmt.Errorf("%q is neither a name nor an address", host)
	}
	if below && !strings.Contains(name, ".") {
		return hostRule{}, fmt.Errorf("%q stands for a whole top-level domain", host)
	}
	return hostRule{name: name, below: below, port: port}, nil
}

// cleanName brings a name into the form that is compared.
func cleanName(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }

// validName holds a cleaned name to what can be a host: labels of letters, digits,
// hyphens and underscores. A last label of digits would be an address to some.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// names tells whether r is about name.
func (r hostRule) names(name string) bool {
	switch {
	case r.name == "":
		return false
	case r.below:
		return strings.HasSuffix(name, "."+r.name)
	}
	return name == r.name
}

// covers tells whether r is about addr.
func (r hostRule) covers(addr netip.Addr) bool { return r.name == "" && r.prefix.Contains(addr) }

// hostRules are those of one policy.
type hostRules struct {
	list     []hostRule
	loopback bool
}

// knows tells whether name is declared with any port.
func (h hostRules) knows(name string) bool {
	return slices.ContainsFunc(h.list, func(r hostRule) bool { return r.names(name) })
}

// permitsName tells whether name is declared with this port.
func (h hostRules) permitsName(name string, port int) bool {
	return slices.ContainsFunc(h.list, func(r hostRule) bool { return r.port == port && r.names(name) })
}

// permitsAddr tells whether the address itself is declared with this port.
func (h hostRules) permitsAddr(addr netip.Addr, port int) bool {
	addr = addr.Unmap()
	if addr.IsLoopback() {
		return h.loopback && (h.permitsName("localhost", port) || h.declares(addr, port))
	}
	return h.declares(addr, port)
}

func (h hostRules) declares(addr netip.Addr, port int) bool {
	return slices.ContainsFunc(h.list, func(r hostRule) bool { return r.port == port && r.covers(addr) })
}

// leads tells why the declared name must not lead to addr, "" when it may.
func (h hostRules) leads(name string, addr netip.Addr, port int) string {
	addr = addr.Unmap()
	kind := special(addr)
	switch {
	case kind == "" || h.permitsAddr(addr, port):
		return ""
	case kind == kindPrivate && localName(name):
		return ""
	}
	return fmt.Sprintf("it leads to %s, %s", addr, kind)
}

// ports lists the declared ports, each once.
func (h hostRules) ports() []int {
	var list []int
	for _, r := range h.list {
		list = append(list, r.port)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// localSuffixes end names that no public server gives out.
var localSuffixes = []string{".local", ".lan", ".home", ".home.arpa", ".internal", ".intranet", ".localdomain"}

// localName tells whether name is one of a private network, whose addresses are
// private by nature.
func localName(name string) bool {
	return !strings.Contains(name, ".") || slices.ContainsFunc(localSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

const (
	kindPrivate  = "a private address"
	kindLoopback = "an address of this machine"
	kindLink     = "a link-local or metadata address"
	kindReserved = "a reserved address"
	kindHidden   = "an address that hides another one"
)

// specials are the addresses that are not public hosts. The first match counts.
var specials = []struct {
	kind     string
	prefixes []netip.Prefix
}{
	{kindLink, prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")},
	{kindLoopback, prefixes("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128")},
	{kindPrivate, prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")},
	{kindHidden, prefixes("64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96")},
	{kindReserved, prefixes("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"100::/64", "2001:db8::/32", "3fff::/20", "ff00::/8")},
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// nat64 is the well-known prefix of RFC 6052: the last four bytes are the address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// special tells what kind of address addr is when it is no public host, else "".
func special(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		// A public host, as a network without IPv4 shows it; or something that hides.
		b := addr.As16()
		return special(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, s := range specials {
		if slices.ContainsFunc(s.prefixes, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			return s.kind
		}
	}
	return ""
}
