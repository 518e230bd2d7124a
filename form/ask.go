package form

import "context"

func (t *Terminal) ask(ctx context.Context, title string, entries []*entry) error { return ErrNoTerminal }

func (t *Terminal) askOne(ctx context.Context, title, body string, e *entry) error { return ErrNoTerminal }
