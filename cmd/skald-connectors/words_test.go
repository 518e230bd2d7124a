package main

import (
	"errors"
	"fmt"
	"testing"
)

func TestWords(t *testing.T) {
	a, b := errors.New("a"), errors.New("b\x1b")
	for _, c := range []struct {
		err  error
		want string
	}{
		{a, "a"},
		{errors.New("x\ny"), `x\ny`}, // text of somebody else
		{errors.Join(a, b), `a; b\x1b`},
		{errors.Join(a, fmt.Errorf("in: %w", errors.Join(a, b)), a), `a; in: a; b\x1b`},
		{fmt.Errorf("reading %w", errors.Join(a, errors.New("x\ny"))), `reading a; x\ny`},
		{fmt.Errorf("%w and %w", a, b), `a and b\x1b`},
	} {
		if got := words(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
