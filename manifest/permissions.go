package manifest

import (
	"net/netip"
	"strconv"
	"strings"

	"skald-connectors/internal/exactjson"
)

// permissions reads what the connector says it needs. What cannot be read is
// taken as not asked for, so a fault never widens what is allowed.
func (r *reader) permissions(obj exactjson.Value) *Permissions {
	v, ok := get(obj, "permissions")
	if !ok {
		return nil
	}
	p := &Permissions{}
	if v.Kind != exactjson.Object {
		r.say(v, Error, "permissions-not-an-object", "found %s, expected an object; taken as no network and no files", v.Kind)
		p.HostsDeclared = true
		return p
	}
	r.network(v, p)
	if fs, ok := r.object(v, "filesystem"); ok {
		p.Read, p.Write = r.paths(fs, "read"), r.paths(fs, "write")
	}
	p.Loopback, p.Browser, p.Agent = r.flag(v, "loopback", false), r.flag(v, "browser", false), r.flag(v, "agent", false)
	return p
}

func (r *reader) network(obj exactjson.Value, p *Permissions) {
	v, ok := get(obj, "network")
	if !ok {
		return
	}
	if v.Kind != exactjson.Object {
		p.HostsDeclared = true
		r.say(v, Error, "permissions-network", "found %s, expected an object with hosts; taken as no network", v.Kind)
		return
	}
	hosts, ok := get(v, "hosts")
	if !ok {
		return
	}
	p.HostsDeclared = true
	for _, item := range r.items(hosts) {
		s, ok := r.textOf(item)
		if !ok {
			continue
		}
		if why := badHostPort(s); why != "" {
			r.say(item, Error, "permissions-host", "found %q, expected host:port (%s); it is not allowed", s, why)
			continue
		}
		p.Hosts = append(p.Hosts, s)
	}
}

// badHostPort says what is wrong with host:port, *.host:port, or the same with
// {ENV:} tokens in the place of either part; "" when nothing is.
func badHostPort(s string) string {
	for _, ref := range Tokens(s) {
		if ref.Kind != "ENV" {
			return "only {ENV:} tokens may stand here"
		}
	}
	plain := replaceTokens(s, func(TokenRef) string { return "1" })
	n := strings.LastIndexByte(plain, ':')
	if n < 0 {
		return "no port"
	}
	host, port := plain[:n], plain[n+1:]
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return "not a port"
	}
	if bracketed, ok := strings.CutPrefix(host, "["); ok {
		if _, err := netip.ParseAddr(strings.TrimSuffix(bracketed, "]")); err != nil {
			return "not an address"
		}
		return ""
	}
	host = strings.TrimPrefix(host, "*.")
	if host == "" || strings.HasPrefix(host, ".") || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" || strings.Contains(host, "..") {
		return "not a host name"
	}
	return ""
}

func (r *reader) paths(obj exactjson.Value, key string) []string {
	v, ok := get(obj, key)
	if !ok {
		return nil
	}
	var list []string
	for _, item := range r.items(v) {
		s, ok := r.textOf(item)
		switch {
		case !ok:
		case s == "" || strings.ContainsRune(s, 0):
			r.say(item, Error, "permissions-path", "found an empty path or one with a NUL character; it is not allowed")
		default:
			if !rooted(s) {
				r.say(item, Warning, "permissions-path", "the path %q is not absolute and begins with no {ENV:} token; it opens nothing", s)
			}
			list = append(list, s)
		}
	}
	return list
}

// rooted tells whether a path can be absolute on some system, with its tokens filled in.
func rooted(path string) bool {
	return path[0] == '/' || path[0] == '\\' || len(path) > 1 && path[1] == ':' || strings.HasPrefix(path, "{ENV:")
}
