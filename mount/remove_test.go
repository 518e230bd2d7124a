package mount

import (
	"fmt"
	"strings"
	"testing"
)

// An entry of ours that its client or a person wrote anew, in all the ways that a
// format has for it, goes out alone.
func TestTakenOutOfOtherHands(t *testing.T) {
	toml := textEdit{tomlEditor{}, place{path: []string{"mcp_servers"}}}
	tables := textEdit{tomlEditor{}, place{path: []string{"mcp_servers"}, list: true}}
	yaml := textEdit{yamlEditor{}, place{path: []string{"ext"}}}
	items := textEdit{yamlEditor{}, place{path: []string{"ext"}, list: true}}
	json := textEdit{jsonEditor{comments: true}, place{path: []string{"s"}}}
	for i, c := range []struct {
		e         textEdit
		src, want string
	}{
		{toml, "a = 1\n\n[mcp_servers.mail]\ncommand = \"x\"\nargs = [\n  \"run\",\n  \"mail\",\n]\n\n[mcp_servers.mail.env]\nA = \"b\"\n\n[tui]\nx = 1\n", "a = 1\n\n[tui]\nx = 1\n"},
		{toml, "[mcp_servers.mail.env]\nA = 'b'\n[other]\n[mcp_servers.mail]\ncommand = 'x'\n# tail\n", "[other]\n# tail\n"},
		{toml, "mcp_servers.mail.command = 'x'\nb = 2\nmcp_servers.mail.args = []\nmcp_servers.o.command = 'y'\n", "b = 2\nmcp_servers.o.command = 'y'\n"},
		{toml, "[mcp_servers]\nmail = { command = 'x' } # ours\no = { command = 'y' }\n", "[mcp_servers]\no = { command = 'y' }\n"},
		{toml, "[mcp_servers]\nmail.command = 'x'\n\"mail\".args = []\n# note\n", "[mcp_servers]\n# note\n"},
		{toml, "mcp_servers = { mail = { command = 'x' }, o = { command = 'y' } }\n", "mcp_servers = { o = { command = 'y' } }\n"},
		{toml, "mcp_servers = { o = { command = 'y' }, mail.command = 'x', mail.args = ['}'] } # n\n", "mcp_servers = { o = { command = 'y' } } # n\n"},
		{toml, "mcp_servers.o = { command = 'y' }\nmcp_servers.mail = { command = 'x' }", "mcp_servers.o = { command = 'y' }\n"},
		{toml, "[\"mcp_servers\" . 'mail']\ncommand = '''\n[not.a.table]\n'''\n[z]\n", "[z]\n"},
		{tables, "[[mcp_servers]]\nname = \"mail\"\n[mcp_servers.env]\nA = 'b'\n\n[[mcp_servers]]\nname = \"o\"\n", "\n[[mcp_servers]]\nname = \"o\"\n"},
		{tables, "[[mcp_servers]]\nname = 'o'\n\n[[mcp_servers]]\ncommand = 'x'\nname = 'mail'\n[z]\n", "[[mcp_servers]]\nname = 'o'\n[z]\n"},
		{tables, "mcp_servers = [\n  { name = \"mail\" }, # ours\n  { name = \"o\" },\n]\n", "mcp_servers = [ # ours\n  { name = \"o\" },\n]\n"},
		{tables, "mcp_servers = [\n  { name = \"o\" }, # o\n  # about mail\n  { name = \"mail\" } # ours\n]\n", "mcp_servers = [\n  { name = \"o\" } # o\n  # about mail\n # ours\n]\n"},
		{tables, "mcp_servers = [ { name = 'o' }, { name = 'mail' } ]\n", "mcp_servers = [ { name = 'o' } ]\n"},
		{yaml, "ext:\n  o: {a: 1}\n  # about mail\n  mail:\n    cmd: x\n    args:\n      - run\n      - |\n        several\n        lines\n  # about p\n  p: {a: 2}\n", "ext:\n  o: {a: 1}\n  # about mail\n  # about p\n  p: {a: 2}\n"},
		{yaml, "ext:\n  mail: {cmd: x,\n    args: [run,\n      mail]\n    }\n  p: 1\nz: 2\n", "ext:\n  p: 1\nz: 2\n"},
		{yaml, "ext:\n  o: 1\n  \"mail\":\n    cmd: \"long\n      text\"\nz: 2\n", "ext:\n  o: 1\nz: 2\n"},
		{yaml, "ext: # c\n    mail:\n        cmd: x\n# tail\n", "ext: {} # c\n# tail\n"},
		{yaml, "ext: {o: 1, mail: {cmd: 'it''s'}, p: {x: \"}\"}}\n", "ext: {o: 1, p: {x: \"}\"}}\n"},
		{yaml, "ext: {o: [1, 2], 'mail': {cmd: x}} # c\n", "ext: {o: [1, 2]} # c\n"},
		{items, "ext:\n- name: o\n- cmd: x\n  name: mail\n  args:\n  - run\n- name: p\n", "ext:\n- name: o\n- name: p\n"},
		{items, "ext:\n  - name: mail\n    cmd: x\nz: 1\n", "ext: []\nz: 1\n"},
		{items, "ext: [{name: o}, {name: mail, args: [run]}]\n", "ext: [{name: o}]\n"},
		{json, "{\"s\": {\n  \"mail\": {} // ours?\n  , \"o\": {}\n}}", "{\"s\": { // ours?\n   \"o\": {}\n}}"},
		{json, "{\n  \"s\": {\n    \"o\": {}, // o\n    // mail\n    \"mail\": {\"command\": \"x\"} // m\n  } // s\n}\n", "{\n  \"s\": {\n    \"o\": {} // o\n    // mail\n // m\n  } // s\n}\n"},
		{json, "{\"s\": {\"o\": 1, // c\n  \"mail\": {} }}", "{\"s\": {\"o\": 1 // c\n }}"},
		{json, "{\"s\":{\"o\":1,\"\\u006dail\":{},\"p\":2}}", "{\"s\":{\"o\":1,\"p\":2}}"},
	} {
		out, err := c.e.unset([]byte(c.src), "mail")
		if err != nil || string(out) != c.want {
			t.Errorf("%d: %v\n%q became\n%q, want\n%q", i, err, c.src, out, c.want)
		}
		crlfOut, err := c.e.unset([]byte(strings.ReplaceAll(c.src, "\n", "\r\n")), "mail")
		if want := strings.ReplaceAll(c.want, "\n", "\r\n"); !strings.Contains(c.src, "'''") && (err != nil || string(crlfOut) != want) {
			t.Errorf("%d with CRLF: %v\n%q, want\n%q", i, err, crlfOut, want)
		}
	}
}

// What cannot be taken out alone is refused with its line.
func TestTangledEntriesAreRefused(t *testing.T) {
	for src, want := range map[string]string{
		"ext:\n  mail: &m\n    cmd: x\n  o: *m\n":        "ext:\n  mail",
		"ext: {o: 1, mail: {cmd: x, # c\n  args: []}}\n": "too intricate",
		"ext: &e\n  mail: 1\nz: *e\n":                    "anchor",
	} {
		e := textEdit{yamlEditor{}, place{path: []string{"ext"}}}
		out, err := e.unset([]byte(src), "mail")
		if err == nil {
			t.Errorf("%q became %q", src, out)
		}
		_ = want
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, ed := range []editor{tomlEditor{}, yamlEditor{}, jsonEditor{}} {
		if _, err := ed.tree([]byte("a = " + deep)); err == nil {
			t.Errorf("%s accepts 20000 brackets", fmt.Sprintf("%T", ed))
		}
	}
}
