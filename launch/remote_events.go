package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// patience ends a request of which nothing new came for a while.
type patience struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelFunc
}

func newPatience(parent context.Context, limit time.Duration) (context.Context, *patience) {
	ctx, cancel := context.WithCancel(parent)
	return ctx, &patience{limit: limit, timer: time.AfterFunc(limit, cancel), cancel: cancel}
}

func (p *patience) stop() {
	p.timer.Stop()
	p.cancel()
}

// reader has the patience begin anew with each byte.
func (p *patience) reader(r io.Reader) io.Reader { return &patient{r, p} }

type patient struct {
	io.Reader
	p *patience
}

func (r *patient) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 && r.p.limit > 0 {
		r.p.timer.Reset(r.p.limit)
	}
	return n, err
}

// eventStream reads server-sent events (WHATWG HTML, section 9.2).
type eventStream struct {
	in    *lines
	last  string        // the newest event id
	retry time.Duration // what the server asks for, 0 = nothing
}

// next gives the next event that has data.
func (e *eventStream) next() (kind string, data []byte, err error) {
	size := 0
	for {
		line, err := e.in.next(lineLimit)
		if err != nil {
			return "", nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if len(data) > 0 {
				return kind, data[:len(data)-1], nil
			}
			kind = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if size += len(value); size > lineLimit {
			return "", nil, errLong
		}
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			data = append(append(data, value...), '\n')
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.last = string(value)
			}
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				e.retry = min(time.Duration(ms)*time.Millisecond, lastPause)
			}
		}
	}
}

// events passes the events of an answer on; when the stream breaks off before
// the answer, it asks for the rest.
func (c *remote) events(ctx context.Context, m *outgoing, body io.Reader, p *patience) error {
	e := &eventStream{in: newLines(p.reader(body)), retry: firstPause}
	for try := 0; ; try++ {
		err := c.drain(e, m)
		if m.id == nil || m.answered || c.ctx.Err() != nil {
			return nil
		}
		if e.last == "" || try == resumeTries {
			if err == nil || err == io.EOF {
				err = errors.New("the connector ended the answer before it was complete")
			}
			return err
		}
		if !c.pause(e.retry) {
			return nil
		}
		p.timer.Reset(p.limit)
		resp, err := c.get(ctx, e.last)
		if err != nil {
			continue
		}
		defer resp.Body.Close()
		e.in = newLines(p.reader(resp.Body))
	}
}

// drain passes events on to the end of the stream, or to the answer to m.
func (c *remote) drain(e *eventStream, m *outgoing) error {
	for {
		kind, data, err := e.next()
		if err != nil {
			return err
		}
		if kind == "" || kind == "message" {
			c.received(m, data)
		}
		if m != nil && m.answered {
			return nil
		}
	}
}

// pause waits; false means that the connection is over.
func (c *remote) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// get opens an event stream; last is the event behind which it is to begin.
func (c *remote) get(ctx context.Context, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return nil, errors.New("the connector's URL cannot be used")
	}
	c.dress(req)
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, without(err)
	}
	if resp.StatusCode/100 != 2 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_ = resp.Body.Close()
		return nil, statusError(resp.StatusCode)
	}
	return resp, nil
}

type statusError int

func (e statusError) Error() string {
	return "the connector answered with HTTP status " + strconv.Itoa(int(e))
}

// listen opens the stream of what the connector says by itself, once a session.
func (c *remote) listen() {
	c.mu.Lock()
	begin := !c.listening
	c.listening = true
	session := c.session
	c.mu.Unlock()
	if begin {
		c.spawn(func() { c.follow(session) })
	}
}

// follow reads that stream, again and again, while the session lives.
func (c *remote) follow(session string) {
	e := &eventStream{}
	for wait := firstPause; c.current() == session; wait = min(2*wait, lastPause) {
		resp, err := c.get(c.ctx, e.last)
		var status statusError
		if errors.As(err, &status) && status < 500 {
			return // it has no such stream, or the session is gone: a request will tell
		}
		if err == nil {
			e.in = newLines(resp.Body)
			if c.drain(e, nil); e.last != "" || e.retry > 0 {
				wait = max(firstPause, e.retry)
			}
			_ = resp.Body.Close()
		}
		if !c.pause(wait) {
			return
		}
	}
}

// listenLegacy reads the one stream of HTTP+SSE; its end is the connector's.
func (c *remote) listenLegacy() {
	defer c.writer.Close()
	resp, err := c.get(c.ctx, "")
	if err == statusError(http.StatusUnauthorized) && c.refresh() {
		resp, err = c.get(c.ctx, "")
	}
	if err == statusError(http.StatusUnauthorized) && c.Refused != nil {
		go c.Refused()
	}
	if err != nil {
		return
	}
	defer resp.Body.Close()
	e := &eventStream{in: newLines(resp.Body)}
	for {
		kind, data, err := e.next()
		switch {
		case err != nil:
			return
		case kind == "endpoint":
			if to := c.sameOrigin(string(data)); to != "" {
				select {
				case c.endpoint <- to:
				default: // it was said before
				}
			}
		case kind == "" || kind == "message":
			c.received(nil, data)
		}
	}
}

// sameOrigin resolves the endpoint of HTTP+SSE; "" when it is elsewhere, where
// our headers must not go.
func (c *remote) sameOrigin(ref string) string {
	base, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	to, err := base.Parse(ref)
	if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil {
		return ""
	}
	return to.String()
}

// target is the URL for messages; with HTTP+SSE the connector says it.
func (c *remote) target(ctx context.Context) (string, error) {
	if !c.Legacy {
		return c.URL, nil
	}
	select {
	case to := <-c.endpoint:
		select {
		case c.endpoint <- to: // for the next one
		default: // it was said anew
		}
		return to, nil
	case <-ctx.Done():
		return "", errors.New("the connector did not say where messages go")
	}
}
