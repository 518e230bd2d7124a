package fetch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// Why a host cannot be reached is said without the names of calls and the addresses of name servers.
func TestUnreachableIsPlain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"no host of that name is known here":                           fmt.Errorf("asking: %w", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "a.example", Server: "10.0.0.1:53", IsNotFound: true}}),
		"its name cannot be looked up: " + syscall.ENETUNREACH.Error(): &net.DNSError{Err: "dial udp 10.0.0.1:53: connect: network is unreachable", UnwrapErr: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}},
		"its name cannot be looked up: server misbehaving":             &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "a.example", Server: "10.0.0.1:53"}},
		syscall.ECONNREFUSED.Error():                                   refused,
		"its proxy: " + syscall.ECONNREFUSED.Error():                   &net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused},
		"it did not answer in time":                                    &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
		"it answered 503":                                              errors.New("it answered 503"),
		"read tcp: " + syscall.ECONNRESET.Error():                      &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
	} {
		if got, want := (&UnreachableError{Host: "a.example", Err: err}).Error(), "a.example cannot be reached: "+want; got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
