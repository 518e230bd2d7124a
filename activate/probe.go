package activate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/lazyre"
	"skald-connectors/internal/tooldef"
	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

const (
	// probeLimit bounds the whole probe: a node server with a cold disk cache
	// takes a few seconds to its first answer.
	probeLimit = 60 * time.Second
	// probeLine bounds one message of the server; a tools/list of hundreds of
	// tools with long schemas is about 1 MiB.
	probeLine = 16 << 20
	// probePages bounds tools/list paging, as launcher.md section 3 does.
	probePages = 64
	// probeTools bounds the tools of one connector (security.md H36).
	probeTools = 4096
	// probeNoise bounds how many lines that are not the awaited answer are
	// read past: logs on stdout, notifications.
	probeNoise = 10_000
	// noiseShown is how much of a line of noise a message shows.
	noiseShown = 80
	// probeStderr is what is kept of stderr for the message.
	probeStderr = 4 << 10
	// instructionsLimit bounds what the record keeps of a server's
	// instructions for parked sessions.
	instructionsLimit = 64 << 10

	protocolVersion = "2025-11-25"
)

// probeLadder ends a server that was only asked: it has nothing to save.
var probeLadder = sandbox.Ladder{Stdin: 2 * time.Second, Term: 2 * time.Second}

// ProbeError says that the server did not come up and answer (exit 5). Stderr
// is the end of what it wrote there, struck of values and safe to show.
type ProbeError struct {
	Connector string
	Err       error
	Stderr    string
	Denied    []sandbox.Denial // what the sandbox refused meanwhile
	// Unauthorized says that a remote server wants a credential, or another one.
	Unauthorized bool
	challenges   []string // its WWW-Authenticate
}

func (e *ProbeError) Error() string { return fmt.Sprintf("starting %q: %v", e.Connector, e.Err) }
func (e *ProbeError) Unwrap() error { return e.Err }

// probe starts a server, completes the handshake and lists its tools.
func (a *Activator) probe(ctx context.Context, t *trial) (*record.Probe, error) {
	if t.manifest.Remote() {
		return a.probeRemote(ctx, t)
	}
	u, err := a.startUpstream(ctx, t)
	if err != nil {
		return nil, err
	}
	p, err := u.greet()
	if err != nil {
		return nil, u.failed(ctx, err)
	}
	u.end(probeLadder)
	return p, nil
}

// safeError is err with the values struck out, on one line, and not too long.
func safeError(r *keystore.Redactor, err error) error {
	return errors.New(cut(form.Clean(r.String(err.Error()))))
}

func safeLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, l := range lines {
		lines[i] = form.Clean(strings.TrimRight(l, "\r"))
	}
	return strings.Join(lines, "\n")
}

// peer is one MCP server that answers requests in turn.
type peer interface {
	call(id int, method string, params any) (exactjson.Value, []byte, error)
	notify(method string) error
}

// handshake completes initialize and gathers every page of tools/list.
func handshake(s peer) (*record.Probe, error) {
	doc, raw, err := s.call(1, "initialize", map[string]any{
		"protocolVersion": protocolVersion,
		"capabilities":    announced(),
		"clientInfo":      map[string]any{"name": "skald-connectors", "version": "1"},
	})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	p := &record.Probe{ProtocolVersion: str(doc, "protocolVersion"), Capabilities: slice(doc, raw, "capabilities"), ServerInfo: slice(doc, raw, "serverInfo")}
	if p.ProtocolVersion == "" {
		return nil, errors.New("initialize: the answer has no protocolVersion")
	}
	if text := str(doc, "instructions"); len(text) <= instructionsLimit {
		p.Instructions = text
	}
	if err := s.notify("notifications/initialized"); err != nil {
		return nil, err
	}
	if caps, ok := doc.Get("capabilities"); !ok || !has(caps, "tools") {
		return p, nil
	}
	cursor := ""
	for page := range probePages {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		doc, raw, err := s.call(page+2, "tools/list", params)
		if err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		if err := addTools(p, doc, raw); err != nil {
			return nil, err
		}
		if cursor = str(doc, "nextCursor"); cursor == "" {
			return p, nil
		}
	}
	return nil, fmt.Errorf("tools/list: more than %d pages", probePages)
}

func addTools(p *record.Probe, doc exactjson.Value, raw []byte) error {
	list, ok := doc.Get("tools")
	if !ok || list.Kind != exactjson.Array {
		return errors.New("tools/list: the answer has no array \"tools\"")
	}
	for _, item := range list.Items {
		tool, err := tooldef.Parse(raw[item.Start:item.End])
		if err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		for _, other := range p.Tools {
			if other.Name == tool.Name {
				return fmt.Errorf("tools/list: the tool %q is there twice", tool.Name)
			}
		}
		p.Tools = append(p.Tools, tool)
	}
	if len(p.Tools) > probeTools {
		return fmt.Errorf("tools/list: more than %d tools", probeTools)
	}
	return nil
}

