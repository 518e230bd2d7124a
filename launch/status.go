package launch

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"skald-connectors/internal/exactjson"
)

const (
	// maxPages bounds the launcher's own walk through tools/list.
	maxPages = 64
	// gatherLimit bounds the wait for it; what is known then is told.
	gatherLimit = 5 * time.Second
	// loginPause is the least time between two questions to the login tool.
	loginPause = time.Minute

	newestProtocol = "2025-11-25" // said when neither probe nor client names one
)

// gather is the launcher's own walk through tools/list, for the status.
type gather struct {
	active bool
	round  int // tells a timer whose walk is over
	pages  int
	tools  []string
	held   []string
}

// answerStatus answers the status read at hand, or begins to gather what it
// says.
func (t *turn) answerStatus() {
	s := t.s
	if s.state.phase == parked || s.state.phase == waking {
		t.toClient = s.appendStatus(t.toClient, t.call.raw, s.parking.State)
		s.ledger.remove(t.call)
		return
	}
	if s.gather.active {
		return
	}
	s.gather = gather{active: true, round: s.gather.round + 1}
	round := s.gather.round
	time.AfterFunc(gatherLimit, func() { s.gatherTimeout(round) })
	t.toUpstream = t.ownRequest(ownList, "tools/list", "{}")
}

// gathered takes one page; the launcher's request is off the ledger.
func (t *turn) gathered(failed bool) {
	s := t.s
	if !s.gather.active {
		return
	}
	page, ok := toolPage{}, false
	if !failed {
		page, ok = s.readTools(t.line)
	}
	g := &s.gather
	g.pages++
	g.tools, g.held = append(g.tools, page.granted...), append(g.held, page.held...)
	if ok && page.cursor != "" && g.pages < maxPages {
		params := append(appendQuoted([]byte(`{"cursor":`), page.cursor), '}')
		t.toUpstream = t.ownRequest(ownList, "tools/list", string(params))
		return
	}
	t.tellStatus()
}

// tellStatus answers all who wait for the status.
func (t *turn) tellStatus() {
	s := t.s
	s.ledger.each(func(c *call) {
		if c.status && !c.cancelled {
			t.toClient = s.appendStatus(t.toClient, c.raw, "authorized")
			s.ledger.remove(c)
		}
	})
	s.gather = gather{round: s.gather.round}
	t.decide(event{kind: statusAnswered, waiting: s.ledger.waiting})
}

func (s *Session) gatherTimeout(round int) {
	t := &turn{s: s}
	s.mu.Lock()
	if s.gather.active && s.gather.round == round {
		s.notes.say(s.redactor, "%sit did not list its tools within %d s", s.notes.tag, int(gatherLimit.Seconds()))
		t.tellStatus()
	}
	s.mu.Unlock()
	t.carryOut()
}

// appendStatus writes the answer to a read of the status resource.
func (s *Session) appendStatus(out, id []byte, state string) []byte {
	body := appendQuoted([]byte(`{"state":`), state)
	body = appendNames(append(body, `,"tools":`...), s.gather.tools)
	held := append([]string(nil), s.gather.held...)
	slices.Sort(held)
	if len(held) > 0 {
		body = appendNames(append(body, `,"held":`...), slices.Compact(held))
	}
	if state != "authorized" {
		if s.parking.AuthorizeURL != "" {
			body = appendQuoted(append(body, `,"authorizeUrl":`...), s.parking.AuthorizeURL)
		}
		body = appendQuoted(append(body, `,"message":`...), s.parking.Message)
	}
	body = append(body, '}')
	out = append(appendHead(out, id), `,"result":{"contents":[{"uri":`...)
	out = append(appendQuoted(out, s.uri), `,"mimeType":"application/json","text":`...)
	return append(appendQuoted(out, string(body)), "}]}}\n"...)
}

