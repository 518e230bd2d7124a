package launch

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"skald-connectors/keystore"
)

const (
	// sinkLimit bounds what waits for a log that does not take it; what comes
	// then is counted and dropped.
	sinkLimit = 256 << 10
	// sinkDelay gathers lines, so that a busy session writes its log seldom.
	sinkDelay = 10 * time.Millisecond
	// sinkPatience bounds the wait for the log at the end of the session.
	sinkPatience = time.Second
	// noteLimit cuts a foreign line.
	noteLimit = 4 << 10

	prefix = "skald-connectors: "
)

// sink writes lines in the background, and never makes anyone wait.
type sink struct {
	w     io.Writer
	left  string // the line that says how many are not there
	timer *time.Timer

	mu      sync.Mutex
	pending []byte
	spare   []byte
	armed   bool
	dropped int
	deaf    bool // it took nothing for a moment
	taken   chan struct{}

	writing chan struct{} // one at a time
}

// The lines that stand for those that a log or the file of receipts did not take.
const (
	leftOfLog      = prefix + "%d lines were left out here: this log was not read\n"
	leftOfReceipts = `{"left_out":%d}` + "\n"
)

func newSink(w io.Writer, left string) *sink {
	if w == nil {
		return nil
	}
	k := &sink{w: w, left: left, taken: make(chan struct{}, 1), writing: make(chan struct{}, 1)}
	k.timer = time.AfterFunc(time.Hour, k.flush)
	k.timer.Stop()
	return k
}

func (k *sink) add(line []byte) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pending)+len(line) > sinkLimit {
		k.dropped++
		return
	}
	k.pending = append(k.pending, line...)
	if !k.armed {
		k.armed = true
		k.timer.Reset(sinkDelay)
	}
}

func (k *sink) flush() {
	k.writing <- struct{}{}
	defer func() { <-k.writing }()
	for {
		k.mu.Lock()
		lines, dropped := k.pending, k.dropped
		if len(lines) == 0 {
			k.armed = false
			k.mu.Unlock()
			return
		}
		k.pending, k.spare, k.dropped = k.spare[:0], nil, 0
		k.mu.Unlock()
		n, err := k.w.Write(lines)
		k.mu.Lock()
		k.spare, k.deaf = lines[:0], false
		if err != nil {
			k.dropped += dropped + bytes.Count(lines[max(0, min(n, len(lines))):], []byte{'\n'})
		} else if dropped > 0 {
			k.pending = fmt.Appendf(k.pending, k.left, dropped)
		}
		k.mu.Unlock()
		select {
		case k.taken <- struct{}{}:
		default:
		}
	}
}

// close writes what is there, if that is possible in a moment.
func (k *sink) close() {
	if k == nil {
		return
	}
	k.timer.Stop()
	written := make(chan struct{})
	go func() {
		defer close(written)
		k.flush()
	}()
	patience := time.NewTimer(sinkPatience)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
	}
}

// notes is what the session tells a person: on the log, each line clean and
// without secret values.
type notes struct {
	log      *sink
	receipts *sink
	clean    func(string) string
	tag      string // before the connector's own lines
}

func newNotes(o Options) *notes {
	return &notes{log: newSink(o.Log, leftOfLog), receipts: newSink(o.Receipts, leftOfReceipts), clean: o.Clean, tag: o.Clean(o.Connector) + ": "}
}

func (n *notes) close() {
	n.log.close()
	n.receipts.close()
}

// say writes a note of the launcher's.
func (n *notes) say(r *keystore.Redactor, format string, args ...any) {
	n.put(r, prefix, fmt.Sprintf(format, args...))
}

// quote writes a line of the connector's.
func (n *notes) quote(r *keystore.Redactor, line []byte) {
	n.put(r, n.tag, strings.TrimRight(string(line), "\r\n"))
}

// put takes the values out before it cuts, so that no part of one is left.
func (n *notes) put(r *keystore.Redactor, tag, text string) {
	if r != nil {
		text = r.String(text)
	}
	n.log.add([]byte(tag + n.clean(text[:min(len(text), noteLimit)]) + "\n"))
}

// room waits a moment for a log that is behind, so that a burst is not lost;
// one that does not take anything is not waited for again until it does.
func (k *sink) room() {
	if k == nil {
		return
	}
	k.mu.Lock()
	full := len(k.pending) > sinkLimit/2 && !k.deaf
	if full {
		k.timer.Reset(0)
	}
	k.mu.Unlock()
	if !full {
		return
	}
	patience := time.NewTimer(sinkPatience / 10)
	defer patience.Stop()
	select {
	case <-k.taken:
	case <-patience.C:
		k.mu.Lock()
		k.deaf = true
		k.mu.Unlock()
	}
}

// quoteLines takes the connector's stderr apart into lines.
type quoteLines struct {
	n    *notes
	open []byte
}

func (q *quoteLines) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		q.open = append(q.open, part...)
		if len(q.open) >= noteLimit || part[len(part)-1] == '\n' {
			q.flush()
		}
	}
	return len(p), nil
}

func (q *quoteLines) flush() {
	if len(bytes.TrimSpace(q.open)) > 0 {
		q.n.quote(nil, q.open)
	}
	q.open = q.open[:0]
}

// pumpErrors reads the connector's stderr to its end. It never stops reading:
// a connector whose stderr is full would stop too.
func (s *Session) pumpErrors(l *link) {
	defer s.readers.Done()
	lines := &quoteLines{n: s.notes}
	w := l.redact.Writer(lines)
	buf := make([]byte, 16<<10)
	for {
		n, err := l.Errors.Read(buf)
		_, _ = w.Write(buf[:n]) // into memory
		if err != nil {
			break
		}
		s.notes.log.room()
	}
	_ = w.Close()
	lines.flush()
}
