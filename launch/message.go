package launch

import "bytes"

// shape is what a message is in JSON-RPC.
type shape uint8

const (
	unreadable shape = iota
	request
	notification
	reply
)

// method is what the launcher knows of a method. Every other one is passed on.
type method uint8

const (
	otherMethod method = iota
	initialize
	initialized
	ping
	toolsList
	toolsCall
	resourcesList
	resourcesRead
	resourceTemplates
	subscribe
	unsubscribe
	setLevel
	cancelled
	toolsChanged
)

func methodOf(name []byte) method {
	switch string(name) {
	case "initialize":
		return initialize
	case "notifications/initialized":
		return initialized
	case "ping":
		return ping
	case "tools/list":
		return toolsList
	case "tools/call":
		return toolsCall
	case "resources/list":
		return resourcesList
	case "resources/read":
		return resourcesRead
	case "resources/templates/list":
		return resourceTemplates
	case "resources/subscribe":
		return subscribe
	case "resources/unsubscribe":
		return unsubscribe
	case "logging/setLevel":
		return setLevel
	case "notifications/cancelled":
		return cancelled
	case "notifications/tools/list_changed":
		return toolsChanged
	}
	return otherMethod
}

// twinOf reports that params has a case twin of a member that m is judged by.
func (e *envelope) twinOf(m method) bool {
	var judged uint16
	switch m {
	case initialize:
		judged = 1 << fieldProtocol
	case toolsCall:
		judged = 1<<fieldName | 1<<fieldArguments
	case resourcesRead:
		judged = 1 << fieldURI
	case cancelled:
		judged = 1 << fieldRequestID
	}
	return e.twins&judged != 0
}

// shape tells what the message is as far as it has been read.
func (e *envelope) shape() shape {
	switch {
	case e.has(fieldMethod) && e.has(fieldID):
		return request
	case e.has(fieldMethod):
		return notification
	case e.has(fieldResult) || e.has(fieldError):
		return reply
	}
	return unreadable
}

// raw gives the bytes of a member's value, nil when it has none.
func (e *envelope) raw(line []byte, f field) []byte {
	if !e.ended(f) {
		return nil
	}
	return line[e.at[f].start:e.at[f].end]
}

// text gives the decoded text of a member that is a string; ok is false when
// it is not one. It is valid until the next call.
func (e *envelope) text(line []byte, f field) (text []byte, ok bool) {
	if e.at[f].first != '"' || !e.ended(f) {
		return nil, false
	}
	inside := line[e.at[f].start+1 : e.at[f].end-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, true
	}
	e.decoded = unescape(e.decoded[:0], inside)
	return e.decoded, true
}

// idText gives a text that is the same for the same id however it is spelt: a
// sign for its type and its decoded text. ok is false for what is no id: not a
// string, not an integer.
func idText(out, raw []byte) (text []byte, ok bool) {
	switch {
	case len(raw) == 0:
		return out, false
	case raw[0] == '"':
		out = append(out, '"')
		return unescape(out, raw[1:len(raw)-1]), true
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || bytes.ContainsAny(raw, ".eE"):
		return out, false
	case string(raw) == "-0": // the same number as 0 to every reader
		return append(out, '0'), true
	}
	return append(out, raw...), true
}

// flaw says why a client's message cannot be judged; "" when it can.
type flaw string

const (
	flawBatch    flaw = "a batch is not forwarded: send one message a line"
	flawJSON     flaw = "the line is not one JSON object in UTF-8"
	flawDepth    flaw = "the message is nested deeper than 512 levels"
	flawRepeat   flaw = "a key occurs twice in the message, so that two readers could understand it differently"
	flawTwin     flaw = "a key differs from one of the protocol only in case, so that two readers could understand it differently"
	flawShape    flaw = "the message is neither a request nor a notification nor a reply"
	flawMethod   flaw = "the method is not a string"
	flawID       flaw = "a request needs an id that is a string or an integer"
	flawLong     flaw = "the line is longer than 64 MiB"
	flawInFlight flaw = "an earlier request with this id has not been answered yet"
	flawMany     flaw = "too many requests are waiting for an answer"
	flawAgain    flaw = "the session is initialized already"
)

// flaw judges a message that was read to its end; valid is what the scanner
// said of its syntax.
func (s *scanner) flaw(line []byte, valid bool) flaw {
	switch {
	case s.array:
		return flawBatch
	case s.tooDeep:
		return flawDepth
	case !valid:
		return flawJSON
	case s.repeated:
		return flawRepeat
	case s.twin:
		return flawTwin
	}
	if s.has(fieldMethod) {
		name, ok := s.text(line, fieldMethod)
		if !ok {
			return flawMethod
		}
		if s.twinOf(methodOf(name)) {
			return flawTwin
		}
	}
	if s.shape() == unreadable {
		return flawShape
	}
	return ""
}
