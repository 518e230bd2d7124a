package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// callbackHead bounds the head of a callback; codes of some providers have 2 KiB.
	callbackHead = 32 << 10
	// goodbye is how long the page that tells the outcome may take to reach the browser.
	goodbye = 2 * time.Second
)

// answer is what the browser brought: a code, or why there is none.
type answer struct {
	code string
	err  error
}

// listener waits on loopback for the one request that answers a sign-in (RFC 8252 section 7.3).
type listener struct {
	redirect string // with the port
	path     string
	hosts    []string // what a request may name as its host
	state    string
	judge    func(url.Values) answer
	server   *http.Server
	answers  chan answer // holds one

	once    sync.Once
	decided chan struct{} // closed when the answer has come
	outcome chan struct{} // closed when done is set
	done    page
}

// listen opens the address of a redirect; port 0 lets the system choose, as does a wish that cannot be had.
func listen(at *url.URL, wish int) (*listener, []net.Listener, error) {
	host, port := at.Hostname(), wish
	fixed := at.Port() != ""
	if fixed {
		port, _ = strconv.Atoi(at.Port())
	}
	bind := host
	if host == "localhost" {
		bind = "127.0.0.1"
	}
	first, err := net.Listen("tcp", net.JoinHostPort(bind, strconv.Itoa(port)))
	if err != nil && port != 0 && !fixed {
		first, err = net.Listen("tcp", net.JoinHostPort(bind, "0"))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("waiting for the browser on %s: %w", net.JoinHostPort(bind, strconv.Itoa(port)), opError(err))
	}
	chosen := strconv.Itoa(first.Addr().(*net.TCPAddr).Port)
	all := []net.Listener{first}
	// A browser may take "localhost" for ::1; where there is no IPv6, it does not.
	if second, err := net.Listen("tcp", net.JoinHostPort("::1", chosen)); err == nil && bind == "127.0.0.1" {
		all = append(all, second)
	} else if err == nil {
		_ = second.Close()
	}
	full := *at
	full.Host = net.JoinHostPort(host, chosen)
	return &listener{
		redirect: full.String(), path: at.Path, answers: make(chan answer, 1), decided: make(chan struct{}), outcome: make(chan struct{}),
		hosts: []string{net.JoinHostPort("127.0.0.1", chosen), net.JoinHostPort("::1", chosen), net.JoinHostPort("localhost", chosen)},
	}, all, nil
}

func opError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// serve begins to take requests.
func (l *listener) serve(on []net.Listener) {
	l.server = &http.Server{Handler: http.HandlerFunc(l.handle), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: callbackHead, ErrorLog: silent()}
	l.server.SetKeepAlivesEnabled(false)
	for _, ln := range on {
		go func() { _ = l.server.Serve(ln) }() // ends with close
	}
}

// close tells every waiting browser how it ended, and stops listening.
func (l *listener) close(p page) {
	l.done = p
	close(l.outcome)
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}

// handle takes one request. Whatever is not the answer to this sign-in changes nothing.
func (l *listener) handle(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case !slices.Contains(l.hosts, r.Host): // another site's name that leads here
		http.Error(w, "this address is not for that host", http.StatusMisdirectedRequest)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	case r.URL.Path != l.path:
		http.NotFound(w, r)
		return
	case err != nil || !once(q, "state") || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) != 1:
		strayPage().write(w, http.StatusBadRequest)
		return
	}
	l.once.Do(func() {
		l.answers <- l.judge(q)
		close(l.decided)
	})
	select {
	case <-l.outcome:
		l.done.write(w, http.StatusOK)
	case <-r.Context().Done():
	}
}

// once tells whether a parameter stands exactly once.
func once(q url.Values, name string) bool { return len(q[name]) == 1 }

// judgement reads the parameters of an authorization response (RFC 6749 section 4.1.2, RFC 9207).
func judgement(p Provider) func(url.Values) answer {
	return func(q url.Values) answer {
		if err := checkIssuer(p, q); err != nil {
			return answer{err: err}
		}
		switch code := q.Get("code"); {
		case len(q["code"]) > 1 || len(q["error"]) > 1:
			return answer{err: &AnswerError{"the answer of the provider has a parameter twice"}}
		case q.Get("error") != "":
			return answer{err: &DeniedError{Code: q.Get("error"), Detail: q.Get("error_description")}}
		case code == "":
			return answer{err: &AnswerError{"the answer of the provider has neither a code nor a reason"}}
		case !printable(code) || len(code) > codeLimit:
			return answer{err: &AnswerError{"the code in the answer of the provider is not one"}}
		default:
			return answer{code: code}
		}
	}
}

// codeLimit bounds an authorization code; those of Microsoft have about 1 KiB.
const codeLimit = 8 << 10

func checkIssuer(p Provider, q url.Values) error {
	iss := q["iss"]
	switch {
	case len(iss) > 1:
		return &AnswerError{"the answer of the provider names two issuers"}
	case len(iss) == 0 && p.NamesIssuer && p.Issuer != "":
		return &AnswerError{fmt.Sprintf("the answer names no issuer, and those of %s do", foreign(p.Issuer))}
	case len(iss) == 1 && p.Issuer != "" && iss[0] != p.Issuer:
		return &AnswerError{fmt.Sprintf("the answer is of %s, expected %s", foreign(iss[0]), foreign(p.Issuer))}
	}
	return nil
}
