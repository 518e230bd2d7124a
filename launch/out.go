package launch

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// leftLimit bounds the lines that wait for a writer who is busy. Beyond it
	// whoever brings one waits himself.
	leftLimit = 256 << 10
	// stallLimit: an upstream that takes none of its input for so long has
	// stalled (launcher.md, section 5).
	stallLimit = 30 * time.Second
	// stallTick is how often a writer is looked after while there is any writing.
	// A timer that is set anew for each line would cost more than the line.
	stallTick = 5 * time.Second
)

var errStalled = errors.New("took none of its pending input for 30 s")

// out is a writing end that several goroutines share. Lines never mix. Whoever
// writes also writes the lines that others left meanwhile, so a short answer
// does not have to wait for a slow reader.
type out struct {
	w     io.Writer
	stall *time.Timer // nil: no limit

	mu    sync.Mutex
	turn  sync.Cond
	busy  bool
	left  []byte // whole lines
	spare []byte
	err   error // the first; what is written later is thrown away

	writing bool // under the limit
	ended   bool // a look has ended the write
	armed   bool // stall will look
	count   uint // of writes
	looked  uint // count at the last look
	waited  time.Duration
}

func newOut(w io.Writer, limited bool) *out {
	o := &out{w: w}
	o.turn.L = &o.mu
	if limited {
		o.stall = time.AfterFunc(time.Hour, o.look)
		o.stall.Stop()
	}
	return o
}

// write writes whole lines and waits until they are taken.
func (o *out) write(b []byte) error {
	o.begin()
	o.part(b)
	return o.end()
}

// leave writes whole lines, or leaves them to the one who is writing now.
func (o *out) leave(b []byte) error {
	o.mu.Lock()
	for o.busy && o.err == nil {
		if len(o.left) < leftLimit {
			o.left = append(o.left, b...)
			o.mu.Unlock()
			return nil
		}
		o.turn.Wait()
	}
	o.busy = true
	o.mu.Unlock()
	o.part(b)
	return o.end()
}

// begin takes the turn for a line that is written in parts.
func (o *out) begin() {
	o.mu.Lock()
	for o.busy {
		o.turn.Wait()
	}
	o.busy = true
	o.mu.Unlock()
}

// part writes a part; the caller has the turn. An error is kept for end.
func (o *out) part(b []byte) {
	if len(b) == 0 || o.failed() != nil {
		return
	}
	if err := o.push(b); err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
}

func (o *out) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// end writes what others left and gives the turn away.
func (o *out) end() error {
	o.mu.Lock()
	for len(o.left) > 0 && o.err == nil {
		lines := o.left
		o.left, o.spare = o.spare[:0], nil
		o.mu.Unlock()
		o.part(lines)
		o.mu.Lock()
		o.spare = lines[:0]
		o.turn.Broadcast()
	}
	o.busy = false
	o.turn.Signal()
	err := o.err
	o.mu.Unlock()
	return err
}

// push writes b; with a limit it gives up when nothing is taken for so long.
func (o *out) push(b []byte) error {
	if o.stall == nil {
		_, err := o.w.Write(b)
		return err
	}
	for {
		o.watch(true)
		n, err := o.w.Write(b)
		o.watch(false)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if b = b[n:]; o.waitedOut(n > 0) {
			return errStalled
		}
	}
}

// waitedOut tells, of a write that was interrupted to see how much of it was taken,
// whether that has been nothing for too long.
func (o *out) waitedOut(taken bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if taken {
		o.waited = 0
	} else {
		o.count-- // what follows is the same write
	}
	return o.waited >= stallLimit
}

type deadliner interface{ SetWriteDeadline(time.Time) error }

// watch notes that a write under the limit begins or has ended.
func (o *out) watch(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = on
	if o.ended {
		o.ended = false
		_ = o.w.(deadliner).SetWriteDeadline(time.Time{})
	}
	if !on {
		return
	}
	if o.count++; !o.armed {
		o.armed = true
		o.stall.Reset(stallTick)
	}
}

// look finds out whether the same write has lasted since the last look, and
// rests when there was none.
func (o *out) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	same := o.count == o.looked
	o.looked = o.count
	if !o.writing && same {
		o.armed = false
		return
	}
	if !o.writing || !same {
		o.waited = 0
	} else {
		o.waited += stallTick
		o.interrupt()
	}
	o.stall.Reset(stallTick)
}

// interrupt ends a write that waits: how much of it was taken decides whether it
// begins again. Where a write cannot be ended, the stream is closed when it has
// waited too long. The lock is held.
func (o *out) interrupt() {
	if d, ok := o.w.(deadliner); ok && d.SetWriteDeadline(time.Unix(1, 0)) == nil {
		o.ended = true
		return
	}
	if o.waited < stallLimit {
		return
	}
	o.err = errStalled
	if c, ok := o.w.(io.Closer); ok {
		go c.Close() // it may wait for the write
	}
}
