package fetch

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"skald-connectors/manifest"
)

// PinError says that bytes do not match what the index pins. Nothing of them was kept.
type PinError struct {
	Connector, File string
	Want, Got       string // "sha256 ab…", "1204 bytes"
}

func (e *PinError) Error() string {
	return fmt.Sprintf("%s of connector %q does not match its pin: expected %s, got %s", strconv.Quote(e.File), e.Connector, e.Want, e.Got)
}

// BrokenError says that the index lists the connector but that its entry must not be installed, or (ID empty) that the
// index itself contradicts itself and cannot be trusted.
type BrokenError struct {
	ID, Reason string
}

func (e *BrokenError) Error() string {
	if e.ID == "" {
		return "the index cannot be trusted: " + e.Reason
	}
	return fmt.Sprintf("connector %q is broken in the index: %s", e.ID, e.Reason)
}

// NotFoundError says that no connector has this id. Near lists ids that look like it, nearest first.
type NotFoundError struct {
	ID   string
	Near []string
}

func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("no connector %q in the index", e.ID)
	if len(e.Near) > 0 {
		s += "; similar: " + strings.Join(e.Near, ", ")
	}
	return s
}

// UnreachableError says that the marketplace could not be asked: no connection, no answer in time, a certificate that
// is not trusted, or a server that refuses for now. Err is the last reason.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, errNoCache) {
		return fmt.Sprintf("%v of %s", e.Err, e.Host) // it may well be there
	}
	return fmt.Sprintf("%s cannot be reached: %s", e.Host, plainly(e.Err))
}

// plainly says why a connection failed without the calls that led there.
func plainly(err error) string {
	var (
		dns   *net.DNSError
		op    *net.OpError
		errno syscall.Errno
		slow  net.Error
	)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "its proxy: " + plainly(op.Err)
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no host of that name is known here"
	case errors.As(err, &dns) && errors.As(dns.UnwrapErr, &errno):
		return "its name cannot be looked up: " + errno.Error()
	case errors.As(err, &dns):
		return "its name cannot be looked up: " + dns.Err
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &slow) && slow.Timeout():
		return "it did not answer in time"
	}
	return err.Error()
}

// Unwrap gives the last reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// WebPageError says that a web page came where data was expected: a sign-in page, a proxy or a captive portal.
type WebPageError struct {
	Host string // the host that answered last
	What string // "the index", or a file's path
}

func (e *WebPageError) Error() string {
	return fmt.Sprintf("got a web page from %s instead of %s, maybe from a sign-in page or a proxy", e.Host, e.What)
}

// RevokedError says that the signed index takes this version back.
type RevokedError struct {
	ID      string
	Version manifest.Version
	Reason  string
}

func (e *RevokedError) Error() string {
	return fmt.Sprintf("version %d of connector %q was revoked by its marketplace: %s", e.Version, e.ID, e.Reason)
}

// RedirectError says that the marketplace's server sent us to an address of a kind that is not asked: from https to http, or
// no web address at all. Who can answer with that over https is the server, not the network, so an older index does not stand
// in for it where something is to be installed.
type RedirectError struct{ To, Why string }

func (e *RedirectError) Error() string { return fmt.Sprintf("redirected to %s: %s", e.To, e.Why) }
