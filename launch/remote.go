package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"skald-connectors/keystore"
)

const (
	// remoteCalls bounds the requests that are under way at a remote connector.
	remoteCalls = 128
	// remotePatience bounds the wait for anything new of one answer: calls take
	// minutes, and a connection that died in silence must not wait for ever.
	remotePatience = 10 * time.Minute
	// remoteQueue bounds the lines that wait to be sent.
	remoteQueue = 16
	// noticeLimit bounds a POST that only has to be accepted.
	noticeLimit = 10 * time.Second
	// goodbyeLimit bounds the DELETE at the end.
	goodbyeLimit = 2 * time.Second
	// firstPause and lastPause bound the pauses between two tries of a stream.
	firstPause, lastPause = time.Second, 30 * time.Second
	// resumeTries bounds the tries to get the rest of one answer.
	resumeTries = 5
)

// Remote is a connector behind a URL (MCP 2025-11-25, "Streamable HTTP", or
// the older HTTP+SSE).
type Remote struct {
	URL    string      // every token filled
	Header http.Header // every token filled
	// Client has the policy for proxies, certificates and addresses. Its
	// redirects are not followed: they would carry the headers elsewhere.
	Client *http.Client
	Legacy bool // HTTP+SSE
	// Refresh is asked after a 401 for the headers of a new try; nil or an error:
	// there is no other credential.
	Refresh func(ctx context.Context) (http.Header, error)
	// Refused is called when the credential is not taken: the session is to be
	// parked. It is called in a goroutine of its own.
	Refused  func()
	Redactor *keystore.Redactor // of the session's upstream; may be nil
}

// Connect makes an Upstream of a remote connector. Nothing is sent before its
// first line.
func (r Remote) Connect() *Upstream {
	ctx, cancel := context.WithCancel(context.Background())
	client := *r.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &remote{Remote: r, ctx: ctx, cancel: cancel, http: &client, header: r.Header.Clone(),
		queue: make(chan []byte, remoteQueue), slots: make(chan struct{}, remoteCalls), endpoint: make(chan string, 1)}
	c.reader, c.writer = io.Pipe()
	c.work.Go(c.sendAll)
	if r.Legacy {
		c.work.Go(c.listenLegacy)
	}
	return &Upstream{Input: c, Output: c.reader, Stop: c.stop, Redactor: r.Redactor}
}

// remote is the connection: lines in, lines out, HTTP between.
type remote struct {
	Remote
	ctx      context.Context
	cancel   context.CancelFunc
	http     *http.Client
	reader   *io.PipeReader
	writer   *io.PipeWriter
	work     sync.WaitGroup
	queue    chan []byte
	slots    chan struct{}
	part     []byte      // of a line that is not whole yet
	endpoint chan string // of HTTP+SSE: the URL for messages

	mu        sync.Mutex
	header    http.Header
	session   string
	protocol  string
	greeting  []byte // the client's initialize
	wishes    wishes // for a new session
	capable   capable
	listening bool
	over      bool

	renewing sync.Mutex
}

var errRemoteOver = errors.New("the connection to the connector is closed")

// Write takes lines.
func (c *remote) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		c.part = append(c.part, part...)
		if part[len(part)-1] != '\n' {
			break
		}
		line := bytes.TrimSpace(c.part)
		c.part = nil
		if len(line) == 0 {
			continue
		}
		select {
		case c.queue <- line:
		case <-c.ctx.Done():
			return 0, errRemoteOver
		}
	}
	return len(b), nil
}

// sendAll sends what was written, in its order.
func (c *remote) sendAll() {
	for {
		select {
		case line := <-c.queue:
			c.dispatch(line)
		case <-c.ctx.Done():
			return
		}
	}
}

// Close ends the input. What is under way goes on until the connector is stopped.
func (c *remote) Close() error { return nil }

