package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A client asks one marketplace over HTTP, with retries. It is safe for concurrent use.
type client struct {
	http *http.Client
	now  func() time.Time
	note func(Event)
}

// newClient makes a client whose requests carry the credentials of base to base's own host only.
func newClient(o Options, base *url.URL, note func(Event)) *client {
	var rt http.RoundTripper = newOwnTransport(o.Env, answerLimit)
	if o.Client != nil && o.Client.Transport != nil {
		rt = o.Client.Transport
	}
	return &client{
		http: &http.Client{Transport: newWire(rt, base, o.UserAgent), CheckRedirect: redirects(o.AllowHTTP)},
		now:  o.Now,
		note: note,
	}
}

// redirects is the rule for each hop: a limited number, never from https to http, never to another kind of address.
func redirects(allowHTTP bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		req.URL.User = nil // credentials in a redirect are not ours
		if len(via) > redirectsMost {
			return final{fmt.Errorf("more than %d redirects, the last one to %s", redirectsMost, plain(req.URL))}
		}
		if why := refuseURL(req.URL, allowHTTP); why != "" {
			return final{&RedirectError{plain(req.URL), why}}
		}
		for _, v := range via {
			if v.URL.Scheme == "https" && req.URL.Scheme != "https" {
				return final{&RedirectError{plain(req.URL), "it is not https, and the marketplace is"}}
			}
		}
		return nil
	}
}

// refuseURL says why a URL is not asked, or "".
func refuseURL(u *url.URL, allowHTTP bool) string {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Sprintf("scheme %q is not https", u.Scheme)
	case u.Hostname() == "":
		return "it names no host"
	case u.Scheme == "http" && !allowHTTP && !isLoopback(u.Hostname()):
		return "plain http is accepted on loopback only"
	}
	return ""
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// plain is a URL for a message: no credentials, no query, which may hold a token.
func plain(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// A question is one GET.
type question struct {
	url    *url.URL
	header http.Header
	what   string // for messages: "the index", a file's path
	about  Event  // what a wait is reported with
	tries  int    // how often it is repeated
}

// get asks, and gives a 200 (or 304, when the question has a condition) to use. use is called again from the start
// when the transfer breaks; an error of another kind than a broken transfer must be marked final. The body is closed
// here. Errors: *UnreachableError, *WebPageError, *statusError, those of use, and ctx's.
func (c *client) get(ctx context.Context, q question, use func(*http.Response) error) error {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, q.url.String(), nil)
	if err != nil {
		return err
	}
	for k, v := range q.header {
		req.Header[k] = v
	}
	host := q.url.Host
	req.SetResponseHandler(func(resp *http.Response) error {
		defer resp.Body.Close()
		host = resp.Request.URL.Host
		if err := c.judge(resp, q); err != nil {
			return err
		}
		return use(resp)
	})
	stalls := 0
	rc := retryablehttp.Client{
		HTTPClient: c.http,
		RetryMax:   q.tries,
		CheckRetry: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if isStall(err) {
				stalls++
			}
			return err != nil && mayRetry(err) && stalls <= stallsMost, nil
		},
		Backoff: func(_, _ time.Duration, n int, resp *http.Response) time.Duration {
			return c.pause(q, n, resp)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := rc.Do(req)
	if resp != nil {
		resp.Body.Close()
	}
	return explain(ctx, host, err)
}

// judge refuses an answer by its status.
func (c *client) judge(resp *http.Response, q question) error {
	conditional := q.header.Get("If-None-Match") != "" || q.header.Get("If-Modified-Since") != ""
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusNotModified && conditional:
		return nil
	case resp.StatusCode == http.StatusNetworkAuthenticationRequired:
		return final{&WebPageError{Host: resp.Request.URL.Host, What: q.what}}
	}
	e := &statusError{code: resp.StatusCode}
	if wait, ok := retryAfter(resp.Header, c.now()); ok && wait > retryAfterMost && mayRetryStatus(e.code) {
		e.after = wait
	}
	return e
}

// pause is the wait before the next try, told to whoever watches.
func (c *client) pause(q question, n int, resp *http.Response) time.Duration {
	var asked time.Duration
	why := q.url.Host + " did not answer"
	if resp != nil {
		asked, _ = retryAfter(resp.Header, c.now())
		why = fmt.Sprintf("%s answered %d", resp.Request.URL.Host, resp.StatusCode)
		if resp.StatusCode == http.StatusOK {
			why = "the transfer from " + resp.Request.URL.Host + " broke off"
		}
	}
	e := q.about
	e.Wait, e.WaitFor = backoff(n, min(asked, retryAfterMost)), why
	c.note(e)
	return e.Wait
}

// explain gives a failed request its place among our errors and keeps URLs, which may hold a token, out of the text.
func explain(ctx context.Context, host string, err error) error {
	var (
		stop   final
		status *statusError
		urlErr *url.Error
		coding *encodingError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &stop):
		return stop.error
	case errors.As(err, &status) && !mayRetryStatus(status.code):
		return fmt.Errorf("asking %s: %w", host, status)
	case errors.As(err, &coding):
		return fmt.Errorf("asking %s: %w", host, coding)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the transfer broke off: %w", err)
	}
	for errors.As(err, &urlErr) {
		err = urlErr.Err
		urlErr = nil
	}
	if bad := untrusted(err); bad != nil {
		err = bad
	}
	return &UnreachableError{Host: host, Err: err}
}
