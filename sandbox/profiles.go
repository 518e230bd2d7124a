package sandbox

import (
	"strings"
	"time"
)

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
// otherwise.
func (s *Sandbox) Install(folder string, hosts []string) (p Policy, open string) {
	p = Policy{Own: []string{folder}, Network: Network{Hosts: hosts}, Limits: Limits{Memory: installMemory, FileSize: installFile,
		Processes: installProcesses, CPU: installCPU, Files: installFiles, Disk: installFile}}
	if err := s.refuses(p); err != nil && s.mode != None {
		p.Network = Network{All: true}
		open = "every host can be reached, not only " + strings.Join(hosts, ", ") + ": " + err.Error()
	}
	return p, open
}

// WithBrowser grants what a browser needs, its memory and processes included.
func (p Policy) WithBrowser() Policy {
	p.Browser = true
	p.Limits.Memory, p.Limits.Processes = max(p.Limits.Memory, browserMemory), max(p.Limits.Processes, browserProcesses)
	return p
}
