package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRemoteReminds holds that a new session with the same server is asked for what the
// client asked of the one before, and that the client sees nothing of it.
func TestRemoteReminds(t *testing.T) {
	var count atomic.Int32
	reminded := make(chan string, 8)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		valid := fmt.Sprintf("s%d", count.Load())
		switch {
		case strings.Contains(body, `"initialize"`):
			w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", count.Add(1)))
			asJSON(w, strings.Replace(remoteWelcom, `{}`, `{"logging":{},"resources":{"subscribe":true}}`, 1))
		case r.Header.Get("Mcp-Session-Id") != valid || strings.Contains(body, `"forget"`) && valid == "s1":
			w.WriteHeader(http.StatusNotFound)
		case welcome(w, r, body, valid):
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(body, `"id":4`):
			asJSON(w, `{"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"no"}}`)
		case strings.Contains(body, `"id":"skald-connectors/`):
			_, said, _ := strings.Cut(body, `,"method":`)
			id, _, _ := strings.Cut(body, `,"method"`)
			reminded <- said
			asEvents(w, `data: {"jsonrpc":"2.0","method":"at/once"}`, `data: `+id+`,"result":{}}`)
		default:
			id := body[strings.Index(body, `"id":`)+5:][:1]
			asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
		}
	})
	up, next := s.dial(t, nil)
	say(up, remoteHello, remoteReady)
	next()
	for _, line := range []string{`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:one"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:refused"}}`} {
		say(up, line)
		if got := next(); !strings.Contains(got, line[17:23]) {
			t.Errorf("%s: %s", line, got)
		}
	}
	say(up, `{"jsonrpc":"2.0","id":5,"method":"forget"}`)
	got := []string{next(), next(), next()}
	slices.Sort(got)
	if want := []string{`{"jsonrpc":"2.0","id":5,"result":{}}`, `{"jsonrpc":"2.0","method":"at/once"}`, `{"jsonrpc":"2.0","method":"at/once"}`}; !slices.Equal(got, want) {
		t.Errorf("the client got %s", got)
	}
	for _, want := range []string{`"logging/setLevel","params":{"level":"error"}}`, `"resources/subscribe","params":{"uri":"a:one"}}`} {
		if got := <-reminded; got != want {
			t.Errorf("reminded of %s, want %s", got, want)
		}
	}
	if len(reminded) > 0 || count.Load() != 2 {
		t.Errorf("%d sessions, and reminded of %d more", count.Load(), len(reminded))
	}
}

// TestRemoteRefusesAtTheEnd has the server refuse the credential while the client, whose input has
// ended, still waits for its answers.
func TestRemoteRefusesAtTheEnd(t *testing.T) {
	asked, ended := make(chan bool), make(chan bool)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case welcome(w, r, body, "s"):
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			asked <- true
			<-ended
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	client, clientEnd := io.Pipe()
	outEnd, out := io.Pipe()
	receipts := newMemory(0)
	o := options()
	o.Client, o.Out, o.Log, o.Receipts = client, out, io.Discard, receipts
	session := New(o)
	up := Remote{URL: s.URL, Client: s.Client(), Refused: func() {
		session.Park(Parking{State: "expired", Code: AuthExpired, Message: "sign in again"})
	}}.Connect()
	done := make(chan Outcome, 1)
	session.Wake(*up)
	go func() { done <- session.Run(context.Background()); out.Close() }()
	in := bufio.NewReader(outEnd)
	io.WriteString(clientEnd, remoteHello+"\n")
	in.ReadString('\n')
	io.WriteString(clientEnd, remoteReady+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`+"\n"+`{"jsonrpc":"2.0","id":3,"method":"ping"}`+"\n")
	<-asked
	<-asked
	clientEnd.Close()
	for waits := false; !waits; runtime.Gosched() {
		session.mu.Lock()
		waits = session.state.phase == draining
		session.mu.Unlock()
	}
	close(ended)
	rest, _ := io.ReadAll(in)
	for _, want := range []string{`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"sign in again","data":{"code":"connector.auth_expired"}}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,`} {
		if strings.Count(string(rest), want) != 1 {
			t.Errorf("no %s in %s", want, rest)
		}
	}
	if got := linesOf(string(rest)); len(got) != 2 {
		t.Errorf("the client got %q", got)
	}
	if end := <-done; end.Cause != ClientEnded {
		t.Error(end)
	}
	if got := receipts.taken(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"id":2,"outcome":"error","code":"connector.auth_expired"`) {
		t.Errorf("receipts %q", got)
	}
	if log := s.log(); !strings.HasPrefix(log[len(log)-1], "DELETE") {
		t.Errorf("the last request: %s", log[len(log)-1])
	}
}
