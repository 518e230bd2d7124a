package activate

import (
	"bytes"
	"encoding/json"

	"skald-connectors/activate/record"
	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/tooldef"
	"skald-connectors/keystore"
)

// strike takes the values of the activation out of what the server said of
// itself, which is written to disk: a server that greets with its user's token
// does so by accident. Digests stay those of the definitions as received.
func strike(p *record.Probe, r *keystore.Redactor) {
	p.ProtocolVersion, p.Instructions = r.String(p.ProtocolVersion), r.String(p.Instructions)
	p.Capabilities, p.ServerInfo = strikeJSON(p.Capabilities, r), strikeJSON(p.ServerInfo, r)
	for i := range p.Tools {
		t := &p.Tools[i]
		t.Title, t.Raw = r.String(t.Title), strikeJSON(t.Raw, r)
	}
}

// strikeJSON strikes out the values in the strings of a JSON text; its
// structure and keys stay, whatever a value looks like.
func strikeJSON(raw []byte, r *keystore.Redactor) []byte {
	doc, _, err := exactjson.Parse(raw, tooldef.Depth)
	if err != nil {
		return raw // it was read by the same reader before
	}
	var out bytes.Buffer
	done := 0
	var walk func(v exactjson.Value)
	walk = func(v exactjson.Value) {
		for _, m := range v.Members {
			walk(m.Value)
		}
		for _, item := range v.Items {
			walk(item)
		}
		if v.Kind != exactjson.String {
			return
		}
		struck := r.String(v.Str)
		if struck == v.Str {
			return
		}
		text, err := json.Marshal(struck)
		if err != nil {
			return
		}
		out.Write(raw[done:v.Start])
		out.Write(text)
		done = v.End
	}
	walk(doc)
	if done == 0 {
		return raw
	}
	out.Write(raw[done:])
	return out.Bytes()
}
