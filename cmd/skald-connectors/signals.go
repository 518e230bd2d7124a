package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// watching is a context whose signals are watched from the first time on that somebody waits for its end.
type watching struct {
	context.Context
	start func()
}

func (w *watching) Done() <-chan struct{} {
	w.start()
	return w.Context.Done()
}

// withSignals cancels the context at the first signal that asks us to end. The
// handler stays: a second signal does not cut the clean-up short. Of what only
// looks something up, signals are watched when it begins to wait, as for the
// network: until then a signal may just end the process, and setting the handler
// up takes a sixth of the time of such a command.
func withSignals(parent context.Context, args []string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch, done := make(chan os.Signal, 1), make(chan struct{})
	var once sync.Once
	start := func() {
		signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		go func() {
			select {
			case <-ch:
				cancel(errInterrupted)
			case <-done:
			}
		}()
	}
	if len(args) == 0 || !slices.Contains([]string{"info", "list", "search", "version"}, args[0]) {
		once.Do(start)
	}
	stop := func() {
		once.Do(func() {}) // who waits from now on watches nothing
		signal.Stop(ch)
		close(done)
		cancel(nil)
	}
	return &watching{ctx, func() { once.Do(start) }}, stop
}
