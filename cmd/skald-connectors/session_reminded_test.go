//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestReminded parks an open session of the reference server and wakes it: log level and
// subscriptions of the client are in force in the server that took the place of the first.
func TestReminded(t *testing.T) {
	server := peerCommand(t, "mcp-server-everything", "@modelcontextprotocol/server-everything")
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, shipped{id: "everything", change: func(m map[string]any) {
		m["mcp_config"] = map[string]any{"command": server[0], "args": server[1:]}
		m["env"] = []map[string]any{{"name": "KEY", "secret": true, "required": true}}
	}}))
	p.do("install", "everything", "--yes", "--allow-command", "--sandbox", "none", "--secret-env", "KEY=THE_PASSWORD")
	const (
		uri     = "demo://resource/dynamic/text/1"
		updated = `{"method":"notifications/resources/updated","params":{"uri":"` + uri + `"},"jsonrpc":"2.0"}`
		chatter = `"notifications/message"`
	)
	s := p.run("everything")
	s.greet()
	heard := func() string { return s.all.String() }
	s.ask("resources/subscribe", `{"uri":"`+uri+`"}`)
	if !strings.Contains(heard(), chatter) {
		t.Fatal("the server says nothing on its log when it is subscribed to; this test rests on it")
	}
	s.ask("logging/setLevel", `{"level":"error"}`)

	p.do("secrets", "remove", "everything", "KEY")
	s.until("connector.auth_required", "tools/call", `{"name":"echo","arguments":{"message":"x"}}`)
	p.do("configure", "everything", "--secret-env", "KEY=THE_PASSWORD")
	s.until("Echo: x", "tools/call", `{"name":"echo","arguments":{"message":"x"}}`)

	before := strings.Count(heard(), chatter)
	s.ask("tools/call", `{"name":"toggle-subscriber-updates","arguments":{}}`)
	s.ask("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/2"}`)
	if !strings.Contains(heard(), updated) {
		t.Errorf("the subscription is gone: %s", heard())
	}
	if n := strings.Count(heard(), chatter) - before; n != 0 {
		t.Errorf("%d messages below the level that the client has asked for", n)
	}
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	p.noCanary(s)
}

// TestOnlyTheStatus asks a server without resources for them: it is not asked, since it
// would say that there is no such method, and the launcher said that there is.
func TestOnlyTheStatus(t *testing.T) {
	p := newPlace(t)
	p.installMail()
	s := p.run("mail")
	s.expect(s.greet(), `"resources"`)
	s.expect(s.ask("resources/list", `{}`), `"result":{"resources":[{"uri":"connector://mail/status"`)
	s.expect(s.ask("resources/templates/list", `{}`), `"result":{"resourceTemplates":[]}`)
	s.expect(s.ask("resources/read", `{"uri":"file:///etc/passwd"}`), `"code":-32002`)
	s.expect(s.ask("resources/read", `{"uri":"connector://mail/status"}`), `\"state\":\"authorized\"`)
	_ = s.in.Close()
	s.end()
}
