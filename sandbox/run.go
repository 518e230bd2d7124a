package sandbox

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Defaults of Limits; the sizes are those of format.md 8.
const (
	defaultWall   = 2 * time.Minute // the longest time a verify may ask for
	defaultGrace  = 2 * time.Second // launcher.md 5
	defaultStdout = 1 << 20
	defaultStderr = 64 << 10
)

// filled puts the default grace in place; the wall limit has a default only in
// Run.
func (l Limits) filled() Limits {
	if l.Grace == 0 {
		l.Grace = defaultGrace
	}
	return l
}

// Run starts c, feeds it stdin (nil = empty input) and returns when nothing of
// it is left: at the latest after Limits.Wall, Limits.Grace and a few seconds
// for the kernel. When the process has ended, what it left behind may write for
// half a second more, then it is ended too. A process that ends badly or at the
// limit is a Result, not an error. Errors: *StartError, *UnenforceableError, and
// the cause of ctx when that ended the process. A stdin that never returns from
// Read is left behind, not waited for.
func (s *Sandbox) Run(ctx context.Context, p Policy, c Command, stdin io.Reader) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("running %q: %w", program(c), context.Cause(ctx))
	}
	if p.Limits.Wall == 0 {
		p.Limits.Wall = defaultWall
	}
	l := p.Limits
	proc, err := s.launch(p, c, stdin != nil)
	if err != nil {
		return Result{}, err
	}
	if stdin != nil {
		go func() {
			_, _ = io.Copy(proc.streams[0], stdin) // the process may end before its input does
			proc.closeStdin()
		}()
	}
	stdout, stderr := newTail(l.Stdout, defaultStdout), newTail(l.Stderr, defaultStderr)
	read := proc.capture(stdout, stderr)
	proc.watch(ctx)
	<-read // bounded by the read deadline that finish has set
	r := proc.result
	r.Stdout, r.StdoutCut = stdout.bytes()
	r.Stderr, r.StderrCut = stderr.bytes()
	if r.Code != 0 {
		r.Denied = append(r.Denied, s.Explain(p, c, append(append([]byte(nil), r.Stdout...), r.Stderr...))...)
	}
	if proc.cancelled {
		return r, fmt.Errorf("running %q: %w", program(c), context.Cause(ctx))
	}
	return r, nil
}

// capture reads both streams to their end. It returns a channel that is closed
// then, and makes finish wait for it a little before it sweeps.
func (p *Process) capture(stdout, stderr *tail) <-chan struct{} {
	var wg sync.WaitGroup
	for i, t := range []*tail{stdout, stderr} {
		f := p.streams[i+1]
		wg.Go(func() {
			_, _ = io.Copy(struct{ io.Writer }{t}, f) // ends at EOF or at the deadline
			_ = f.Close()
		})
	}
	read := make(chan struct{})
	go func() { wg.Wait(); close(read) }()
	p.drain = func() {
		select {
		case <-read:
		case <-p.hurry:
		case <-time.After(drainWait):
		}
	}
	return read
}
