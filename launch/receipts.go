package launch

import (
	"slices"
	"strconv"
	"time"

	"skald-connectors/keystore"
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

// A due receipt is written when the answer is on its way: the client does not wait for it.
type due struct {
	raw, tool         []byte // of the call
	started, answered time.Time
	bytesIn, bytesOut int
	outcome, code     string
	redactor          *keystore.Redactor
}

// receipt notes an answered tools/call; the lock is held.
func (t *turn) receipt(c *call, outcome, code string, bytesOut int) {
	n := len(t.due)
	t.due = slices.Grow(t.due, 1)[:n+1]
	d := &t.due[n]
	*d = due{raw: append(d.raw[:0], c.raw[:min(len(c.raw), receiptText+1)]...), tool: append(d.tool[:0], c.tool...),
		started: c.started, answered: t.s.o.Now(), bytesIn: c.bytesIn, bytesOut: bytesOut,
		outcome: outcome, code: code, redactor: t.s.redactor}
}

// writeReceipts writes what is due. No lock is held.
func (t *turn) writeReceipts() {
	for i := range t.due {
		t.writeReceipt(&t.due[i])
	}
	if t.due = t.due[:0]; cap(t.due) > mostDue {
		t.due = nil
	}
}

// mostDue is more than one message brings, unless the connector ends amid very many calls.
const mostDue = 64

// writeReceipt writes one line for an answered tools/call: never its arguments,
// never its result.
func (t *turn) writeReceipt(d *due) {
	o := &t.s.o
	out := append(t.text[:0], prefix+"receipt "...)
	out = append(out, `{"ts":"`...)
	out = d.answered.UTC().AppendFormat(out, time.RFC3339Nano)
	out = appendQuoted(append(out, `","connector":`...), o.Connector)
	out = appendQuoted(append(out, `,"activation":`...), o.Name)
	out = appendQuoted(append(out, `,"tool":`...), string(d.tool))
	out = append(out, `,"id":`...)
	if len(d.raw) <= receiptText {
		out = appendASCII(out, d.raw)
	} else {
		out = append(out, `"(long)"`...)
	}
	out = append(append(append(out, `,"outcome":"`...), d.outcome...), '"')
	if d.code != "" {
		out = appendQuoted(append(out, `,"code":`...), d.code)
	}
	out = strconv.AppendInt(append(out, `,"duration_ms":`...), d.answered.Sub(d.started).Milliseconds(), 10)
	out = strconv.AppendInt(append(out, `,"bytes_in":`...), int64(d.bytesIn), 10)
	out = strconv.AppendInt(append(out, `,"bytes_out":`...), int64(d.bytesOut), 10)
	out = append(out, "}\n"...)
	t.text = out
	if d.redactor != nil {
		out = d.redactor.Bytes(out)
	}
	t.s.notes.log.add(out)
	t.s.notes.receipts.add(out[len(prefix)+len("receipt "):])
	t.s.notes.receipts.room() // a burst of calls has all its receipts, where the disk takes them
}