// statusEntry is the status resource as resources/list shows it.
func (s *Session) statusEntry() []byte {
	out := appendQuoted([]byte(`{"uri":`), s.uri)
	out = appendQuoted(append(out, `,"name":`...), s.o.Name+" status")
	out = appendQuoted(append(out, `,"description":`...), "Whether "+s.o.Name+" is signed in, and which of its tools may be used")
	return append(out, `,"mimeType":"application/json"}`...)
}

// appendGreeting answers initialize in a parked session: what the probe
// recorded, and that the lists may change.
func (s *Session) appendGreeting(out, id []byte) []byte {
	version, capabilities, instructions := s.requested, "", ""
	if p := s.o.Probe; p != nil {
		version, capabilities, instructions = p.ProtocolVersion, p.Capabilities, p.Instructions
	}
	if version == "" {
		version = newestProtocol
	}
	s.told = version
	out = append(appendHead(out, id), `,"result":{"protocolVersion":`...)
	out = append(appendQuoted(out, version), `,"capabilities":`...)
	out = append(out, changingLists([]byte(capabilities))...)
	out = appendQuoted(append(out, `,"serverInfo":{"name":"skald-connectors","version":`...), s.o.Version)
	out = append(out, '}')
	if instructions != "" {
		out = appendQuoted(append(out, `,"instructions":`...), instructions)
	}
	return append(out, "}}\n"...)
}

// changingLists gives capabilities with listChanged for tools and resources.
// What else tools and resources can do is asked anew of the woken connector, so
// only subscribe is kept.
func changingLists(capabilities []byte) []byte {
	doc, repeats, err := exactjson.Parse(capabilities, maxDepth)
	if err != nil || doc.Kind != exactjson.Object || len(repeats) > 0 {
		doc = exactjson.Value{}
	}
	out := []byte("{")
	for _, m := range doc.Members {
		if m.Key != "tools" && m.Key != "resources" {
			out = append(out, capabilities[m.KeyStart:m.Value.End]...)
			out = append(out, ',')
		}
	}
	subscribe := ""
	if r, has := doc.Get("resources"); has {
		if sub, has := r.Get("subscribe"); has && sub.Str == "true" {
			subscribe = `"subscribe":true,`
		}
	}
	return append(out, `"tools":{"listChanged":true},"resources":{`+subscribe+`"listChanged":true}}`...)
}

// wakingParams is what the client said of itself, with the protocol version
// that it was told.
func (s *Session) wakingParams() []byte {
	doc, repeats, err := exactjson.Parse(s.greeting, maxDepth)
	if err != nil || doc.Kind != exactjson.Object || len(repeats) > 0 {
		out := appendQuoted([]byte(`{"protocolVersion":`), s.told)
		out = appendQuoted(append(out, `,"capabilities":{},"clientInfo":{"name":"skald-connectors","version":`...), s.o.Version)
		return append(out, "}}"...)
	}
	version, has := doc.Get("protocolVersion")
	if !has {
		out := appendQuoted([]byte(`{"protocolVersion":`), s.told)
		if len(doc.Members) > 0 {
			out = append(out, ',')
		}
		return append(out, bytes.TrimLeft(s.greeting[doc.Start+1:], " \t\r\n")...)
	}
	out := appendQuoted(append([]byte(nil), s.greeting[:version.Start]...), s.told)
	return append(out, s.greeting[version.End:]...)
}

// adaptGreeting adds the resources capability to the answer to initialize, for
// the status; it also notes what the answer says.
func (s *Session) adaptGreeting(c *call, line []byte) answer {
	unreadable := answer{text: appendError(nil, c.raw, internalError, textUnreadable, codeInternal), failed: true}
	doc, repeats, err := exactjson.Parse(line, maxDepth)
	result, _ := doc.Get("result")
	if err != nil || result.Kind != exactjson.Object || len(repeats) > 0 {
		return unreadable
	}
	version, _ := result.Get("protocolVersion")
	a := answer{greeting: greeting{mismatch: version.Str != s.told}}
	if c.own == ownNone {
		s.told = version.Str
	}
	capabilities, has := result.Get("capabilities")
	s.capable = capableOf(capabilities)
	switch {
	case !has:
		a.text = insert(line, result.Start+1, `"capabilities":{"resources":{}}`, len(result.Members) > 0)
	case capabilities.Kind != exactjson.Object:
		return unreadable
	default:
		if _, a.greeting.resources = capabilities.Get("resources"); !a.greeting.resources {
			a.text = insert(line, capabilities.Start+1, `"resources":{}`, len(capabilities.Members) > 0)
		}
	}
	return a
}

