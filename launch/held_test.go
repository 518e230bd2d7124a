package launch

import (
	"maps"
	"testing"
	"testing/synctest"

	"skald-connectors/internal/tooldef"
)

// TestHeldIsTold: once after the first look, and whenever it changes.
func TestHeldIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const good, odd = `{"name":"good","description":"A","inputSchema":{}}`, `{"name":"odd","description":"B","inputSchema":{}}`
		def, err := tooldef.Parse([]byte(odd))
		if err != nil {
			t.Fatal(err)
		}
		var told []map[string]string
		o := options()
		o.Grant.Accepted = accepted(t, good)
		o.Held = func(held map[string]string) { told = append(told, held) }
		b := begin(t, o, false)
		b.greet(`{"tools":{}}`)
		list := func(tools string) {
			b.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			b.serve(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools + `]}}`)
		}
		list(good)
		list(good + "," + odd)
		list(good + "," + odd)
		b.s.SetGrant(Grant{Accepted: accepted(t, good, odd)})
		list(good + "," + odd)
		want := []map[string]string{{}, {"odd": def.Digest}, {}}
		if len(told) != len(want) {
			t.Fatalf("told %v", told)
		}
		for i := range want {
			if !maps.Equal(told[i], want[i]) {
				t.Errorf("told %v, want %v", told[i], want[i])
			}
		}
		b.end()
	})
}
