package sandbox

import (
	"slices"
	"strings"
)

// plainSentence is what the plain start enforces, in words for a person.
const plainSentence = "nothing is enforced: it can read your files and use the network like any program you start"

// jobSentence is what a job and a restricted token enforce.
const jobSentence = "it has no administrator's rights and ends with this program; it can read your files and use the network like any program you start"

// Enforced tells what holds here for p. It starts nothing.
func (s *Sandbox) Enforced(p Policy) Enforcement {
	e := Enforcement{Mode: s.mode}
	if s.mode == None {
		e.Sentence = plainSentence
		e.NotHeld = append(e.NotHeld, "files: it can read and write all that you can")
		if !p.Network.All || !p.Loopback {
			e.NotHeld = append(e.NotHeld, "network: it can reach every address that you can")
		}
		e.NotHeld = append(e.NotHeld, limitsNotHeld(p.Limits)...)
		return e
	}
	if s.mode == Container {
		if err := containerRefuses(p); err != nil {
			e.Sentence = "it is not started here: " + err.Error()
			return e
		}
		e.Sentence, e.NotHeld = s.containerText(), containerNotHeld()
		return e
	}
	if err := s.refuses(p); err != nil {
		e.Sentence = "it is not started here: " + err.Error()
		return e
	}
	if s.mode == Job {
		e.Sentence, e.NotHeld = jobSentence, s.notHeld(p)
		return e
	}
	e.Sentence = strings.Join(append([]string{filesText(p)}, s.networkText(p), grantsText(p)), "")
	e.NotHeld = s.notHeld(p)
	return e
}

// Check tells what of p would be refused at the start here, as an
// *UnenforceableError, or nil. It starts nothing and asks nothing of paths that are
// not there yet.
func (s *Sandbox) Check(p Policy) error {
	switch s.mode {
	case None:
		return nil
	case Container:
		return containerRefuses(p)
	}
	return s.refuses(p)
}

// filesText says what of the person's files is open.
func filesText(p Policy) string {
	switch read, write := listed(p.Read), listed(p.Write); {
	case read == "" && write == "":
		return "no access to your files"
	case write == "":
		return "of your files it reads only " + read
	case read == "":
		return "of your files it reads and changes only " + write
	default:
		return "of your files it reads only " + read + " and changes only " + write
	}
}

func (s *Sandbox) networkText(p Policy) string {
	hosts := slices.Clone(p.Network.Hosts)
	switch {
	case p.Network.All:
		return ", network to " + s.allText(p)
	case p.Loopback && len(hosts) == 0:
		return ", network only to this machine itself"
	case len(hosts) == 0:
		return ", no network"
	}
	return ", network only to " + listed(hosts)
}

func grantsText(p Policy) string {
	text := ""
	if p.Browser {
		text += ", a browser may confine its own pages"
	}
	if p.Agent != "" {
		text += ", it may ask your SSH agent to sign"
	}
	return text
}

// listed joins words: "a", "a and b", "a, b and c".
func listed(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
