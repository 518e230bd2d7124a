package activate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
)

// scripted answers each request of a handshake with the lines of its method.
func scripted(t *testing.T, answers map[string][]string) (*record.Probe, error) {
	t.Helper()
	toServer, fromUs := io.Pipe()
	fromServer, toUs := io.Pipe()
	go func() {
		defer toUs.Close()
		defer toServer.Close()
		in := bufio.NewScanner(toServer)
		for in.Scan() {
			var msg struct {
				ID     json.RawMessage
				Method string
				Params struct{ Cursor string }
			}
			_ = json.Unmarshal(in.Bytes(), &msg)
			for _, line := range answers[msg.Method+msg.Params.Cursor] {
				_, _ = io.WriteString(toUs, strings.ReplaceAll(line, "$ID", string(msg.ID)))
			}
			if msg.ID != nil && msg.Method != "" && answers[msg.Method+msg.Params.Cursor] == nil {
				return
			}
		}
	}()
	defer fromUs.Close()
	return handshake(newStdioPeer(fromUs, fromServer))
}

const initOK = `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"s"},"instructions":"Go."}}` + "\n"

// TestProbeShowsAndDeclines: what a server shows only to a client that it can
// ask is seen, and what it asks is answered, so that it does not wait.
func TestProbeShowsAndDeclines(t *testing.T) {
	toServer, fromUs := io.Pipe()
	fromServer, toUs := io.Pipe()
	asked := []string{`{"jsonrpc":"2.0","id":"r/1","method":"roots/list"}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`}
	var heard []string
	go func() {
		defer toUs.Close()
		defer toServer.Close()
		in := bufio.NewScanner(toServer)
		next := func() string {
			in.Scan()
			heard = append(heard, in.Text())
			return in.Text()
		}
		if !strings.Contains(next(), `"capabilities":{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`) {
			return
		}
		_, _ = io.WriteString(toUs, strings.ReplaceAll(initOK, "$ID", "1"))
		next() // initialized
		next() // tools/list
		for _, line := range asked {
			_, _ = io.WriteString(toUs, line+"\n")
			next()
		}
		_, _ = io.WriteString(toUs, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}]}}`+"\n")
	}()
	p, err := handshake(newStdioPeer(fromUs, fromServer))
	_ = fromUs.Close()
	if err != nil || len(p.Tools) != 1 {
		t.Fatalf("%v %v; it heard %q", p, err, heard)
	}
	for i, want := range []string{`{"id":"r/1","jsonrpc":"2.0","result":{"roots":[]}}`,
		`{"error":{"code":-32601,"message":"nobody is asked while the tools are listed"},"id":9007199254740993,"jsonrpc":"2.0"}`, `{"id":2,"jsonrpc":"2.0","result":{}}`} {
		if heard[3+i] != want {
			t.Errorf("%s was answered with %s, want %s", asked[i], heard[3+i], want)
		}
	}
}

func TestHandshake(t *testing.T) {
	list := func(body string) []string {
		return []string{`{"jsonrpc":"2.0","id":$ID,"result":` + body + "}\n"}
	}
	tests := []struct {
		name    string
		answers map[string][]string
		tools   int
		err     string
	}{
		{"plain", map[string][]string{"initialize": {initOK}, "tools/list": list(`{"tools":[{"name":"a"},{"name":"b"}]}`)}, 2, ""},
		{"noise, notifications and requests in between", map[string][]string{
			"initialize": {"npm notice\n", "\n", "[1,2]\n", "{}\n", "7\n", `{"jsonrpc":"2.0","method":"log"}` + "\n", `{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}` + "\n", "\ufeff" + "half {\r\n", initOK},
			"tools/list": list(`{"tools":[]}`)}, 0, ""},
		{"CRLF and white space", map[string][]string{"initialize": {"  " + strings.TrimSuffix(initOK, "\n") + "\r\n"}, "tools/list": list(`{"tools":[{"name":"a"}]}`)}, 1, ""},
		{"pages", map[string][]string{"initialize": {initOK}, "tools/list": list(`{"tools":[{"name":"a"}],"nextCursor":"2"}`), "tools/list2": list(`{"tools":[{"name":"b"}]}`)}, 2, ""},
		{"no tools", map[string][]string{"initialize": {strings.Replace(initOK, `"tools":{}`, "", 1)}}, 0, ""},
		{"endless pages", map[string][]string{"initialize": {initOK}, "tools/list": list(`{"tools":[],"nextCursor":"x"}`), "tools/listx": list(`{"tools":[],"nextCursor":"x"}`)}, 0, "tools/list: more than 64 pages"},
		{"an error", map[string][]string{"initialize": {`{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"no \u001b[31mkey"}}` + "\n"}}, 0, "initialize: the server answered with an error: no \x1b[31mkey"},
		{"framed as a language server", map[string][]string{"initialize": {"Content-Length: 2\r\n\r\n{}"}}, 0, "initialize: it writes Content-Length headers, where one message a line is expected"},
		{"no protocol version", map[string][]string{"initialize": {`{"jsonrpc":"2.0","id":$ID,"result":{}}` + "\n"}}, 0, "initialize: the answer has no protocolVersion"},
		{"a bare array", map[string][]string{"initialize": {initOK}, "tools/list": list(`[{"name":"a"}]`)}, 0, "tools/list: the answer has no result"},
		{"a tool twice", map[string][]string{"initialize": {initOK}, "tools/list": list(`{"tools":[{"name":"a"},{"name":"a"}]}`)}, 0, `tools/list: the tool "a" is there twice`},
		{"two meanings", map[string][]string{"initialize": {initOK}, "tools/list": list(`{"tools":[{"name":"a","description":"x","description":"y"}]}`)}, 0, `tools/list: tool "a": the key "description" occurs twice`},
		{"it ends", map[string][]string{"initialize": {initOK}}, 0, "tools/list: EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := scripted(t, tt.answers)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || len(p.Tools) != tt.tools || p.ProtocolVersion != "2024-11-05" || p.Instructions != "Go." {
				t.Errorf("%+v (%v)", p, err)
			}
		})
	}
}

// TestRemoteProbe speaks streamable HTTP to a real server in both of its forms:
// plain JSON and an event stream; and the key goes where the manifest says.
func TestRemoteProbe(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var deleted bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer k/e y" || r.URL.Query().Get("org") != "a&b" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			if r.Method == http.MethodDelete {
				deleted = r.Header.Get("Mcp-Session-Id") == "s1"
				return
			}
			var msg struct {
				ID     *int
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&msg)
			if msg.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Mcp-Session-Id", "s1")
			result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`
			if msg.Method == "tools/list" {
				if r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
					http.Error(w, "no session", http.StatusBadRequest)
					return
				}
				result = `{"tools":[{"name":"a"}]}`
			}
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, *msg.ID, result)
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\ndata: %s\n\n", answer)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}))
		m := parse(t, `{"id":"r","name":"R","type":"mcp_remote","scope":"global","version":1,
		 "env":[{"name":"ORG","label":"Org"},{"name":"KEY","label":"Key","required":true,"secret":true}],
		 "auth":{"type":"api_key"},"mcp_config":{"url":"`+srv.URL+`/mcp?org={ENV:ORG}","transport":"http"}}`)
		v := newValues(m)
		v.set("ORG", keystore.NewSecret("a&b"))
		a := &Activator{HTTP: HTTPClient(http.DefaultTransport)}
		v.set("KEY", keystore.NewSecret("Bearer k/e y"))
		p, err := a.probeRemote(context.Background(), &trial{manifest: m, values: v})
		srv.Close()
		if err != nil || len(p.Tools) != 1 {
			t.Fatalf("stream %v: %+v (%v)", stream, p, err)
		}
		if !deleted {
			t.Errorf("stream %v: the session was not ended", stream)
		}
	}
}

