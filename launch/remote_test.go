package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// site is a remote connector. Its behaviour is in answer, by method; what it
// was sent is in seen.
type site struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []string
	answer func(w http.ResponseWriter, r *http.Request, body string)
}

func newSite(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *site {
	s := &site{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		s.mu.Lock()
		s.seen = append(s.seen, strings.TrimSpace(fmt.Sprintf("%s key=%s session=%s protocol=%s last=%s %s", r.Method, r.Header.Get("X-Key"),
			r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Last-Event-Id"), body)))
		s.mu.Unlock()
		s.answer(w, r, string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// dial connects to it; next reads one line that arrives.
func (s *site) dial(t *testing.T, change func(*Remote)) (up *Upstream, next func() string) {
	t.Helper()
	r := Remote{URL: s.URL + "/mcp", Header: http.Header{"x-key": {"one"}}, Client: s.Client()}
	if change != nil {
		change(&r)
	}
	up = r.Connect()
	t.Cleanup(up.Stop)
	in := bufio.NewReader(up.Output)
	return up, func() string {
		line, err := in.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(line, "\n")
	}
}

const (
	remoteHello  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	remoteWelcom = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	remoteReady  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func say(up *Upstream, lines ...string) { io.WriteString(up.Input, strings.Join(lines, "\n")+"\n") }

func asJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

func asEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		io.WriteString(w, e+"\n\n")
		w.(http.Flusher).Flush()
	}
}

// welcome answers the handshake; ok is false for other messages.
func welcome(w http.ResponseWriter, r *http.Request, body, session string) bool {
	switch {
	case strings.Contains(body, `"initialize"`):
		w.Header().Set("Mcp-Session-Id", session)
		asJSON(w, remoteWelcom)
	case r.Method == http.MethodPost && !strings.Contains(body, `"id"`):
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		return false
	}
	return true
}

func TestRemoteSession(t *testing.T) {
	spoken := make(chan string)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case welcome(w, r, body, "s1"):
		case r.Method == http.MethodGet:
			asEvents(w, `data: {"jsonrpc":"2.0","method":"by/itself"}`)
			<-r.Context().Done()
		case strings.Contains(body, `"ask"`):
			asEvents(w, ": comment", "event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\"method\":\"ping\"}")
			spoken <- "asked"
			<-spoken
			asEvents(w, `data: {"jsonrpc":"2.0","id":2,"result":{}}`)
		default:
			asJSON(w, "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 3, \"result\": {\"s\":\"\\n\"}\n}\n")
		}
	})
	up, next := s.dial(t, nil)
	say(up, remoteHello, remoteReady)
	if got := next(); got != remoteWelcom {
		t.Errorf("initialize gave %s", got)
	}
	if got := next(); got != `{"jsonrpc":"2.0","method":"by/itself"}` {
		t.Errorf("the stream gave %s", got)
	}
	say(up, `{"jsonrpc":"2.0","id":2,"method":"ask"}`)
	if got := next(); got != `{"jsonrpc":"2.0", "id":7,"method":"ping"}` {
		t.Errorf("the connector's request: %s", got)
	}
	<-spoken
	say(up, `{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":3,"method":"other"}`)
	if got := next(); got != `{   "jsonrpc": "2.0",    "id": 3, "result": {"s":"\n"} }` {
		t.Errorf("pretty JSON gave %q", got)
	}
	spoken <- "go on"
	if got := next(); got != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("the answer: %s", got)
	}
	up.Stop()
	if got := next(); got != "EOF" {
		t.Errorf("after the end: %s", got)
	}
	log := s.log()
	if last := log[len(log)-1]; last != "DELETE key=one session=s1 protocol=2025-11-25 last=" {
		t.Errorf("the last request: %s", last)
	}
	if want := "POST key=one session= protocol= last= " + remoteHello; log[0] != want {
		t.Errorf("the first request: %s", log[0])
	}
}

func TestRemoteResumes(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case welcome(w, r, body, ""):
		case r.Header.Get("Last-Event-Id") == "e2":
			asEvents(w, `data: {"jsonrpc":"2.0","id":2,"result":{}}`)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(body, `"id":2`):
			asEvents(w, "id: e1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}", "id: e2\ndata:")
		default:
			asEvents(w, `data: {"jsonrpc":"2.0","method":"progress"}`)
		}
	})
	up, next := s.dial(t, nil)
	say(up, remoteHello, remoteReady, `{"jsonrpc":"2.0","id":2,"method":"x"}`)
	for _, want := range []string{remoteWelcom, `{"jsonrpc":"2.0","method":"progress"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	say(up, `{"jsonrpc":"2.0","id":3,"method":"x"}`)
	next()
	if got := next(); !strings.Contains(got, `"id":3,"error":{"code":-32603,"message":"the connector ended the answer before it was complete"`) {
		t.Errorf("a stream without an answer: %s", got)
	}
}

func TestRemoteSessionExpires(t *testing.T) {
	var count atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		valid := fmt.Sprintf("s%d", count.Load())
		switch {
		case strings.Contains(body, `"initialize"`):
			welcome(w, r, body, fmt.Sprintf("s%d", count.Add(1)))
		case r.Header.Get("Mcp-Session-Id") != valid || strings.Contains(body, `"forget"`) && valid == "s1":
			w.WriteHeader(http.StatusNotFound)
		case welcome(w, r, body, valid):
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			asJSON(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		}
	})
	up, next := s.dial(t, nil)
	say(up, remoteHello, remoteReady, `{"jsonrpc":"2.0","id":2,"method":"forget"}`)
	for _, want := range []string{remoteWelcom, `{"jsonrpc":"2.0","id":2,"result":{}}`} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if n := count.Load(); n != 2 {
		t.Errorf("%d sessions", n)
	}
}

func TestRemoteCredential(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case r.Header.Get("X-Key") != "two" || strings.Contains(body, `"revoked"`):
			w.WriteHeader(http.StatusUnauthorized)
		case welcome(w, r, body, ""):
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(body, `"moved"`):
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"bad"}}`)
		}
	})
	refused := make(chan bool)
	up, next := s.dial(t, func(r *Remote) {
		r.Refresh = func(context.Context) (http.Header, error) { return http.Header{"X-Key": {"two"}}, nil }
		r.Refused = func() { refused <- true }
	})
	say(up, remoteHello, remoteReady, `{"jsonrpc":"2.0","id":2,"method":"revoked"}`)
	next()
	<-refused
	say(up, `{"jsonrpc":"2.0","id":3,"method":"moved"}`)
	if got := next(); !strings.Contains(got, `"message":"the connector answered with HTTP status 307"`) {
		t.Errorf("a redirect: %s", got)
	}
	say(up, `{"jsonrpc":"2.0","id":4,"method":"x"}`)
	if got := next(); got != `{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"bad"}}` {
		t.Errorf("an answer with an HTTP error: %s", got)
	}
	bare, nextBare := s.dial(t, func(r *Remote) {
		r.Refresh = func(context.Context) (http.Header, error) { return nil, errors.New("none") }
	})
	say(bare, remoteHello)
	if got := nextBare(); !strings.Contains(got, `"code":"connector.auth_expired"`) {
		t.Errorf("without a credential: %s", got)
	}
	s.Close()
	say(up, `{"jsonrpc":"2.0","id":5,"method":"x"}`)
	if got := next(); !strings.Contains(got, `"id":5,"error"`) || strings.Contains(got, "/mcp") {
		t.Errorf("a server that is gone: %s", got)
	}
}

