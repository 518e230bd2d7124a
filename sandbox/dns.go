package sandbox

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// The part of DNS (RFC 1035) that a responder for one question needs.

const (
	dnsHeader   = 12
	dnsLimit    = 4096 // a question is far shorter
	dnsTypeA    = 1
	dnsTypeAAAA = 28
	dnsClassIN  = 1
	dnsTTL      = 60 // seconds; a name keeps its address as long as the process lives
)

const (
	dnsOK       = 0
	dnsBad      = 1 // the question cannot be read
	dnsFailed   = 2
	dnsNoName   = 3
	dnsNoSuchOp = 4
)

var errQuestion = errors.New("not one question")

// question is the one question of a query.
type question struct {
	name  string // cleaned
	kind  uint16
	class uint16
	end   int // where it ends in the message
}

// parseQuestion reads a query with exactly one question.
func parseQuestion(msg []byte) (question, error) {
	var q question
	if len(msg) < dnsHeader || len(msg) > dnsLimit || msg[2]&0x80 != 0 || binary.BigEndian.Uint16(msg[4:]) != 1 {
		return q, errQuestion
	}
	var name strings.Builder
	at := dnsHeader
	for {
		if at >= len(msg) {
			return q, errQuestion
		}
		n := int(msg[at])
		at++
		if n == 0 {
			break
		}
		// A label is at most 63 bytes; more would be a pointer, which a question has not.
		if n > 63 || at+n > len(msg) || name.Len()+n > 254 {
			return q, errQuestion
		}
		name.Write(msg[at : at+n])
		name.WriteByte('.')
		at += n
	}
	if at+4 > len(msg) {
		return q, errQuestion
	}
	q.name = cleanName(name.String())
	q.kind, q.class = binary.BigEndian.Uint16(msg[at:]), binary.BigEndian.Uint16(msg[at+2:])
	q.end = at + 4
	return q, nil
}

// reply answers msg, whose question is q, with a code and at most one address of
// the kind that was asked for.
func reply(msg []byte, q question, code byte, addr netip.Addr) []byte {
	out := append([]byte(nil), msg[:max(q.end, dnsHeader)]...)
	const answer, authoritative, recursion = 0x80, 0x04, 0x80
	out[2] = answer | authoritative | msg[2]&0x79 // the operation and whether recursion is wanted
	out[3] = recursion | code
	for i := 6; i < dnsHeader; i++ {
		out[i] = 0
	}
	if q.end == 0 {
		out[4], out[5] = 0, 0
	}
	if !addr.IsValid() {
		return out
	}
	out[7] = 1
	const toQuestion = 0xc000 | dnsHeader
	out = binary.BigEndian.AppendUint16(out, toQuestion)
	out = binary.BigEndian.AppendUint16(out, q.kind)
	out = binary.BigEndian.AppendUint16(out, dnsClassIN)
	out = binary.BigEndian.AppendUint32(out, dnsTTL)
	out = binary.BigEndian.AppendUint16(out, uint16(addr.BitLen()/8))
	return append(out, addr.AsSlice()...)
}

// respond answers one query. address gives the address for a name that may be
// asked for; another code than dnsOK gives no address.
func respond(msg []byte, address func(name string) (addr netip.Addr, code byte)) []byte {
	if len(msg) < dnsHeader {
		return nil
	}
	q, err := parseQuestion(msg)
	switch {
	case err != nil:
		return reply(msg, question{}, dnsBad, netip.Addr{})
	case msg[2]&0x78 != 0:
		return reply(msg, q, dnsNoSuchOp, netip.Addr{})
	case q.class != dnsClassIN:
		return reply(msg, q, dnsNoName, netip.Addr{})
	}
	addr, code := address(q.name)
	if code != dnsOK || q.kind != dnsTypeA || !addr.Is4() {
		return reply(msg, q, code, netip.Addr{}) // the name exists, with no such record
	}
	return reply(msg, q, dnsOK, addr)
}
