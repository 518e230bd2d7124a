package launch

import (
	"cmp"
	"strconv"
)

// The JSON-RPC codes and the closed set of data codes of launcher.md, section 2.
const (
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
	noResource     = -32002 // of MCP: resource not found

	codeInternal  = "connector.internal"
	codeForbidden = "connector.forbidden_scope"
	codeChanged   = "connector.changed"
)

// refuse answers the request at hand with an error.
func (t *turn) refuse(f effect) {
	code, message, data := t.refusal(f)
	t.toClient = appendError(t.toClient, t.id, code, message, data)
	if f == refuseParked {
		t.s.wishes.parked(t.method, wish(t.method, &t.scanner, t.line))
	}
	if t.method == toolsCall { // known where nothing is wrong with the message itself
		t.refusedCall(data)
	}
}

func (t *turn) refusal(f effect) (code int, message, data string) {
	p := &t.s.parking
	switch f {
	case refuseFlaw:
		return invalidRequest, string(t.flaw), codeInternal
	case refuseAgain:
		return invalidRequest, string(flawAgain), codeInternal
	case refuseNoStatus:
		return invalidParams, "the status is not available before initialize is answered", codeInternal
	case refuseForbidden:
		return invalidParams, "the tool is not in the granted scope", codeForbidden
	case refuseChanged:
		return invalidParams, "the definition of this tool is not the one that was accepted", codeChanged
	case refuseParkedCall:
		return internalError, p.Message, p.Code
	case refuseParkedRead:
		return invalidParams, p.Message, p.Code
	case refuseNoResource:
		return noResource, "the connector has no resources; there is only its status", codeInternal
	case refuseParked:
		return methodNotFound, p.Message, p.Code
	}
	return internalError, "the session is ending", codeInternal
}

// answer answers the request at hand in the connector's place.
func (t *turn) answer(f effect) {
	switch f {
	case answerGreeting:
		t.keepGreeting()
		t.toClient = t.s.appendGreeting(t.toClient, t.id)
	case answerPing:
		t.toClient = appendResult(t.toClient, t.id, "{}")
	case answerNoTools:
		t.toClient = appendResult(t.toClient, t.id, `{"tools":[]}`)
	case answerResources:
		t.toClient = appendResult(t.toClient, t.id, `{"resources":[`+string(t.s.statusEntry())+`]}`)
	case answerTemplates:
		t.toClient = appendResult(t.toClient, t.id, `{"resourceTemplates":[]}`)
	case answerStatus:
		t.answerStatus()
	}
}

// adapt passes the answer at hand on, as the launcher changes it.
func (t *turn) adapt() {
	switch {
	case t.adapted.text != nil:
		t.toClient = append(t.toClient, t.adapted.text...)
	case !t.adapted.streamed:
		t.pass = true
	}
}

// settle takes the answered request off the ledger.
func (t *turn) settle() {
	c, s := t.call, t.s
	failed := t.adapted.failed || t.scanner.has(fieldError) || t.scanner.at[fieldIsError].first == 't'
	if t.size == 0 {
		t.size = len(t.line)
	}
	switch {
	case c.method == toolsCall && c.own == ownNone:
		t.answeredCall(c, failed)
		t.poll = failed
	case c.method == initialize && c.own == ownNone:
		t.poll = !failed
	case c.own == ownReminder && failed:
		s.notes.say(s.redactor, "%sit refused what the client had asked of the one before it: log level or subscription", s.notes.tag)
	case c.own == ownNone && !failed:
		s.wishes.accepted(c.method, c.said)
	}
	own := c.own
	s.ledger.remove(c)
	switch own {
	case ownList:
		t.gathered(failed)
	case ownInitialize:
		t.poll = s.state.phase == open
		t.wokenNote(failed)
	case ownLogin:
		t.loggedOut = !failed && saysLoggedOut(t.line)
	}
}

func (t *turn) wokenNote(failed bool) {
	s := t.s
	switch {
	case s.state.cause == RestartClient && s.state.phase == closing:
		s.detail = "the connector speaks another protocol version than the one that this session began with"
	case failed:
		s.notes.say(s.redactor, "%sit refused initialize; the session stays parked", s.notes.tag)
	}
}

// failAll answers every request that waits for an upstream that will not
// answer.
func (t *turn) failAll(auth bool) {
	s := t.s
	code, message := codeInternal, cmp.Or(s.detail, textEnded)
	if auth {
		code, message = s.parking.Code, s.parking.Message
	}
	s.ledger.each(func(c *call) {
		switch {
		case c.own != ownNone || c.cancelled:
		case c.method == initialize && auth && s.state.greeted:
			t.toClient = s.appendGreeting(t.toClient, c.raw)
		default:
			t.toClient = appendError(t.toClient, c.raw, internalError, message, code)
			if c.method == toolsCall {
				t.receipt(c, "error", code, 0)
			}
		}
		s.ledger.remove(c)
	})
	s.gather = gather{round: s.gather.round}
}

// tellChanged sends the notifications that make a client ask again.
func (t *turn) tellChanged() {
	t.toClient = append(t.toClient, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n"...)
	if t.offered != nil || t.s.state.phase == parked || t.call != nil {
		t.toClient = append(t.toClient, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`+"\n"...)
	}
}

// speak writes to the upstream for a client that spoke to the one before it, or to
// a parked session.
func (t *turn) speak(f effect) {
	switch f {
	case readyUpstream:
		t.toUpstream = append(t.toUpstream, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"...)
	case remindUpstream:
		t.s.wishes.each(t.s.capable, func(method, params string) { t.toUpstream = t.ownRequest(ownReminder, method, params) })
	default:
		t.toUpstream = t.ownRequest(ownInitialize, "initialize", string(t.s.wakingParams()))
	}
}

// ownRequest writes a request of the launcher's own and enters it.
func (t *turn) ownRequest(own ownRequest, method, params string) []byte {
	s := t.s
	s.ownCount++
	id := strconv.AppendQuote(nil, s.ownID+strconv.Itoa(s.ownCount))
	key, _ := idText(nil, id)
	c := s.ledger.add(id, key, own)
	c.method = methodOf([]byte(method))
	out := append(appendHead(t.toUpstream, id), `,"method":"`+method+`","params":`...)
	return append(append(out, params...), "}\n"...)
}
