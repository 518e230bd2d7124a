package activate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// probeRemote asks a remote server over streamable HTTP (MCP 2025-11-25,
// "Streamable HTTP"): the answer is JSON or an event stream that holds it.
func (a *Activator) probeRemote(ctx context.Context, t *trial) (*record.Probe, error) {
	redact := keystore.NewRedactor(t.values.handles())
	fail := func(err error) (*record.Probe, error) {
		e := &ProbeError{Connector: t.manifest.ID, Err: safeError(redact, err)}
		if refused, ok := errors.AsType[*unauthorizedError](err); ok {
			e.Unauthorized, e.challenges = true, refused.challenges
		}
		return nil, e
	}
	if t.manifest.Server.Transport == "sse" {
		return nil, &ProbeError{Connector: t.manifest.ID, Err: errors.New("the older SSE transport cannot be probed by this version of the program")}
	}
	address, header, err := remoteRequest(t.manifest, t.values)
	if err != nil {
		return fail(err)
	}
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	s := &httpPeer{ctx: limited, client: a.HTTP, address: address, header: header}
	result, err := handshake(s)
	s.end()
	switch {
	case err == nil:
		strike(result, redact)
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return fail(err)
}

// remoteRequest fills the tokens of URL and headers and puts an API key where
// format.md section 7 says.
func remoteRequest(m *manifest.Manifest, v *values) (string, http.Header, error) {
	address, _, err := manifest.ExpandURL(m.Server.URL, v.lookup)
	if err != nil {
		return "", nil, err
	}
	if err := manifest.ValidURL(address); err != nil {
		return "", nil, err
	}
	header := http.Header{}
	for _, h := range m.Server.Headers {
		value, _ := manifest.Expand(h.Value, v.lookup, manifest.Plain)
		header.Set(h.Name, value)
	}
	if v.cred != nil && !v.cred.Access.IsZero() {
		header.Set("Authorization", "Bearer "+v.cred.Access.Reveal())
	}
	key, ok := m.KeyField()
	if !ok || v.filled[key.Name].IsZero() {
		return address, header, nil
	}
	value := v.filled[key.Name].Reveal()
	switch place, name := m.KeyPlace(); place {
	case "query":
		address, err = addQuery(address, name, value)
	case "header":
		header.Set(name, value)
	case "bearer":
		header.Set("Authorization", bearer(value))
	}
	return address, header, err
}

// bearer adds the scheme, unless the value brings one.
func bearer(value string) string {
	if strings.Contains(value, " ") {
		return value
	}
	return "Bearer " + value
}

// httpPeer is a server behind a URL. One request is under way at a time.
type httpPeer struct {
	ctx      context.Context
	client   *http.Client
	address  string
	header   http.Header
	session  string
	protocol string
}

func (s *httpPeer) notify(method string) error {
	resp, err := s.post(map[string]any{"jsonrpc": "2.0", "method": method})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (s *httpPeer) call(id int, method string, params any) (exactjson.Value, []byte, error) {
	resp, err := s.post(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return exactjson.Value{}, nil, err
	}
	defer resp.Body.Close()
	if v := resp.Header.Get("Mcp-Session-Id"); v != "" {
		s.session = v
	}
	result, body, err := s.read(resp, id)
	if method == "initialize" && err == nil {
		s.protocol = str(result, "protocolVersion")
	}
	return result, body, err
}

func (s *httpPeer) read(resp *http.Response, id int) (exactjson.Value, []byte, error) {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(resp.Body, id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, probeLine+1))
	if err != nil {
		return exactjson.Value{}, nil, err
	}
	if len(body) > probeLine {
		return exactjson.Value{}, nil, fmt.Errorf("the answer is longer than %d MiB", probeLine>>20)
	}
	body = bytes.TrimSpace(body)
	result, mine, err := readResult(body, id)
	if !mine {
		return result, nil, errors.New("the answer is not a JSON-RPC reply to the request")
	}
	return result, body, err
}

// readEvents reads an event stream until the reply to id comes.
func readEvents(body io.Reader, id int) (exactjson.Value, []byte, error) {
	r := bufio.NewReaderSize(io.LimitReader(body, 4*probeLine), 64<<10)
	var data []byte
	for range probeNoise {
		line, err := readLine(r, probeLine)
		if err != nil {
			return exactjson.Value{}, nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if part, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(part, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue
		}
		if result, mine, err := readResult(data, id); mine {
			return result, data, err
		}
		data = nil
	}
	return exactjson.Value{}, nil, fmt.Errorf("no answer among %d lines of the event stream", probeNoise)
}

func (s *httpPeer) post(msg any) (*http.Response, error) {
	body, err := json.Marshal(msg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL cannot be used")
	}
	s.dress(req)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", req.URL.Host, withoutURL(err))
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		return nil, &unauthorizedError{req.URL.Host, resp.Header.Values("WWW-Authenticate")}
	}
	if resp.StatusCode/100 != 2 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s answered %s", req.URL.Host, resp.Status)
	}
	return resp, nil
}

// unauthorizedError says that a server wants a credential, or another one.
type unauthorizedError struct {
	host       string
	challenges []string
}

func (e *unauthorizedError) Error() string { return e.host + " answered 401 Unauthorized" }

func (s *httpPeer) dress(req *http.Request) {
	for name, vs := range s.header {
		req.Header[name] = vs
	}
	if s.session != "" {
		req.Header.Set("Mcp-Session-Id", s.session)
	}
	if s.protocol != "" {
		req.Header.Set("Mcp-Protocol-Version", s.protocol)
	}
}

// end tells the server that the session is over; servers may refuse that.
func (s *httpPeer) end() {
	if s.session == "" {
		return
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodDelete, s.address, nil)
	if err != nil {
		return
	}
	s.dress(req)
	if resp, err := s.client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
