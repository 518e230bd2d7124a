//go:build !linux

package sandbox

type facts struct{}

func Main(args []string) (code int, handled bool) { return 0, false }

func (s *Sandbox) choose(mode Mode) error {
	return &UnenforceableError{What: "mode " + quote(string(mode)), Why: "there is no such back end"}
}

func (s *Sandbox) begin(p Policy, c Command, path string, pipes *pipes) (*child, func() []Denial, error) {
	ch, err := spawn(path, c, pipes.theirs, p.Limits)
	return ch, nil, err
}

func (s *Sandbox) refuses(Policy) error      { return nil }
func (s *Sandbox) allText(Policy) string     { return "every host" }
func (s *Sandbox) notHeld(p Policy) []string { return limitsNotHeld(p.Limits) }
