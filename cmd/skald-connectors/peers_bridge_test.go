//go:build unix

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// bridge serves a stdio server over streamable HTTP (MCP 2025-11-25,
// "Streamable HTTP"), a process for each session: for test suites that speak
// HTTP only.
type bridge struct {
	t     *testing.T
	start func() *exec.Cmd

	mu       sync.Mutex
	sessions map[string]*bridged
}

// bridged is one session. What the server says on its own goes to the newest
// stream that is open, and waits while there is none.
type bridged struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	streams []*bridgedStream
	early   [][]byte
}

// bridgedStream is an answer that is under way: to the request id, or to a GET.
type bridgedStream struct {
	id    string // "" for a GET
	lines chan []byte
}

type bridgedMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func newBridge(t *testing.T, start func() *exec.Cmd) *bridge {
	b := &bridge{t: t, start: start, sessions: map[string]*bridged{}}
	t.Cleanup(func() {
		for id := range b.sessions {
			b.end(id)
		}
	})
	return b
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host := r.Host; host != r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String() || r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+host {
		w.WriteHeader(http.StatusForbidden) // a page of another site, by a name of its own
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	b.mu.Lock()
	s := b.sessions[id]
	b.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		b.post(w, r, s)
	case s == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		s.stream(w, r, s.open(""))
	case r.Method == http.MethodDelete:
		b.end(id)
	}
}

func (b *bridge) post(w http.ResponseWriter, r *http.Request, s *bridged) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var msg bridgedMessage
	if err != nil || json.Unmarshal(body, &msg) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if msg.Method == "initialize" {
		id := rand.Text()
		if s = b.begin(id); s == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Mcp-Session-Id", id)
	}
	if s == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var answer *bridgedStream
	if msg.ID != nil && msg.Method != "" {
		answer = s.open(string(msg.ID))
	}
	var line bytes.Buffer
	_ = json.Compact(&line, body)
	line.WriteByte('\n')
	_, _ = s.in.Write(line.Bytes())
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.stream(w, r, answer)
}

// begin starts the server for a new session.
func (b *bridge) begin(id string) *bridged {
	s := &bridged{cmd: b.start()}
	in, err := s.cmd.StdinPipe()
	if err == nil {
		s.in = in
		var out io.Reader
		if out, err = s.cmd.StdoutPipe(); err == nil {
			err = s.cmd.Start()
		}
		go func() {
			for r := bufio.NewReader(out); ; {
				line, err := r.ReadBytes('\n')
				if err != nil {
					return
				}
				s.deliver(bytes.TrimSpace(line))
			}
		}()
	}
	if err != nil {
		b.t.Errorf("starting %q: %v", s.cmd.Args, err)
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[id] = s
	return s
}

func (b *bridge) end(id string) {
	b.mu.Lock()
	s := b.sessions[id]
	delete(b.sessions, id)
	b.mu.Unlock()
	if s != nil {
		_ = s.in.Close()
		if err := s.cmd.Wait(); err != nil {
			b.t.Errorf("%q ended with %v", s.cmd.Args, err)
		}
	}
}

func (s *bridged) open(id string) *bridgedStream {
	st := &bridgedStream{id: id, lines: make(chan []byte, 10_000)}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.early {
		st.lines <- line
	}
	s.early, s.streams = nil, append(s.streams, st)
	return st
}

// deliver gives a line of the server to the stream that it belongs to.
func (s *bridged) deliver(line []byte) {
	var msg bridgedMessage
	if json.Unmarshal(line, &msg) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if msg.Method == "" {
		if i := slices.IndexFunc(s.streams, func(st *bridgedStream) bool { return st.id == string(msg.ID) }); i >= 0 {
			s.streams[i].lines <- line
			close(s.streams[i].lines)
			s.streams = slices.Delete(s.streams, i, i+1)
		}
		return
	}
	if len(s.streams) == 0 {
		s.early = append(s.early, line)
		return
	}
	s.streams[len(s.streams)-1].lines <- line
}

// stream writes server-sent events until the answer is out, or the client goes.
func (s *bridged) stream(w http.ResponseWriter, r *http.Request, st *bridgedStream) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		select {
		case line, more := <-st.lines:
			if !more {
				return
			}
			_, _ = w.Write(slices.Concat([]byte("event: message\ndata: "), line, []byte("\n\n")))
			_ = flush.Flush()
		case <-r.Context().Done():
			s.mu.Lock()
			s.streams = slices.DeleteFunc(s.streams, func(other *bridgedStream) bool { return other == st })
			s.mu.Unlock()
			return
		}
	}
}