// insert puts a member at the start of an object whose inside begins at at.
func insert(line []byte, at int, member string, comma bool) []byte {
	out := append([]byte(nil), line[:at]...)
	out = append(out, member...)
	if comma {
		out = append(out, ',')
	}
	return withEnd(append(out, line[at:]...))
}

// withEnd ends a line that may be the last one, without an end.
func withEnd(line []byte) []byte {
	if line[len(line)-1] != '\n' {
		line = append(line, '\n')
	}
	return line
}

// adaptResources adds the status to the last page of resources/list.
func (s *Session) adaptResources(c *call, line []byte) answer {
	doc, repeats, err := exactjson.Parse(line, maxDepth)
	result, _ := doc.Get("result")
	list, _ := result.Get("resources")
	if err != nil || list.Kind != exactjson.Array || len(repeats) > 0 {
		return answer{text: appendError(nil, c.raw, internalError, textUnreadable, codeInternal), failed: true}
	}
	if cursor, has := result.Get("nextCursor"); has && cursor.Kind == exactjson.String && cursor.Str != "" {
		return answer{}
	}
	at := list.End - 1
	out := append([]byte(nil), line[:at]...)
	if len(list.Items) > 0 {
		out = append(out, ',')
	}
	out = append(out, s.statusEntry()...)
	return answer{text: withEnd(append(out, line[at:]...))}
}

// askLogin asks the login tool. When it was asked a moment ago it is asked when the
// pause is over: a call that fails right after the start is the sign of a session
// that is gone.
func (s *Session) askLogin() {
	if s.o.LoginTool == "" {
		return
	}
	t := &turn{s: s}
	s.mu.Lock()
	now := s.o.Now()
	switch wait := loginPause - now.Sub(s.asked); {
	case s.state.phase != open || s.askLater:
	case !s.asked.IsZero() && wait > 0:
		s.askLater = true
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			s.askLater = false
			s.mu.Unlock()
			s.askLogin()
		})
	default:
		s.asked = now
		t.link = s.link
		params := append(appendQuoted([]byte(`{"name":`), s.o.LoginTool), `,"arguments":{}}`...)
		t.toUpstream = t.ownRequest(ownLogin, "tools/call", string(params))
	}
	s.mu.Unlock()
	t.carryOut()
}

// saysLoggedOut reads the answer of the login tool: structuredContent.state, or
// the state in its text. A connector that wants a code read has no session either.
func saysLoggedOut(line []byte) bool {
	doc, _, err := exactjson.Parse(line, maxDepth)
	if err != nil {
		return false
	}
	result, _ := doc.Get("result")
	if content, has := result.Get("structuredContent"); has {
		state, _ := content.Get("state")
		return noSession(state.Str)
	}
	content, _ := result.Get("content")
	for _, item := range content.Items {
		text, _ := item.Get("text")
		inner, _, err := exactjson.Parse([]byte(text.Str), maxDepth)
		if state, _ := inner.Get("state"); err == nil && noSession(state.Str) {
			return true
		}
	}
	return false
}

func noSession(state string) bool { return state == "logged_out" || state == "need_scan" }

// String names the cause as it is said in one line.
func (c Cause) String() string {
	switch c {
	case ClientEnded:
		return "the client ended the session"
	case Stopped:
		return "the session was stopped"
	case UpstreamEnded:
		return "the connector ended"
	case UpstreamStalled:
		return "the connector stalled"
	case LineTooLong:
		return "the connector wrote a line that is too long"
	case RestartClient:
		return "the client has to be restarted"
	}
	return fmt.Sprintf("cause %d", uint8(c))
}