// dispatch sends one line. Requests go out side by side; everything else is
// waited for until it is accepted, so that the order is kept where it matters.
func (c *remote) dispatch(line []byte) {
	var s scanner
	s.scan(line) // the filter has judged it
	name, _ := s.text(line, fieldMethod)
	m := &outgoing{line: line, method: methodOf(name)}
	if s.shape() == request {
		m.id, m.said = append([]byte(nil), s.raw(line, fieldID)...), wish(m.method, &s, line)
	}
	switch {
	case m.method == initialize:
		c.mu.Lock()
		c.greeting = line
		c.mu.Unlock()
		c.exchange(m)
	case m.id == nil:
		c.exchange(m)
	default:
		select {
		case c.slots <- struct{}{}:
			c.spawn(func() {
				defer func() { <-c.slots }()
				c.exchange(m)
			})
		default:
			c.fail(m, "too many requests are under way")
		}
	}
	if m.method == initialized && !c.Legacy {
		c.listen()
	}
}

// spawn starts a piece of work, unless the connection is over.
func (c *remote) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.work.Go(f)
	}
}

// outgoing is one message on its way to the connector. id is nil for what has
// no answer.
type outgoing struct {
	line     []byte
	id       []byte
	method   method
	said     []byte // what is remembered beyond the answer, see wish
	answered bool
	quiet    bool // its answer is not for the client
}

// fail answers a request whose answer will not come.
func (c *remote) fail(m *outgoing, why string) {
	if m.id != nil && !m.answered && !m.quiet && c.ctx.Err() == nil {
		m.answered = true
		c.deliver(appendError(nil, m.id, internalError, why, codeInternal))
	}
}

// deliver writes one line to the filter. Line ends inside are white space of the
// JSON: they become spaces.
func (c *remote) deliver(message []byte) {
	if message = bytes.TrimSpace(message); len(message) == 0 {
		return // an event that only says its id
	}
	line := make([]byte, 0, len(message)+1)
	for _, b := range message {
		if b == '\n' || b == '\r' {
			b = ' '
		}
		line = append(line, b)
	}
	_, _ = c.writer.Write(append(line, '\n')) // fails when the session is over
}

// once sends a message and reads what comes back to its end. Statuses that
// the caller deals with are given back.
func (c *remote) once(m *outgoing) (status int, err error) {
	limit := remotePatience
	if m.id == nil {
		limit = noticeLimit
	}
	ctx, p := newPatience(c.ctx, limit)
	defer p.stop()
	target, err := c.target(ctx)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(m.line))
	if err != nil {
		return 0, errors.New("the connector's URL cannot be used")
	}
	c.dress(req)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, without(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, c.answer(ctx, m, resp, p)
}

func (c *remote) dress(req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.protocol != "" {
		req.Header.Set("Mcp-Protocol-Version", c.protocol)
	}
}

// without takes the URL, which may have a credential in it, out of an error.
func without(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("reaching the connector: %w", err)
}

// answer reads the body of an answer.
func (c *remote) answer(ctx context.Context, m *outgoing, resp *http.Response, p *patience) error {
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && m.method == initialize {
		c.mu.Lock()
		c.session = id
		c.mu.Unlock()
	}
	kind := resp.Header.Get("Content-Type")
	switch {
	case c.Legacy && resp.StatusCode/100 == 2:
		m.answered = true // it comes over the stream
		return nil
	case strings.HasPrefix(kind, "text/event-stream") && resp.StatusCode/100 == 2:
		return c.events(ctx, m, resp.Body, p)
	case m.id == nil || !strings.HasPrefix(kind, "application/json"),
		resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusNotFound && c.current() != "":
		return nil
	}
	limited := io.LimitReader(p.reader(resp.Body), lineLimit+1)
	body, err := io.ReadAll(limited)
	if err != nil {
		return without(err)
	}
	if len(body) > lineLimit {
		return errLong
	}
	if resp.StatusCode/100 == 2 || answers(body, m) {
		c.received(m, body)
	}
	return nil
}

// answers tells whether the body of an HTTP error is the JSON-RPC answer.
func answers(body []byte, m *outgoing) bool {
	var s scanner
	s.replies = true
	return s.scan(body) && s.shape() == reply && bytes.Equal(s.raw(body, fieldID), m.id)
}

// received looks at one message of the connector and passes it on; m is the
// request whose answer is awaited on this stream, nil for none.
func (c *remote) received(m *outgoing, message []byte) {
	if m == nil || m.id == nil || !answers(message, m) {
		c.deliver(message)
		return
	}
	m.answered = true
	c.learn(m, message)
	if !m.quiet {
		c.deliver(message)
	}
}
