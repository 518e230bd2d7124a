package sandbox

func (s *Sandbox) openContainer() error { return nil }
