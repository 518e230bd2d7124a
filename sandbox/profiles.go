package sandbox

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"
)

// resolveLimit bounds the question where a registry is: its installer waits longer
// for an answer of its own.
const resolveLimit = 5 * time.Second

// The limits of a connector's server and of its verify command, and those of
// installing its dependencies (security.md 3.2). Node maps far more than it uses,
// so the bound is on data, not on addresses.
const (
	serverMemory, serverFile, serverProcesses    = 1 << 30, 256 << 20, 128
	installMemory, installFile, installProcesses = 2 << 30, 1 << 30, 256
	browserMemory, browserProcesses              = 4 << 30, 1024
	installCPU, installFiles                     = 10 * time.Minute, 1024
)

// Server is the profile of a connector's server and of its verify command: own
// are its folder and its state, everything else of the person's is out of sight,
// and so is the network until the caller grants some of it.
func (s *Sandbox) Server(own ...string) Policy {
	return Policy{Own: own, Limits: Limits{Memory: serverMemory, FileSize: serverFile, Processes: serverProcesses}}
}

// Install is the profile of installing dependencies into folder: the network is
// that of the registries (hosts, each "host:port") and nothing else, and the
// environment of the command must hold no secret. Where hosts cannot be held
// apart every host is granted; open says so in words for a person, and is ""
// otherwise. A registry is the person's choice, so it may be at an address that is
// not public, as those of companies are.
func (s *Sandbox) Install(folder string, hosts []string) (p Policy, open string) {
	p = Policy{Own: []string{folder}, Network: Network{Hosts: append(slices.Clone(hosts), s.addresses(hosts)...)}, Limits: Limits{Memory: installMemory, FileSize: installFile,
		Processes: installProcesses, CPU: installCPU, Files: installFiles, Disk: installFile}}
	if err := s.refuses(p); err != nil && s.mode != None {
		p.Network = Network{All: true}
		open = "every host can be reached, not only " + strings.Join(hosts, ", ") + ": " + err.Error()
	}
	return p, open
}

// addresses are those that the names lead to now, each with the port.
func (s *Sandbox) addresses(hosts []string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), resolveLimit)
	defer cancel()
	resolver := s.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	var out []string
	for _, h := range hosts {
		name, port, err := net.SplitHostPort(h)
		if err != nil || net.ParseIP(name) != nil || strings.ContainsRune(name, '*') || name == "localhost" {
			continue
		}
		found, err := resolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			continue // the installer says that it is not to be reached
		}
		for _, addr := range found {
			if addr = addr.Unmap(); !addr.IsLoopback() {
				out = append(out, net.JoinHostPort(addr.String(), port))
			}
		}
	}
	return out
}

// WithBrowser grants what a browser needs, its memory and processes included.
func (p Policy) WithBrowser() Policy {
	p.Browser = true
	p.Limits.Memory, p.Limits.Processes = max(p.Limits.Memory, browserMemory), max(p.Limits.Processes, browserProcesses)
	return p
}