func str(doc exactjson.Value, key string) string {
	v, ok := doc.Get(key)
	if !ok || v.Kind != exactjson.String {
		return ""
	}
	return v.Str
}

func has(doc exactjson.Value, key string) bool { _, ok := doc.Get(key); return ok }

func slice(doc exactjson.Value, raw []byte, key string) json.RawMessage {
	v, ok := doc.Get(key)
	if !ok {
		return nil
	}
	return json.RawMessage(bytes.Clone(raw[v.Start:v.End]))
}

// stdioPeer speaks to a server over its pipes. Lines that are not the awaited
// answer are read past: notifications, requests of the server's own, and what
// should not be on stdout at all.
type stdioPeer struct {
	in    io.Writer
	out   *bufio.Reader
	noise string // the first line that is no JSON object

	writing   sync.Mutex
	declining chan struct{} // holds one for each answer under way
}

func newStdioPeer(in io.Writer, out io.Reader) *stdioPeer {
	return &stdioPeer{in: in, out: bufio.NewReaderSize(out, 64<<10), declining: make(chan struct{}, declinedAtOnce)}
}

// contentLength begins a message of the Language Server Protocol.
var contentLength = lazyre.New(`^(?i)content-length: *[0-9]+$`)

// instead tells what stood on stdout in place of an answer, for a message.
func (s *stdioPeer) instead(r *keystore.Redactor) string {
	if s.noise == "" {
		return ""
	}
	text := r.String(s.noise) // struck before it is cut: half a value is not found
	if len(text) > noiseShown {
		text = strings.ToValidUTF8(text[:noiseShown], "") + "…"
	}
	return fmt.Sprintf("; its first line on stdout is not a message: %q", text)
}

func (s *stdioPeer) notify(method string) error {
	return s.write(map[string]any{"jsonrpc": "2.0", "method": method})
}

func (s *stdioPeer) write(msg any) error {
	line, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err = s.in.Write(append(line, '\n'))
	return err
}

func (s *stdioPeer) call(id int, method string, params any) (exactjson.Value, []byte, error) {
	if err := s.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		// A server that has ended cannot be written to; the reading says more.
		if _, _, readErr := s.answer(id); readErr != nil {
			return exactjson.Value{}, nil, readErr
		}
		return exactjson.Value{}, nil, err
	}
	return s.answer(id)
}

func (s *stdioPeer) answer(id int) (exactjson.Value, []byte, error) {
	for range probeNoise {
		line, err := readLine(s.out, probeLine)
		if err != nil {
			return exactjson.Value{}, nil, err
		}
		line = bytes.TrimSpace(line)
		if contentLength.Get().Match(line) {
			return exactjson.Value{}, nil, errors.New("it writes Content-Length headers, where one message a line is expected")
		}
		if s.noise == "" && len(line) > 0 && !(line[0] == '{' && line[len(line)-1] == '}') {
			s.noise = string(line)
		}
		result, mine, err := readResult(line, id)
		if mine {
			return result, line, err
		}
		s.decline(line)
	}
	return exactjson.Value{}, nil, fmt.Errorf("no answer among %d lines on stdout", probeNoise)
}

// answerError is an answer that is an error of the protocol.
type answerError struct{ message string }

func (e *answerError) Error() string { return "the server answered with an error: " + e.message }

// readResult takes a JSON-RPC message apart; mine tells whether it answers id.
func readResult(msg []byte, id int) (result exactjson.Value, mine bool, err error) {
	doc, repeats, err := exactjson.Parse(msg, tooldef.Depth)
	if err != nil || doc.Kind != exactjson.Object || slices.ContainsFunc(repeats, topLevel) {
		return result, false, nil
	}
	got, ok := doc.Get("id")
	if !ok || got.Kind != exactjson.Number || got.Str != fmt.Sprint(id) || has(doc, "method") {
		return result, false, nil
	}
	if e, ok := doc.Get("error"); ok {
		return result, true, &answerError{str(e, "message")}
	}
	result, ok = doc.Get("result")
	if !ok || result.Kind != exactjson.Object {
		return result, true, errors.New("the answer has no result")
	}
	return result, true, nil
}

// topLevel tells a repeated member of the message itself: such a message has two
// meanings. Repeats inside a result are judged where they matter.
func topLevel(r exactjson.Repeat) bool { return !strings.ContainsAny(r.Path, ".[") }

// readLine reads one line of bounded length; a last line without an end counts.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("a line on stdout is longer than %d MiB", limit>>20)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// tailWriter keeps the last bytes written to it.
type tailWriter struct {
	limit int
	kept  []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tailWriter) String() string { return string(bytes.ToValidUTF8(t.kept, []byte("\uFFFD"))) }
