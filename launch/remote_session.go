package launch

import (
	"context"
	"net/http"
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
	return true
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
