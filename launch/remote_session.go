package launch

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"

	"skald-connectors/internal/exactjson"
)

// exchange sends a message and passes on what comes back, once more after a
// new credential or a new session.
func (c *remote) exchange(m *outgoing) {
	refreshed, renewed := false, false
	for {
		session := c.current()
		status, err := c.once(m)
		switch {
		case m.answered:
		case err != nil:
			c.fail(m, err.Error())
		case status == http.StatusUnauthorized && !refreshed && c.refresh():
			refreshed = true
			continue
		case status == http.StatusUnauthorized:
			c.refused(m)
		case status == http.StatusNotFound && session != "" && !renewed && c.renew(session):
			renewed = true
			continue
		case status/100 != 2:
			c.fail(m, statusError(status).Error())
		default:
			c.fail(m, "the connector's answer did not come")
		}
		return
	}
}

func (c *remote) current() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// refused tells that the credential is not taken.
func (c *remote) refused(m *outgoing) {
	if c.Refused != nil {
		go c.Refused()
		return // parking answers the request
	}
	if m.id != nil {
		m.answered = true
		c.deliver(appendError(nil, m.id, internalError, "the connector does not take the credential", AuthExpired))
	}
}

// refresh asks for new headers.
func (c *remote) refresh() bool {
	if c.Refresh == nil {
		return false
	}
	header, err := c.Refresh(c.ctx)
	if err != nil {
		return false
	}
	c.mu.Lock()
	c.header = header.Clone()
	c.mu.Unlock()
	return true
}

// renew begins a new session in the place of one that the server has
// forgotten; the client's initialize is said again, its answer is not shown.
func (c *remote) renew(old string) bool {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	c.mu.Lock()
	if c.session != old {
		c.mu.Unlock()
		return true // somebody else did
	}
	c.session, c.protocol, c.listening = "", "", false
	greeting := c.greeting
	c.mu.Unlock()
	var s scanner
	s.scan(greeting)
	m := &outgoing{line: greeting, id: s.raw(greeting, fieldID), method: initialize, quiet: true}
	if status, err := c.once(m); err != nil || status/100 != 2 || !m.answered {
		return false
	}
	ready := &outgoing{line: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), quiet: true}
	if status, err := c.once(ready); err != nil || status/100 != 2 {
		return false
	}
	c.listen()
	c.spawn(c.remind)
	return true
}

// learn notes what an answer says of the session.
func (c *remote) learn(m *outgoing, message []byte) {
	switch {
	case m.method == initialize:
		doc, _, err := exactjson.Parse(message, maxDepth)
		if err != nil {
			doc = exactjson.Value{}
		}
		result, _ := doc.Get("result")
		version, _ := result.Get("protocolVersion")
		capabilities, _ := result.Get("capabilities")
		c.mu.Lock()
		c.protocol, c.capable = version.Str, capableOf(capabilities)
		c.mu.Unlock()
	case len(m.said) > 0 && !m.quiet:
		var s scanner
		s.replies = true
		if s.scan(message) && s.has(fieldResult) {
			c.mu.Lock()
			c.wishes.accepted(m.method, m.said)
			c.mu.Unlock()
		}
	}
}

// remind asks the new session for what the client had asked of the old one. What
// is refused is not in force: the server has changed its mind.
func (c *remote) remind() {
	var again []*outgoing
	own := "skald-connectors/" + rand.Text() + "/"
	c.mu.Lock()
	c.wishes.each(c.capable, func(method, params string) {
		id := strconv.AppendQuote(nil, own+strconv.Itoa(len(again)))
		line := append(appendHead(nil, id), `,"method":"`+method+`","params":`+params+"}"...)
		again = append(again, &outgoing{line: line, id: id, method: methodOf([]byte(method)), quiet: true})
	})
	c.mu.Unlock()
	for _, m := range again {
		if _, err := c.once(m); err != nil {
			return // the next session is reminded anew
		}
	}
}

// stop ends the connection.
func (c *remote) stop() {
	c.mu.Lock()
	session := c.session
	c.over = true
	c.mu.Unlock()
	c.cancel()
	_ = c.writer.Close() // what is read then is the end
	if session != "" && !c.Legacy {
		ctx, done := context.WithTimeout(context.Background(), goodbyeLimit)
		defer done()
		if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.URL, nil); err == nil {
			c.dress(req)
			if resp, err := c.http.Do(req); err == nil { // servers may refuse it
				_ = resp.Body.Close()
			}
		}
	}
	c.work.Wait()
}
