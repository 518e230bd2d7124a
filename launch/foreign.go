package launch

import (
	"bytes"
	"unicode/utf8"

	"skald-connectors/keystore"
)

// foreign is a kind of text on a connector's standard output that is no
// protocol message. It is never passed on.
type foreign uint8

const (
	foreignText foreign = iota
	foreignColour
	foreignPretty
	foreignFraming
	foreignJSON
	foreignBatch
	foreignBytes
	foreignCut
	foreignRepeat
	foreignReply
	foreigns
)

// diagnosis says what is wrong and who mends it, once a kind.
var diagnosis = [foreigns]string{
	foreignText:    "it wrote text that is no protocol message to its standard output; its author has to send logs and banners to standard error",
	foreignColour:  "it wrote colour codes to its standard output; its author has to send logs to standard error",
	foreignPretty:  "it writes JSON over several lines, and a message has to be on one; its author has to print it without indentation",
	foreignFraming: "it frames its messages with Content-Length headers, as language servers do; MCP over stdio is one message a line, so its author has to use an MCP transport",
	foreignJSON:    "it wrote JSON that is no JSON-RPC message to its standard output; its author has to send logs to standard error",
	foreignBatch:   "it wrote a batch, which MCP does not have; its author has to send one message a line",
	foreignBytes:   "it wrote bytes to its standard output that are not UTF-8; its author has to encode messages in UTF-8",
	foreignCut:     "it ended in the middle of a line",
	foreignRepeat:  "it wrote a message in which a key occurs twice or in two cases, which readers understand differently; its author has to send each key once",
	foreignReply:   "it answered a request that nobody waits for; such answers are not passed on",
}

// foreignSeen counts what was kept from the client.
type foreignSeen [foreigns]int

// classify tells what kind of foreign text a line is; whole: it did not end in the middle.
func (s *scanner) classify(line []byte, whole bool) foreign {
	text := bytes.TrimSpace(line)
	switch {
	case !whole && bytes.HasPrefix(text, []byte("{")) && s.state != lexEnd:
		return foreignCut
	case s.repeated || s.twin:
		return foreignRepeat
	case s.state == lexEnd:
		return foreignJSON
	case bytes.Contains(text, []byte("\x1b[")):
		return foreignColour
	case hasFoldPrefix(text, "content-length:") || hasFoldPrefix(text, "content-type:"):
		return foreignFraming
	case !utf8.Valid(text):
		return foreignBytes
	case len(text) == 1 && bytes.IndexByte([]byte("{[}]"), text[0]) >= 0, bytes.HasPrefix(text, []byte(`"`)) && bytes.Contains(text, []byte(`":`)),
		string(text) == "}," || string(text) == "],":
		return foreignPretty
	case s.array:
		return foreignBatch
	}
	return foreignText
}

func hasFoldPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

// report tells about foreign text: the kind once, with what to do, and the
// text itself as a line of the connector's.
func (n *notes) report(r *keystore.Redactor, l *link, kind foreign, line []byte) {
	if l.seen[kind]++; l.seen[kind] == 1 {
		n.say(r, "kept from the client: %s%s", n.tag, diagnosis[kind])
	}
	if text := bytes.TrimSpace(line); len(text) > 0 && kind != foreignReply {
		n.quote(r, text)
	}
}

// total tells at the end how much was kept from the client.
func (n *notes) total(r *keystore.Redactor, l *link) {
	sum := 0
	for _, count := range l.seen {
		sum += count
	}
	if sum > 1 {
		n.say(r, "kept from the client: %d lines of %s that are no messages", sum, n.tag[:len(n.tag)-2])
	}
}
