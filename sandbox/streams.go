package sandbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// afterEnd bounds the bytes that are read from a stream after the process has
// ended: the most that an unprivileged pipe holds. More is a survivor writing.
const afterEnd = 1 << 20

// tail is a writer that keeps the last bytes written to it.
type tail struct {
	limit int
	buf   []byte // up to twice the limit, so that moving is rare
	cut   bool
}

// newTail keeps limit bytes; 0 means def, a negative limit keeps nothing.
func newTail(limit, def int64) *tail {
	if limit == 0 {
		limit = def
	}
	return &tail{limit: int(max(limit, 0))}
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.limit {
		p = p[len(p)-t.limit:]
		t.buf, t.cut = t.buf[:0], true
	}
	if len(t.buf)+len(p) > 2*t.limit {
		keep := t.limit - len(p)
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
		t.cut = true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// bytes returns what was kept and whether something was dropped.
func (t *tail) bytes() ([]byte, bool) {
	if over := len(t.buf) - t.limit; over > 0 {
		return t.buf[over:], true
	}
	return t.buf, t.cut
}

// output is a stream of a started process. It ends when all writers are gone,
// and soon after the process is over even when a survivor holds the other end;
// bytes that were written before are never lost.
type output struct {
	f     *os.File
	over  <-chan struct{}
	extra int // bytes read after the end
}

func (o *output) Read(p []byte) (int, error) {
	ended := false
	select {
	case <-o.over:
		ended = true
		_ = o.f.SetReadDeadline(time.Now().Add(drainWait))
	default:
	}
	if o.extra > afterEnd {
		return 0, io.EOF
	}
	n, err := o.f.Read(p)
	if ended {
		o.extra += n
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (o *output) Close() error { return o.f.Close() }

// SyscallConn is that of the pipe, for who sets its size or asks who is at its
// other end.
func (o *output) SyscallConn() (syscall.RawConn, error) { return o.f.SyscallConn() }

// pipes are the three streams, both ends.
type pipes struct {
	ours, theirs [3]*os.File
}

// openPipes makes the streams of one process; without stdin its input is the
// null device.
func openPipes(stdin bool) (*pipes, error) {
	p := &pipes{}
	for i := range p.ours {
		r, w, err := openPipe(i, stdin)
		if err != nil {
			p.closeTheirs()
			p.closeOurs()
			return nil, err
		}
		p.ours[i], p.theirs[i] = w, r
		if i > 0 {
			p.ours[i], p.theirs[i] = r, w
		}
	}
	return p, nil
}

func openPipe(i int, stdin bool) (r, w *os.File, err error) {
	if i == 0 && !stdin {
		r, err = os.Open(os.DevNull)
		return r, nil, err
	}
	return os.Pipe()
}

func (p *pipes) closeOurs()   { closeAll(p.ours) }
func (p *pipes) closeTheirs() { closeAll(p.theirs) }

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
