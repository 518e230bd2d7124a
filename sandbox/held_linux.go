package sandbox

import "os"

// refuses tells what of p cannot be held by the chosen back end, as an
// *UnenforceableError, or nil.
func (s *Sandbox) refuses(p Policy) error {
	if !p.Network.All {
		if _, err := parseHosts(p.Network.Hosts); err != nil {
			return err
		}
	}
	if s.mode != Landlock {
		return nil
	}
	because := "Landlock gives no network of its own to filter, and bubblewrap does not work here: " + s.facts.Bwrap
	if s.facts.Bwrap == "" {
		because = "Landlock alone gives no network of its own to filter"
	}
	switch {
	case p.Network.All:
	case len(p.Network.Hosts) > 0:
		return &UnenforceableError{What: "network only to " + listed(p.Network.Hosts), Why: because}
	case p.Loopback:
		return &UnenforceableError{What: "network only to this machine itself", Why: because}
	}
	if p.Agent != "" {
		return &UnenforceableError{What: "one agent socket and no other", Why: "Landlock does not tell sockets apart"}
	}
	return nil
}

func (s *Sandbox) allText(p Policy) string { return "every host" }

// notHeld lists what of p the chosen back end does not hold.
func (s *Sandbox) notHeld(p Policy) []string {
	var list []string
	if p.Network.All {
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
	if p.Limits.Processes > 0 && os.Geteuid() == 0 {
		list = append(list, "number of processes: the limit does not bind root")
	}
	return list
}
