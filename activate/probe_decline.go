package activate

import (
	"encoding/json"

	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/tooldef"
)

// declinedAtOnce bounds the answers that a server does not take.
const declinedAtOnce = 16

// announced is all that a client may be able to do: some servers show a tool
// only to a client that it needs, and a tool that was never seen is held back
// from every client.
func announced() map[string]any {
	none := map[string]any{}
	return map[string]any{"roots": none, "sampling": none, "elicitation": map[string]any{"form": none, "url": none}}
}

// decline answers a request of the server's own, which it may wait for: there
// are no roots, and nobody here is to be asked.
func (s *stdioPeer) decline(line []byte) {
	doc, repeats, err := exactjson.Parse(line, tooldef.Depth)
	id, asked := doc.Get("id")
	if err != nil || len(repeats) > 0 || !asked || str(doc, "method") == "" {
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(line[id.Start:id.End])}
	switch str(doc, "method") {
	case "ping":
		answer["result"] = map[string]any{}
	case "roots/list":
		answer["result"] = map[string]any{"roots": []any{}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "nobody is asked while the tools are listed"}
	}
	// Not here: the server may be waiting for us to read before it reads again.
	select {
	case s.declining <- struct{}{}:
		go func() {
			_ = s.write(answer) // the reading says more
			<-s.declining
		}()
	default: // it asks without reading
	}
}
