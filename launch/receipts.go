package launch

import (
	"strconv"
	"time"
)

// receiptText bounds what a receipt shows of a tool's name or an id.
const receiptText = 256

// answeredCall writes the receipt of a call that the connector answered.
func (t *turn) answeredCall(c *call, failed bool) {
	switch {
	case c.cancelled: // it has its receipt
	case t.adapted.failed:
		t.receipt(c, "error", codeInternal, t.size)
	case failed:
		t.receipt(c, "error", "", t.size)
	default:
		t.receipt(c, "ok", "", t.size)
	}
}

// refusedCall writes the receipt of the call at hand, which went nowhere.
func (t *turn) refusedCall(code string) {
	tool, _ := t.scanner.text(t.line, fieldName)
	c := call{raw: t.id, tool: tool[:min(len(tool), receiptText)], started: t.s.o.Now(), bytesIn: len(t.line)}
	t.receipt(&c, "refused", code, 0)
}

// receipt writes one line for an answered tools/call: never its arguments,
// never its result.
func (t *turn) receipt(c *call, outcome, code string, bytesOut int) {
	s := t.s
	now := s.o.Now()
	out := append(t.key[:0], prefix+"receipt "...)
	out = append(out, `{"ts":"`...)
	out = now.UTC().AppendFormat(out, time.RFC3339Nano)
	out = appendQuoted(append(out, `","connector":`...), s.o.Connector)
	out = appendQuoted(append(out, `,"activation":`...), s.o.Name)
	out = appendQuoted(append(out, `,"tool":`...), string(c.tool))
	out = append(out, `,"id":`...)
	if len(c.raw) <= receiptText {
		out = appendASCII(out, c.raw)
	} else {
		out = append(out, `"(long)"`...)
	}
	out = append(append(append(out, `,"outcome":"`...), outcome...), '"')
	if code != "" {
		out = appendQuoted(append(out, `,"code":`...), code)
	}
	out = strconv.AppendInt(append(out, `,"duration_ms":`...), now.Sub(c.started).Milliseconds(), 10)
	out = strconv.AppendInt(append(out, `,"bytes_in":`...), int64(c.bytesIn), 10)
	out = strconv.AppendInt(append(out, `,"bytes_out":`...), int64(bytesOut), 10)
	out = append(out, "}\n"...)
	t.key = out
	if s.redactor != nil {
		out = s.redactor.Bytes(out)
	}
	s.notes.log.add(out)
	s.notes.receipts.add(out[len(prefix)+len("receipt "):])
}