func TestRemoteLegacy(t *testing.T) {
	posts := make(chan string, 4)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			posts <- r.URL.String()
			return
		}
		asEvents(w, "event: endpoint\ndata: https://elsewhere.example/steal", "event: endpoint\ndata: /messages?id=9")
		for range 2 {
			<-posts
		}
		asEvents(w, "event: message\ndata: "+remoteWelcom)
	})
	up, next := s.dial(t, func(r *Remote) { r.Legacy = true })
	say(up, remoteHello, remoteReady)
	if got := next(); got != remoteWelcom {
		t.Error(got)
	}
	if got := next(); got != "EOF" { // the stream's end is the connector's
		t.Error(got)
	}
	for _, line := range s.log() {
		if !strings.Contains(line, "key=one") {
			t.Error(line)
		}
	}
}

// TestRemoteBehindTheFilter plays a whole session.
func TestRemoteBehindTheFilter(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case welcome(w, r, body, "s1"):
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			asJSON(w, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"the key is a-secret-value"}]}}`)
		}
	})
	client, clientEnd := io.Pipe()
	outEnd, out := io.Pipe()
	o := options(handle("KEY", "a-secret-value"))
	o.Client, o.Out, o.Log, o.Upstream = client, out, io.Discard, Remote{URL: s.URL, Client: s.Client()}.Connect()
	done := make(chan Outcome, 1)
	go func() { done <- New(o).Run(context.Background()) }()
	in := bufio.NewReader(outEnd)
	io.WriteString(clientEnd, remoteHello+"\n")
	first, _ := in.ReadString('\n')
	io.WriteString(clientEnd, remoteReady+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`+"\n")
	second, _ := in.ReadString('\n')
	if !strings.Contains(first, `"resources":{}`) || !strings.Contains(second, `"code":-32603`) {
		t.Errorf("%s%s", first, second)
	}
	clientEnd.Close()
	select {
	case end := <-done:
		if end.Cause != ClientEnded {
			t.Error(end)
		}
	case <-time.After(time.Minute):
		t.Fatal("the session does not end")
	}
}
