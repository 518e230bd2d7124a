package sandbox

import "slices"

// refuses tells what of p cannot be held by the chosen back end, as an
// *UnenforceableError, or nil.
func (s *Sandbox) refuses(p Policy) error {
	if err := p.reaches(); err != nil {
		return err
	}
	if _, err := parseHosts(p.Network.Hosts); err != nil {
		return err
	}
	if onlyLoopback(p) && s.facts.Watch != "" {
		return &UnenforceableError{What: "network only to this machine itself", Why: s.facts.Watch}
	}
	if needsUnix(p) && s.facts.Watch != "" {
		return &UnenforceableError{What: "one agent socket, or those of a browser, and no other", Why: s.facts.Watch}
	}
	if s.mode != Landlock {
		return nil
	}
	because := "Landlock gives no network of its own to filter, and bubblewrap does not work here: " + s.facts.Bwrap
	if s.facts.Bwrap == "" {
		because = "Landlock alone gives no network of its own to filter"
	}
	if !p.Network.All && len(p.Network.Hosts) > 0 {
		return &UnenforceableError{What: "network only to " + listed(p.Network.Hosts), Why: because}
	}
	if p.Browser {
		return &UnenforceableError{What: "a browser that confines its own pages", Why: "Landlock alone gives it no list of its own processes"}
	}
	if p.Agent != "" {
		return &UnenforceableError{What: "one agent socket and no other", Why: "Landlock does not tell sockets apart"}
	}
	return nil
}

// allText says what an open network excludes.
func (s *Sandbox) allText(p Policy) string {
	switch {
	case s.facts.Watch != "":
		return "every host"
	case p.Loopback:
		return "every host but link-local and metadata addresses"
	}
	if here := listed(slices.DeleteFunc(slices.Clone(p.Network.Hosts), func(h string) bool { return !namesThisMachine(h) })); here != "" {
		return "every host but link-local and metadata addresses, of this machine only to " + here
	}
	return "every host but this machine, link-local and metadata addresses"
}

// namesThisMachine tells whether "host:port" is an address of this machine.
func namesThisMachine(host string) bool {
	r, err := parseHost(host)
	return err == nil && (r.name == "localhost" && !r.below || r.prefix.IsValid() && r.prefix.Addr().IsLoopback() && r.prefix.IsSingleIP())
}

// notHeld lists what of p the chosen back end does not hold.
func (s *Sandbox) notHeld(p Policy) []string {
	var list []string
	switch {
	case !p.Network.All:
	case s.facts.Watch == "":
		list = append(list, "network: single datagrams (UDP) are not looked at, wherever they go")
	default:
		list = append(list, "network: link-local and metadata addresses can be reached")
		if !p.Loopback {
			list = append(list, "network: this machine's own addresses can be reached")
		}
	}
	if s.mode == Landlock {
		list = append(list, "names and attributes of files: it can see whether a file is there, and change the times and permissions of yours")
		if s.facts.Landlock < landlockScope {
			list = append(list, "signals: it can end other programs of yours")
		}
	}
	if p.Limits.Processes > 0 && !countsProcesses() {
		list = append(list, "number of processes: the limit does not bind root")
	}
	if len(p.Own)+len(p.Write) > 0 {
		list = append(list, "disk: each file that it keeps is limited, not their number")
	}
	return list
}
