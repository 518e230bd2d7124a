package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/sandbox"
)

const (
	// peerGrace is what the launcher gets to end when its client is done.
	peerGrace = 2 * time.Second
	// peerAnswer bounds one line of the launcher, which passes lines up to 64 MiB
	// on and says so in a line.
	peerAnswer = 65 << 20
	// tailLines is how much of the launcher's standard error a failure shows.
	tailLines = 5
	tailBytes = 8 << 10
)

// ownClient is a session with an activation through `run` of this very program:
// what a client would see, with every guard in force.
type ownClient struct {
	process *sandbox.Process
	lines   *bufio.Reader
	tail    tailText
	drained chan struct{}
	last    int // id of the last request
}

var errLate = errors.New("it did not answer in time")

// rpcError is an answer that is an error.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Code string `json:"code"`
	} `json:"data"`
}

func (e *rpcError) Error() string { return e.Message }

// lostError says that the launcher ended, or did not answer in time.
type lostError struct {
	name string
	err  error
	tail []string // the last lines of its standard error
	code int      // its exit code; -1 where it did not end by itself
}

func (e *lostError) Error() string { return fmt.Sprintf("asking %q: %v", e.name, e.err) }
func (e *lostError) Unwrap() error { return e.err }

// whyNot finds out why a launcher refused to start. It knows fewer exit codes than other
// commands do (launcher.md section 1), so what kept it is looked for again, here.
func (a *app) whyNot(ctx context.Context, home, name string, err error) error {
	lost, is := errors.AsType[*lostError](err)
	if !is || lost.code != exitUsage {
		return err
	}
	act, why := a.activator(home)
	if why == nil {
		var start *activate.Start
		if start, why = act.Prepare(ctx, name); why == nil {
			start.Done()
			start.Release()
			return err // it is gone, or it was the sandbox that started nothing
		}
	}
	if _, changed := errors.AsType[*install.ChangedError](why); changed {
		why = withHint(why, "repair it with %s verify %s", program, name)
	}
	if code, _ := classify(why); code != exitInterrupted && code != exitFailed {
		lost.err, lost.code = why, code
	}
	return err
}

// openSession starts `run NAME` and completes the handshake.
func (a *app) openSession(ctx context.Context, home, name string) (*ownClient, error) {
	self, err := a.self()
	if err != nil {
		return nil, err
	}
	plain, err := sandbox.New(sandbox.None) // it is this program, which opens the sandbox
	if err != nil {
		return nil, err
	}
	argv := []string{self, "run", name, "--home", home}
	if a.keystoreFlag != "" {
		argv = append(argv, "--keystore", a.keystoreFlag)
	}
	p, err := plain.Start(context.WithoutCancel(ctx), sandbox.Policy{}, sandbox.Command{Argv: argv, Dir: home, Env: a.environ})
	if err != nil {
		return nil, err
	}
	c := &ownClient{process: p, lines: bufio.NewReaderSize(p.Stdout, 64<<10), drained: make(chan struct{})}
	go func() {
		defer close(c.drained)
		_, _ = io.Copy(&c.tail, p.Stderr)
	}()
	_, err = c.ask(ctx, name, "initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"skald-connectors","version":"1"}}`))
	if err == nil {
		err = c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err != nil {
		err = c.failed(name, err)
		c.close()
		return nil, err
	}
	return c, nil
}

// failed is for an answer that was not to be an error: why the launcher gave it stands
// in its last words.
func (c *ownClient) failed(name string, err error) error {
	if refused, is := errors.AsType[*rpcError](err); is {
		return c.lost(name, refused)
	}
	return err
}

func (c *ownClient) send(msg any) error {
	line, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	_, err = c.process.Stdin.Write(append(line, '\n'))
	return err
}

// ask sends one request and waits for its answer. Errors: *rpcError, *lostError,
// the cause of ctx.
func (c *ownClient) ask(ctx context.Context, name, method string, params json.RawMessage) (json.RawMessage, error) {
	c.last++
	type answer struct {
		result json.RawMessage
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		_ = c.send(map[string]any{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params}) // the reading says more
		result, err := c.read(c.last)
		got <- answer{result, err}
	}()
	var ended *rpcError
	select {
	case r := <-got:
		if r.err == nil || errors.As(r.err, &ended) {
			return r.result, r.err
		}
		return nil, c.lost(name, r.err)
	case <-ctx.Done():
		err := c.lost(name, errLate)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
}

// lost ends the launcher and tells its last words.
func (c *ownClient) lost(name string, cause error) error {
	grace := peerGrace
	if cause == errLate {
		grace = 0 // nothing is waited for any more
	}
	end := c.end(grace)
	e := &lostError{name: name, err: cause, tail: c.tail.lines(), code: end.Code}
	if end.Signal != "" {
		e.code = -1
	}
	_, answered := errors.AsType[*rpcError](cause)
	if (errors.Is(cause, io.EOF) || answered && end.Code > 0) && len(e.tail) > 0 {
		e.err = errors.New(strings.TrimPrefix(e.tail[len(e.tail)-1], program+": ")) // the one line that says why
		e.tail = e.tail[:len(e.tail)-1]
	}
	return e
}

// read reads past everything that is not the answer.
func (c *ownClient) read(id int) (json.RawMessage, error) {
	for {
		line, err := readAnswerLine(c.lines)
		if err != nil {
			return nil, err
		}
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *rpcError       `json:"error"`
		}
		if json.Unmarshal(line, &msg) != nil || msg.Method != "" || string(msg.ID) != fmt.Sprint(id) {
			if msg.Method != "" && msg.ID != nil { // a question of the connector's: this client answers none
				_ = c.send(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "error": map[string]any{"code": -32601, "message": "not supported by this client"}})
			}
			continue
		}
		if msg.Error != nil {
			return nil, msg.Error
		}
		return msg.Result, nil
	}
}

func readAnswerLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > peerAnswer:
			return nil, errors.New("its answer is too long")
		}
	}
}

func (c *ownClient) close() sandbox.Result { return c.end(peerGrace) }

// end ends the session and, within the grace, the launcher; then it is told to end. It gets the grace beyond its own ladder: a
// kill could lose a credential that is just being renewed.
func (c *ownClient) end(grace time.Duration) sandbox.Result {
	end := c.process.Close(sandbox.Ladder{Stdin: grace, Term: sessionLadder.Stdin + sessionLadder.Term + peerGrace})
	<-c.drained
	return end
}

// tailText keeps the end of what is written to it.
type tailText struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tailText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tailText) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for line := range bytes.Lines(bytes.TrimSpace(t.kept)) {
		out = append(out, form.Clean(strings.TrimRight(string(line), "\r\n")))
	}
	return out[max(0, len(out)-tailLines):]
}
