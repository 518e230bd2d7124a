package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// relay copies both ways until both are done. When the first bytes from inside
// begin a TLS handshake, the name in it must be name; "" checks nothing. A
// protocol in which the server speaks first is not held up.
func relay(inner, outer net.Conn, name string) error {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(inner, outer)
		closeWrite(inner)
		close(done)
	}()
	refused := checked(inner, outer, name)
	if refused == nil {
		_, _ = io.Copy(outer, inner)
		closeWrite(outer)
	} else {
		_ = outer.Close()
	}
	<-done
	return refused
}

// closeWrite passes on that one side has no more to say.
func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
		return
	}
	_ = c.Close()
}

// checked passes the first bytes on, and looks at them when they are TLS.
func checked(inner, outer net.Conn, name string) error {
	if name == "" {
		return nil
	}
	buf := make([]byte, helloLimit+recordHead*8)
	have := 0
	for {
		n, err := inner.Read(buf[have:])
		have += n
		if have > 0 {
			why := wrongName(buf[:have], name)
			if why == nil || !errors.Is(why, errMore) {
				if why == nil {
					_, _ = outer.Write(buf[:have])
				}
				return why
			}
		}
		if err != nil || have == len(buf) {
			return nil // it ended, or said nothing that could be judged: nothing was passed on
		}
	}
}

// wrongName tells why the first bytes may not go to the host name, errMore when
// more of them are needed.
func wrongName(first []byte, name string) error {
	if !looksLikeTLS(first) {
		return nil
	}
	asked, err := serverName(first)
	switch {
	case errors.Is(err, errMore):
		return err
	case err != nil:
		return errors.New("the start of its TLS handshake cannot be read")
	case asked != "" && asked != name:
		return fmt.Errorf("its TLS handshake asks for %q", asked)
	}
	return nil
}
