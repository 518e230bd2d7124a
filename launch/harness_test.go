package launch

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skald-connectors/internal/tooldef"
	"skald-connectors/keystore"
)

// memory is a pipe in memory. With a limit, a writer waits for the reader.
type memory struct {
	mu     sync.Mutex
	turn   *sync.Cond
	buf    []byte
	limit  int
	closed bool
}

func newMemory(limit int) *memory {
	m := &memory{limit: limit}
	m.turn = sync.NewCond(&m.mu)
	return m
}

func (m *memory) Write(p []byte) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(p) > 0 {
		for m.limit > 0 && len(m.buf) >= m.limit && !m.closed {
			m.turn.Wait()
		}
		if m.closed {
			return n, io.ErrClosedPipe
		}
		part := p
		if m.limit > 0 {
			part = p[:min(len(p), m.limit-len(m.buf))]
		}
		m.buf = append(m.buf, part...)
		p, n = p[len(part):], n+len(part)
		m.turn.Broadcast()
	}
	return n, nil
}

func (m *memory) Read(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.buf) == 0 && !m.closed {
		m.turn.Wait()
	}
	if len(m.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.buf)
	if m.buf = m.buf[n:]; len(m.buf) == 0 {
		m.buf = nil
	}
	m.turn.Broadcast()
	return n, nil
}

// Close ends both sides: what is in the pipe can still be read.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.turn.Broadcast()
	return nil
}

// taken gives what is in the pipe, and empties it.
func (m *memory) taken() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := string(m.buf)
	m.buf = nil
	m.turn.Broadcast()
	return out
}

// upstream is a connector that the test plays.
type upstream struct {
	in, out, errs *memory
	stopped       bool
}

func newUpstream() *upstream { return &upstream{newMemory(0), newMemory(0), newMemory(0), false} }

func (u *upstream) given() *Upstream {
	return &Upstream{Input: u.in, Output: u.out, Errors: u.errs, Stop: func() {
		u.stopped = true
		u.in.Close()
		u.out.Close()
		u.errs.Close()
	}}
}

// bench is one session with everything around it in memory.
type bench struct {
	t                          *testing.T
	s                          *Session
	client, out, log, receipts *memory
	up                         *upstream
	done                       chan Outcome
}

func options(hs ...keystore.Handle) Options {
	return Options{Name: "mail", Connector: "imap", Version: "1.2.3", Now: time.Now, Redactor: keystore.NewRedactor(hs),
		Parking: Parking{State: "unauthorized", Code: AuthRequired, Message: "connector mail has no credentials; run: skald-connectors auth mail"}}
}

// begin starts a session with an upstream, or a parked one.
func begin(t *testing.T, o Options, parked bool) *bench {
	t.Helper()
	b := &bench{t: t, client: newMemory(0), out: newMemory(0), log: newMemory(0), receipts: newMemory(0), up: newUpstream(), done: make(chan Outcome, 1)}
	o.Client, o.Out, o.Log, o.Receipts = b.client, b.out, b.log, b.receipts
	if !parked && o.Upstream == nil {
		o.Upstream = b.up.given()
	}
	b.s = New(o)
	go func() { b.done <- b.s.Run(context.Background()) }()
	t.Cleanup(func() { // so that a test that fails says why
		for _, m := range []*memory{b.client, b.out, b.log, b.receipts, b.up.in, b.up.out, b.up.errs} {
			m.Close()
		}
	})
	return b
}

// send is the client's line; it gives what the upstream got.
func (b *bench) send(line string) string {
	io.WriteString(b.client, line+"\n")
	synctest.Wait()
	return b.up.in.taken()
}

// serve is the upstream's line; it gives what the client got.
func (b *bench) serve(line string) string {
	io.WriteString(b.up.out, line+"\n")
	synctest.Wait()
	return b.out.taken()
}

// greet completes initialize for a connector with the given capabilities.
func (b *bench) greet(capabilities string) {
	b.t.Helper()
	b.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	b.serve(`{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `}}`)
	b.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// end closes the client's input and gives the outcome.
func (b *bench) end() Outcome {
	b.t.Helper()
	b.client.Close()
	select {
	case o := <-b.done:
		return o
	case <-time.After(time.Hour): // of the bubble's time
		b.t.Fatal("the session does not end")
		return Outcome{}
	}
}

// logged gives the log so far.
func (b *bench) logged() string {
	time.Sleep(2 * sinkDelay) // of the bubble's time
	synctest.Wait()
	return b.log.taken()
}

func accepted(t *testing.T, defs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, def := range defs {
		tool, err := tooldef.Parse([]byte(def))
		if err != nil {
			t.Fatal(err)
		}
		out[tool.Name] = tool.Digest
	}
	return out
}

func handle(name, value string) keystore.Handle {
	return keystore.Handle{Name: name, Value: keystore.NewSecret(value), Secret: true}
}

// linesOf takes text apart, without the ends.
func linesOf(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// steady makes what is random in a text always the same.
func (b *bench) steady(text string) string {
	return string(bytes.ReplaceAll([]byte(text), []byte(b.s.ownID), []byte("OWN/")))
}
