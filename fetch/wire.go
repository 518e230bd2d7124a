package fetch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

var (
	errNoAnswer = fmt.Errorf("no answer within %v", answerLimit)
	errStalled  = fmt.Errorf("the transfer stalled: no byte within %v", idleLimit)
	errDrip     = fmt.Errorf("the transfer is too slow: less than %d bytes in %v", rateFloor, rateWindow)
)

// An encodingError says that the answer was compressed although identity was asked for; its bytes cannot be hashed.
type encodingError struct{ coding string }

func (e *encodingError) Error() string {
	return fmt.Sprintf("the answer has content encoding %q although none was asked for", e.coding)
}

// A wire sends single requests: it adds what every request of ours carries and puts an end to every wait. It alone
// knows the credentials, and gives them to the marketplace's own scheme, host and port only.
type wire struct {
	base      http.RoundTripper
	origin    string // scheme://host:port that the credentials belong to
	auth      string // Authorization value, empty when the location has none
	userAgent string
}

// newWire takes the credentials out of base, which must be a parsed location.
func newWire(rt http.RoundTripper, base *url.URL, userAgent string) *wire {
	w := &wire{base: rt, origin: originOf(base), userAgent: userAgent}
	if u := base.User; u != nil {
		pass, _ := u.Password()
		w.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+pass))
	}
	return w
}

func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + u.Hostname() + ":" + port
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	req = req.Clone(ctx)
	req.Header.Del("Authorization")
	req.Header.Del("Referer")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", w.userAgent)
	if w.auth != "" && originOf(req.URL) == w.origin {
		req.Header.Set("Authorization", w.auth)
	}
	timer := time.AfterFunc(connectLimit+tlsLimit+answerLimit, func() { cancel(errNoAnswer) })
	resp, err := w.base.RoundTrip(req)
	timer.Stop()
	if err != nil {
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = watch(ctx, cancel, resp.Body)
	if c := resp.Header.Get("Content-Encoding"); c != "" && c != "identity" {
		resp.Body.Close()
		return nil, &encodingError{c}
	}
	return resp, nil
}

// CloseIdleConnections implements the optional interface of http.Client.
func (w *wire) CloseIdleConnections() {
	if c, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// because prefers our own reason for a cancelled context over what the transport makes of it: "context canceled", or
// "use of closed network connection" where a read was under way.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || isStall(cause)) {
		return cause
	}
	return err
}

// isStall tells whether we ended the wait ourselves.
func isStall(err error) bool {
	return errors.Is(err, errNoAnswer) || errors.Is(err, errStalled) || errors.Is(err, errDrip)
}

// A watched body ends itself when it stalls or drips.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	window *time.Timer
	got    atomic.Int64 // bytes in the present window
}

func watch(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) *watched {
	w := &watched{ReadCloser: body, ctx: ctx, cancel: cancel}
	w.idle = time.AfterFunc(idleLimit, func() { cancel(errStalled) })
	w.idle.Stop() // armed while a read waits; a slow disk is not the network's fault
	w.window = time.AfterFunc(rateWindow, w.judge)
	return w
}

// judge looks at one finished window.
func (w *watched) judge() {
	if w.got.Swap(0) < rateFloor {
		w.cancel(errDrip)
		return
	}
	w.window.Reset(rateWindow)
}

func (w *watched) Read(p []byte) (int, error) {
	w.idle.Reset(idleLimit)
	n, err := w.ReadCloser.Read(p)
	w.idle.Stop()
	w.got.Add(int64(n))
	if err != nil && err != io.EOF {
		err = because(w.ctx, err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.idle.Stop()
	w.window.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}
