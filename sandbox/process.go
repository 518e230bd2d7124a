package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// drainWait is how long output may still arrive when the process has ended:
	// enough for what is in flight, too short to be felt.
	drainWait = 500 * time.Millisecond
	// killWait bounds the wait for the kernel after KILL; only a process stuck in
	// a driver or on a dead network disk takes longer.
	killWait = 5 * time.Second
	// firstPause and lastPause bound the pauses between two looks at the tree.
	firstPause, lastPause = time.Millisecond, 50 * time.Millisecond
)

// Process is a started process with its three streams. The caller reads Stdout
// and Stderr until io.EOF (a stream that nobody reads blocks the process),
// closes both, and ends with Close.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	Stderr io.ReadCloser

	child   *child
	limits  Limits
	began   time.Time
	streams [3]*os.File     // our ends; the first is nil when standard input is empty
	drain   func()          // set by Run: waits until the output is read, or drainWait
	settle  func() []Denial // takes back what was made for the process; nil for nothing

	mu        sync.Mutex
	termUntil time.Time // end of the grace after TERM; zero before TERM

	timedOut, cancelled bool // set by watch: what made it climb

	hurryOnce sync.Once
	hurry     chan struct{} // closed when there is no more grace
	over      chan struct{} // closed when result is set
	result    Result
}

// Start starts c and returns at once. ctx ends the process by the same ladder
// as the wall limit (TERM, Limits.Grace, KILL). Errors: *StartError when it
// cannot start, *UnenforceableError when a limit cannot be set.
func (s *Sandbox) Start(ctx context.Context, p Policy, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %q: %w", program(c), err)
	}
	proc, err := s.launch(p, c, true)
	if err != nil {
		return nil, err
	}
	proc.Stdin = proc.streams[0]
	proc.Stdout = &output{f: proc.streams[1], over: proc.over}
	proc.Stderr = &output{f: proc.streams[2], over: proc.over}
	go proc.watch(ctx)
	return proc, nil
}

// Wait returns when the process has ended and nothing of its tree is left, or
// could not be ended (Result.Left).
func (p *Process) Wait() Result {
	<-p.over
	return p.result
}

// Close ends the process: it closes Stdin and waits, sends TERM to the whole
// tree and waits, then KILL; what the process leaves behind gets the wait after
// TERM too. It returns within twice that wait and a few seconds for the kernel.
// It may be called again: a second call with the zero Ladder makes an end at
// once.
func (p *Process) Close(l Ladder) Result {
	p.closeStdin()
	p.climb(l)
	if !p.overWithin(l.Term) {
		p.kill()
	}
	if !p.overWithin(drainWait + 2*killWait) {
		return Result{Code: -1, Elapsed: time.Since(p.began), Left: 1}
	}
	return p.result
}

// overWithin waits up to d until the result is set.
func (p *Process) overWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.over:
		return true
	case <-timer.C:
		return false
	}
}

// launch starts c with three pipes; stdin=false gives it an empty input.
// Nothing watches the process yet.
func (s *Sandbox) launch(p Policy, c Command, stdin bool) (*Process, error) {
	path := ""
	if s.mode != Container { // which looks its programs up itself
		var err error
		if path, err = resolve(c); err != nil {
			return nil, err
		}
	} else if problem := unusableAnywhere(c); problem != "" {
		return nil, &StartError{Program: program(c), Problem: problem, Err: errCommand}
	}
	pipes, err := openPipes(stdin)
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", program(c), err)
	}
	began := time.Now()
	var ch *child
	var settle func() []Denial
	switch s.mode {
	case None:
		ch, err = spawn(path, c, pipes.theirs, p.Limits)
	case Container:
		ch, settle, err = s.beginContainer(p, c, pipes)
	default:
		ch, settle, err = s.begin(p, c, path, pipes)
	}
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, err
	}
	return &Process{child: ch, limits: p.Limits.filled(), began: began, streams: pipes.ours, settle: settle,
		hurry: make(chan struct{}), over: make(chan struct{})}, nil
}

// watch sees the process to its end and sets the result.
func (p *Process) watch(ctx context.Context) {
	var wall <-chan time.Time
	if p.limits.Wall > 0 {
		timer := time.NewTimer(p.limits.Wall)
		defer timer.Stop()
		wall = timer.C
	}
	select {
	case <-p.child.ended:
	case <-wall:
		p.timedOut = true
		p.climb(Ladder{Term: p.limits.Grace})
	case <-ctx.Done():
		p.cancelled = true
		p.climb(Ladder{Term: p.limits.Grace})
	}
	p.finish()
}

// climb takes the steps of l until the started process has ended.
func (p *Process) climb(l Ladder) {
	if p.endsWithin(l.Stdin) {
		return
	}
	if p.endsWithin(p.terminate(l.Term)) {
		return
	}
	p.kill()
	select {
	case <-p.child.ended:
	case <-time.After(killWait):
	}
}

// endsWithin waits up to d for the started process, less when there is no more
// grace.
func (p *Process) endsWithin(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-p.child.ended:
			return true
		default:
			return false
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.child.ended:
		return true
	case <-p.hurry:
	case <-timer.C:
	}
	return false
}

// terminate sends TERM to the tree, once, and returns what is left of the grace:
// a second caller may shorten it but does not start it anew.
func (p *Process) terminate(grace time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.termUntil.IsZero() {
		p.termUntil = time.Now().Add(grace)
		p.child.terminate()
	}
	return min(grace, time.Until(p.termUntil))
}

// kill sends KILL to the tree and ends every grace.
func (p *Process) kill() {
	p.hurryOnce.Do(func() { close(p.hurry) })
	p.child.kill()
}

// finish ends what is left of the tree, reaps, and publishes the result.
func (p *Process) finish() {
	if p.drain != nil {
		p.drain()
	}
	r := Result{Code: -1, TimedOut: p.timedOut, Left: p.sweep()}
	select {
	case <-p.child.ended:
		r.Code, r.Signal = p.child.reap()
	default:
		r.Left++
	}
	if p.settle != nil {
		r.Denied = p.settle()
	}
	r.Elapsed = time.Since(p.began)
	p.closeStdin()
	for _, f := range p.streams[1:] {
		// A survivor may hold the other end: no reader waits for it.
		_ = f.SetReadDeadline(time.Now().Add(drainWait))
	}
	p.result = r
	close(p.over)
}

// sweep ends the processes that the started one left behind: TERM, the rest of
// the grace, KILL until none is found. It returns how many could not be ended.
func (p *Process) sweep() int {
	if p.child.others() == 0 {
		return 0
	}
	if grace := p.terminate(p.limits.Grace); grace > 0 && p.noneWithin(grace, p.hurry, nil) {
		return 0
	}
	p.noneWithin(killWait, nil, p.kill)
	return p.child.others()
}

// noneWithin calls each (when given) and looks whether the tree is empty, again
// and again until it is, d has passed, or stop is closed.
func (p *Process) noneWithin(d time.Duration, stop <-chan struct{}, each func()) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if each != nil {
			each()
		}
		if p.child.others() == 0 {
			return true
		}
		select {
		case <-end.C:
			return false
		case <-stop:
			return false
		case <-time.After(pause):
		}
	}
}

func (p *Process) closeStdin() {
	if p.streams[0] != nil {
		_ = p.streams[0].Close() // a second close is no fault here
	}
}
