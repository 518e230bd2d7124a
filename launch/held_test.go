package launch

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"skald-connectors/internal/tooldef"
)

// TestHeldIsTold: after each look at all tools, and when a part of them shows more.
func TestHeldIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const good, odd = `{"name":"good","description":"A","inputSchema":{}}`, `{"name":"odd","description":"B","inputSchema":{}}`
		def, err := tooldef.Parse([]byte(odd))
		if err != nil {
			t.Fatal(err)
		}
		var told []map[string]string
		var wholes []bool
		o := options()
		o.Grant.Accepted = accepted(t, good)
		o.Held = func(held map[string]string, whole bool) { told, wholes = append(told, held), append(wholes, whole) }
		b := begin(t, o, false)
		b.greet(`{"tools":{}}`)
		page := func(tools, more string) {
			b.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			b.serve(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools + `]` + more + `}}`)
		}
		list := func(tools string) { page(tools, "") }
		list(good)
		list(good + "," + odd)
		list(good + "," + odd)
		b.s.SetGrant(Grant{Accepted: accepted(t, good, odd)})
		list(good + "," + odd)
		b.s.SetGrant(Grant{Accepted: accepted(t, good)})
		page(good, `,"nextCursor":"2"`)
		page(odd, `,"nextCursor":"3"`)
		page(odd, `,"nextCursor":"3"`)
		list(``)
		b.s.SetGrant(Grant{Accepted: accepted(t, good), Deny: []string{"odd"}})
		list(good + "," + odd)
		odds := map[string]string{"odd": def.Digest}
		want := []map[string]string{{}, odds, odds, {}, odds, odds, {}}
		if !slices.Equal(wholes, []bool{true, true, true, true, false, true, true}) {
			t.Errorf("of all tools: %v", wholes)
		}
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