// TestRemoteProbeKeepsTheKey: neither an error nor a redirect shows or carries it.
func TestRemoteProbeKeepsTheKey(t *testing.T) {
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked = r.URL.String() + fmt.Sprint(r.Header) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	m := parse(t, `{"id":"r","name":"R","type":"mcp_remote","scope":"global","version":1,
	 "auth":{"type":"api_key","delivery":"query","param":"token"},"mcp_config":{"url":"`+srv.URL+`/mcp","transport":"http"}}`)
	v := newValues(m)
	v.set("token", keystore.NewSecret("canary-canary"))
	a := &Activator{HTTP: HTTPClient(http.DefaultTransport)}
	_, err := a.probeRemote(context.Background(), &trial{manifest: m, values: v})
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "redirects to") {
		t.Errorf("%v", err)
	}
	if leaked != "" {
		t.Errorf("the other host was asked: %s", leaked)
	}
}

func TestRemoteRequestPlacesTheKey(t *testing.T) {
	for _, tt := range []struct{ auth, url, wantURL, wantHeader string }{
		{`{"type":"api_key","delivery":"query","param":"key"}`, "https://h.example.org/mcp", "https://h.example.org/mcp?key=a%26b", ""},
		{`{"type":"api_key","delivery":"query","param":"key"}`, "https://h.example.org/mcp?k={SECRET:key}", "https://h.example.org/mcp?k=a%26b", ""},
		{`{"type":"api_key","delivery":"header","param":"X-Key"}`, "https://h.example.org/mcp", "https://h.example.org/mcp", "X-Key: a&b"},
		{`{"type":"api_key","delivery":"header","param":"Authorization"}`, "https://h.example.org/mcp", "https://h.example.org/mcp", "Authorization: Bearer a&b"},
		{`{"type":"api_key","param":"key"}`, "https://h.example.org/mcp", "https://h.example.org/mcp", "Authorization: Bearer a&b"},
	} {
		m := parse(t, `{"id":"r","name":"R","type":"mcp_remote","scope":"global","version":1,"auth":`+tt.auth+`,"mcp_config":{"url":"`+tt.url+`"}}`)
		v := newValues(m)
		key, ok := m.KeyField()
		if !ok {
			t.Fatalf("%s: no key field", tt.auth)
		}
		v.set(key.Name, keystore.NewSecret("a&b"))
		url, header, err := remoteRequest(m, v)
		var got []string
		for name := range header {
			got = append(got, name+": "+header.Get(name))
		}
		if err != nil || url != tt.wantURL || strings.Join(got, "") != tt.wantHeader {
			t.Errorf("%s %s: %s, %q (%v)", tt.auth, tt.url, url, got, err)
		}
	}
}
