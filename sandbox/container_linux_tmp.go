package sandbox

func (s *Sandbox) beginContainer(p Policy, c Command, path string, pipes *pipes) (*child, func() []Denial, error) {
	return nil, nil, nil
}
