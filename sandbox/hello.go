package sandbox

import (
	"encoding/binary"
	"errors"
)

// The part of TLS that tells which server a client asks for: the first message,
// a ClientHello (RFC 8446 section 4.1.2), and its extension server_name (RFC 6066).

const (
	recordHandshake = 22
	recordHead      = 5
	helloType       = 1
	extensionName   = 0
	// helloLimit bounds a ClientHello; with post-quantum keys it has some 2 KB.
	helloLimit = 16 << 10
)

// errMore means that the message is not complete yet, errHello that it is none.
var (
	errMore  = errors.New("not all of it is here")
	errHello = errors.New("not a ClientHello")
)

// looksLikeTLS tells whether the first bytes of a connection may begin a TLS
// handshake: no protocol that is text begins so.
func looksLikeTLS(b []byte) bool {
	return len(b) > 0 && b[0] == recordHandshake && (len(b) < 2 || b[1] == 3)
}

// serverName reads the name that a ClientHello asks for, "" when it names none.
// b are the first bytes of the connection.
func serverName(b []byte) (string, error) {
	hello, err := helloBody(b)
	if err != nil {
		return "", err
	}
	r := reader{b: hello}
	r.skip(2 + 32)               // version, random
	r.take(1)                    // session
	r.take(2)                    // cipher suites
	r.take(1)                    // compression
	if len(r.b) == 0 && !r.bad { // a client without extensions
		return "", nil
	}
	extensions := reader{b: r.take(2)}
	for len(extensions.b) > 0 && !extensions.bad && !r.bad {
		kind := extensions.uint16()
		body := extensions.take(2)
		if kind == extensionName {
			return hostName(body)
		}
	}
	if r.bad || extensions.bad {
		return "", errHello
	}
	return "", nil
}

func hostName(body []byte) (string, error) {
	outer := reader{b: body}
	list := reader{b: outer.take(2)}
	if kind := list.skip(1); kind == nil || kind[0] != 0 {
		return "", errHello
	}
	name := list.take(2)
	if outer.bad || list.bad || len(name) == 0 || len(list.b) != 0 {
		return "", errHello // two names: which one would the server take?
	}
	return cleanName(string(name)), nil
}

// helloBody joins the records that the message is spread over.
func helloBody(b []byte) ([]byte, error) {
	var message []byte
	for len(message) < 4 || len(message)-4 < int(binary.BigEndian.Uint32(message)&0xffffff) {
		if len(b) < recordHead {
			return nil, errMore
		}
		n := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] != recordHandshake || b[1] != 3 || n == 0 || len(message)+n > helloLimit {
			return nil, errHello
		}
		if len(b) < recordHead+n {
			return nil, errMore
		}
		message = append(message, b[recordHead:recordHead+n]...)
		b = b[recordHead+n:]
		if message[0] != helloType {
			return nil, errHello
		}
	}
	return message[4 : 4+int(binary.BigEndian.Uint32(message)&0xffffff)], nil
}

// reader takes bytes from the front; it is bad once there were too few.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) skip(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad, r.b = true, nil
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *reader) uint16() uint16 {
	if b := r.skip(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// take reads a length of size bytes and that many bytes.
func (r *reader) take(size int) []byte {
	n := 0
	for _, b := range r.skip(size) {
		n = n<<8 | int(b)
	}
	return r.skip(n)
}
