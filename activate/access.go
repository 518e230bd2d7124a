package activate

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// Access is one thing that a user grants to a connector beyond what its
// manifest asks for, or withholds from it. Kind is network, loopback, read,
// write, browser or agent; Value is "host:port" or "all" for network, an
// absolute path for read and write, "" for the others.
type Access struct{ Kind, Value string }

// String is the form that a flag takes and the record keeps.
func (x Access) String() string {
	if x.Value == "" {
		return x.Kind
	}
	return x.Kind + "=" + x.Value
}

// ParseAccess reads the form "KIND" or "KIND=VALUE".
func ParseAccess(s string) (Access, error) {
	kind, value, _ := strings.Cut(s, "=")
	x := Access{Kind: kind, Value: value}
	switch kind {
	case "network":
		if value == "all" {
			return x, nil
		}
		if _, port, err := net.SplitHostPort(value); err != nil || port == "" {
			return x, fmt.Errorf("%q is not \"network=all\" or \"network=HOST:PORT\"", s)
		}
	case "read", "write":
		if !filepath.IsAbs(value) || filepath.Clean(value) == "/" {
			return x, fmt.Errorf("%q does not name an absolute path below \"/\"", s)
		}
		x.Value = filepath.Clean(value)
	case "loopback", "browser", "agent":
		if value != "" {
			return x, fmt.Errorf("%q takes no value", kind)
		}
	default:
		return x, fmt.Errorf("%q is not one of network=all, network=HOST:PORT, loopback, read=PATH, write=PATH, browser, agent", s)
	}
	return x, nil
}

// accesses reads what a record keeps; the program wrote it, and what cannot be
// read any more grants nothing.
func accesses(list []string) []Access {
	var out []Access
	for _, s := range list {
		if x, err := ParseAccess(s); err == nil {
			out = append(out, x)
		}
	}
	return out
}

func texts(list []Access) []string {
	var out []string
	for _, x := range list {
		if s := x.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// policy is what the trial may do: its own folders, what its manifest asks for
// (everything but this machine where it is silent on the network, format.md
// section 10), what the user granted besides, without what they withheld.
func (t *trial) policy(a *Activator) sandbox.Policy {
	var own []string
	if t.dir != "" {
		own = []string{t.dir, filepath.Join(a.Home, "state", t.name)}
	}
	p := t.box.Server(own...)
	p.Shared = t.treeDirs
	for _, r := range t.runtimes {
		p.Programs = append(p.Programs, r.Path)
	}
	p.Hidden = []string{a.Home}
	p.Network.All = true
	if perm := t.manifest.Permissions; perm != nil {
		t.declared(&p, perm, a)
	}
	if slices.Contains(t.withheld, Access{Kind: "network", Value: "all"}) {
		p.Network = sandbox.Network{} // of the manifest's; what is granted by name comes on top
	}
	for _, x := range t.grants {
		grant(&p, x, a)
	}
	for _, x := range t.withheld {
		withhold(&p, x)
	}
	// A host of this machine that the manifest or the user names is meant: only its
	// port is open. Asked last, since with no host left this would be every port.
	p.Loopback = p.Loopback || !p.Network.All && slices.ContainsFunc(p.Network.Hosts, isThisMachine)
	return p
}

// declared adds what the manifest asks for.
func (t *trial) declared(p *sandbox.Policy, perm *manifest.Permissions, a *Activator) {
	p.Loopback = perm.Loopback
	if perm.HostsDeclared {
		p.Network = sandbox.Network{Hosts: t.expandAll(perm.Hosts)}
	}
	p.Read = append(p.Read, t.absolute(perm.Read)...)
	p.Write = append(p.Write, t.absolute(perm.Write)...)
	if perm.Browser {
		*p = p.WithBrowser()
	}
	if perm.Agent && a.notHere(Access{Kind: "agent"}) == "" { // else it runs without, and the plan says so
		p.Agent = agentSocket(a)
	}
}

// isThisMachine tells whether "host:port" is an address of this machine.
func isThisMachine(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || ip != nil && ip.IsLoopback()
}

func grant(p *sandbox.Policy, x Access, a *Activator) {
	switch x.Kind {
	case "network":
		if x.Value == "all" {
			p.Network.All = true
		} else {
			p.Network.Hosts = append(p.Network.Hosts, x.Value)
		}
	case "loopback":
		p.Loopback = true
	case "read":
		p.Read = append(p.Read, x.Value)
	case "write":
		p.Write = append(p.Write, x.Value)
	case "browser":
		*p = p.WithBrowser()
	case "agent":
		p.Agent = agentSocket(a)
	}
}

// withhold takes x away again: a host in whatever spelling, a folder with what is in
// it; what may not be read may not be written either.
func withhold(p *sandbox.Policy, x Access) {
	under := func(path string) bool {
		return path == x.Value || strings.HasPrefix(path, x.Value+string(filepath.Separator))
	}
	switch x.Kind {
	case "network":
		if x.Value == "all" {
			p.Network.All = false
		} else {
			p.Network.Hosts = slices.DeleteFunc(p.Network.Hosts, func(h string) bool { return sameHost(h, x.Value) })
		}
	case "loopback":
		p.Loopback = false
		p.Network.Hosts = slices.DeleteFunc(p.Network.Hosts, isThisMachine)
	case "read":
		p.Read, p.Write = slices.DeleteFunc(p.Read, under), slices.DeleteFunc(p.Write, under)
	case "write":
		p.Write = slices.DeleteFunc(p.Write, under)
	case "browser":
		p.Browser = false
	case "agent":
		p.Agent = ""
	}
}

// sameHost compares two "host:port" as names are compared.
func sameHost(a, b string) bool {
	clean := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, ".:", ":")) }
	return clean(a) == clean(b)
}

// noAgent says why a manifest that asks for the SSH agent does not get it, "" otherwise.
func (t *trial) noAgent(a *Activator) string {
	if perm := t.manifest.Permissions; perm == nil || !perm.Agent || slices.Contains(t.withheld, Access{Kind: "agent"}) {
		return ""
	}
	return a.notHere(Access{Kind: "agent"})
}

// agentSocket is the user's SSH agent.
func agentSocket(a *Activator) string { return lookup(a.Environ, agentVariable) }

const agentVariable = "SSH_AUTH_SOCK"

// relaxations turns what the sandbox refused into what would have allowed it,
// each once: the exact grant that a person is offered.
func relaxations(denied []sandbox.Denial) []Access {
	var out []Access
	for _, d := range denied {
		x := Access{Kind: "network", Value: d.Target}
		if d.Kind == sandbox.DeniedFile {
			x.Kind = "read"
			if strings.Contains(d.Why, "not written") {
				x.Kind = "write"
			}
		}
		if _, err := ParseAccess(x.String()); err == nil && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// deniedOf is what the sandbox refused before this failure.
func deniedOf(err error) []sandbox.Denial {
	var refused *RefusedError
	var probe *ProbeError
	switch {
	case errors.As(err, &refused):
		return refused.Outcome.Denied
	case errors.As(err, &probe):
		return probe.Denied
	}
	return nil
}

// Relaxations names what would allow what the sandbox refused before this
// failure; nil when it refused nothing.
func Relaxations(err error) []Access { return relaxations(deniedOf(err)) }
