package sandbox

import "sync"

// mostDenials bounds the list of what a process was refused.
const mostDenials = 64

// denied is a list of refusals, each once.
type denied struct {
	mu   sync.Mutex
	list []Denial
}

func (d *denied) add(x Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, have := range d.list {
		if have == x {
			return
		}
	}
	if len(d.list) < mostDenials {
		d.list = append(d.list, x)
	}
}

func (d *denied) all() []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Denial(nil), d.list...)
}
