package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A statusError is an answer that is neither the data nor "not modified".
type statusError struct {
	code  int
	after time.Duration // what the server asked for, when that was too long
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
	if e.after > 0 {
		s += fmt.Sprintf(" and asks to wait %v", e.after)
	}
	return strings.TrimRight(s, " ")
}

// final marks an error that asking again cannot mend.
type final struct{ error }

func (e final) Unwrap() error { return e.error }

// mayRetryStatus tells whether the server may answer otherwise in a moment.
func mayRetryStatus(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayRetry tells whether a failed request is worth another try: what travels may fail, what is refused stays refused.
func mayRetry(err error) bool {
	var (
		stop   final
		coding *encodingError
		dns    *net.DNSError
		status *statusError
	)
	switch {
	case errors.As(err, &stop), errors.As(err, &coding), isTrustError(err):
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.As(err, &status):
		return mayRetryStatus(status.code) && status.after == 0
	}
	return true
}

// isTrustError tells whether the peer's certificate was refused.
func isTrustError(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// A trustError is a refused certificate, with its issuer named.
type trustError struct{ err error }

func (e *trustError) Error() string {
	var authority x509.UnknownAuthorityError
	if errors.As(e.err, &authority) && authority.Cert != nil {
		return fmt.Sprintf("its certificate was issued by %q, which is not trusted here", authority.Cert.Issuer)
	}
	return "its certificate is refused: " + e.err.Error()
}

func (e *trustError) Unwrap() error { return e.err }

func untrusted(err error) *trustError {
	if !isTrustError(err) {
		return nil
	}
	return &trustError{err}
}

// backoff is the wait before try n+1 (n from 0): doubling with jitter, and at least what the server asked for.
func backoff(n int, asked time.Duration) time.Duration {
	d := min(retryFirst<<min(n, 16), retryMost)
	d = d/2 + rand.N(d/2+1)
	return max(d, asked)
}

// retryAfter reads both forms of the header. ok is false when it is absent or makes no sense. A date is measured
// against the answer's own Date when it has one, so that a wrong clock on either side does no harm.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n > int64(24*365*time.Hour/time.Second) {
			n = int64(24 * 365 * time.Hour / time.Second) // more than a year is as good as a year
		}
		return time.Duration(n) * time.Second, true
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(until.Sub(now), 0), true
}
