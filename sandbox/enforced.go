package sandbox

// plainSentence is what the plain start enforces, in words for a person.
const plainSentence = "nothing is enforced yet: it can read your files and use the network like any program you start"

// Enforced tells what holds here for p. It starts nothing.
func (s *Sandbox) Enforced(p Policy) Enforcement {
	e := Enforcement{Mode: s.mode, Sentence: plainSentence}
	e.NotHeld = append(e.NotHeld, "files: it can read and write all that you can")
	if !p.Network.All || !p.Loopback {
		e.NotHeld = append(e.NotHeld, "network: it can reach every address that you can")
	}
	e.NotHeld = append(e.NotHeld, limitsNotHeld(p.Limits)...)
	return e
}
