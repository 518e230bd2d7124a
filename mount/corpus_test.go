package mount

import (
	"fmt"
	"strings"
	"testing"
)

// sample is one file of a corpus; refused says with which reason it is left alone.
type sample struct {
	name    string
	data    []byte // nil: there is no file
	refused Reason
}

func text(name, s string) sample            { return sample{name: name, data: []byte(s)} }
func bad(name, s string, why Reason) sample { return sample{name, []byte(s), why} }
func crlf(s string) string                  { return strings.ReplaceAll(s, "\n", "\r\n") }
func utf16le(s string) string {
	out := "\xff\xfe"
	for _, c := range []byte(s) {
		out += string([]byte{c, 0})
	}
	return out
}

// corpus gives the files for one client, in its format and with its keys.
func corpus(r *row) []sample {
	switch r.format {
	case tomlFormat:
		return tomlCorpus(r)
	case yamlFormat:
		return yamlCorpus(r)
	}
	return jsonCorpus(r)
}

func jsonCorpus(r *row) []sample {
	k := jsonString(r.key[0])
	other := `{"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "plain"}}`
	populated := "{\n  \"theme\": \"dark\",\n  " + k + ": {\n    \"one\": " + other + ",\n    \"two\": " + other + "\n  },\n  \"z\": [1, 2.50, 1e3]\n}\n"
	out := []sample{
		{name: "missing"}, text("empty", ""), text("blank", " \n\t\n"), text("braces", "{}"), text("braces, line end", "{}\n"), text("spaced braces", "{ }\n"), text("open braces", "{\n}\n"),
		text("populated", populated), text("tabs", strings.ReplaceAll(populated, "  ", "\t")), text("four", strings.ReplaceAll(populated, "  ", "    ")),
		text("CRLF", crlf(populated)), text("mark", byteOrderMark+populated), text("mark and CRLF", byteOrderMark+crlf(populated)),
		text("mark only", byteOrderMark), text("no final line end", strings.TrimSuffix(populated, "\n")), text("three final line ends", populated+"\n\n"),
		text("compact", `{"a":1,`+k+`:{"one":{"command":"x"}},"z":[]}`), text("one line", `{"a": 1, `+k+`: {"one": {"command": "x"}}, "z": []}`),
		text("one line, empty map", `{"a": 1, `+k+`: {}}`), text("no map", "{\n  \"a\": {\"deep\": {\"x\": []}}\n}\n"), text("no map, one line", `{"a":{}}`),
		text("null map", "{\n  "+k+": null,\n  \"b\": 1\n}\n"), text("null map, one line", `{`+k+`:null}`),
		text("empty map", "{\n  "+k+": {},\n  \"b\": 1\n}\n"), text("empty map over lines", "{\n  "+k+": {\n  }\n}\n"), text("map last", "{\n  \"b\": 1,\n  "+k+": {}\n}\n"),
		text("escapes", "{\n  \"a\\u00e9\\\"\\\\\": \"\\ud83d\\ude00 // no comment /* none */ }{\",\n  "+k+": {\n    \"sl/ash\": {\"command\": \"é\\u0000\"}\n  }\n}\n"),
		text("comma first", "{\n  \"a\": 1\n, "+k+": {\n    \"x\": "+other+"\n  , \"y\": "+other+"\n  }\n}\n"),
		text("ugly", "  {\"a\"\n:1 ,\n\n\n      "+k+"   :{ \"x\"  :\n"+other+"  \n\n}\t}  \n \n"),
		text("case twins", "{\n  \"Path\": 1,\n  \"path\": 2,\n  "+k+": {\"A\": {}, \"a\": {}}\n}\n"),
		text("large number", "{\"n\": 123456789012345678901234567890, \"f\": 0.10}\n"),
		bad("truncated", populated[:len(populated)/2], Unreadable), bad("cut in a string", `{"a": "b`, Unreadable), bad("two documents", "{}{}", Unreadable),
		bad("list for map", "{\n  "+k+": []\n}\n", UnexpectedShape), bad("text for map", "{"+k+": \"x\"}", UnexpectedShape), bad("list", "[]", UnexpectedShape), bad("number", "42\n", UnexpectedShape),
		bad("repeated key", "{\n  \"a\": 1,\n  \"a\": 2\n}\n", Unreadable), bad("repeated map", "{"+k+": {}, "+k+": {}}", Unreadable), bad("repeated deep", `{"a": [{"b": {"c": 1, "c": 1}}]}`, Unreadable),
		bad("UTF-16", utf16le(populated), Unreadable), bad("UTF-16 without a mark", utf16le("{}")[2:], Unreadable), bad("not UTF-8", "{\"a\": \"\xff\"}", Unreadable), bad("zeros", "\x00\x00\x00\x00", Unreadable),
		bad("HTML", "<html></html>", Unreadable), bad("single quotes", "{'a': 1}", Unreadable), bad("deep", strings.Repeat("[", 400)+strings.Repeat("]", 400), Unreadable),
	}
	commented := []struct{ name, data string }{
		{"comments", "// head\n{\n  // before\n  " + k + ": { // behind the brace\n    /* one */ \"one\": " + other + ", // note, {\n    // last words\n  }, // }\n  /* tail */\n}\n// end\n"},
		{"trailing commas", "{\n  " + k + ": {\n    \"one\": " + other + ",\n  },\n}\n"}, {"trailing comma, one line", "{" + k + ": {\"a\": {},},}"},
		{"comment at the last", "{\n  " + k + ": {\n    \"one\": " + other + " // note\n  }\n}\n"}, {"block at the last", "{\n  " + k + ": {\n    \"one\": " + other + " /* note */ /* and */\n  }\n}\n"},
		{"comment before the comma", "{\n  \"a\": 1 /* a */ ,\n  \"b\": 2 // b\n  , " + k + ": {} /* c */ }\n"}, {"comments only", "// nothing yet\n/* none */\n"}, {"comment, no line end", "// nothing yet"},
		{"comment in an empty map", "{\n  " + k + ": {\n    // put servers here\n  }\n}\n"}, {"comment CRLF", crlf("{\n  // a\n  " + k + ": {\n    \"x\": {}, // c\n  }\n}\n")},
		{"over lines", "{\n  " + k + ": {\n    \"one\": {} /* goes\n    on */\n  }\n}\n"},
	}
	for _, c := range commented {
		if r.format == commentJSON {
			out = append(out, text(c.name, c.data))
		} else {
			out = append(out, bad(c.name, c.data, Unreadable))
		}
	}
	return append(out, bad("open comment", "{} /* ", Unreadable))
}

func tomlCorpus(r *row) []sample {
	k := r.key[0]
	head, second := "["+k+".one]", "["+k+".\"two words\"]"
	if r.list {
		head, second = "[["+k+"]]\nname = \"one\"", "[["+k+"]]\nname = \"two\""
	}
	populated := "# head\nmodel = \"o3\" # note\n\n" + head + "\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  \"x\",\n]\n\n" + second + "\ncommand = 'y'\n\n[tui]\ntheme = \"dark\"\n"
	out := []sample{
		{name: "missing"}, text("empty", ""), text("blank", "\n\n"), text("comment", "# only\n"), text("comment, no line end", "# only"), text("mark", byteOrderMark+populated), text("CRLF", crlf(populated)),
		text("populated", populated), text("no final line end", strings.TrimSuffix(populated, "\n")), text("final blank lines", populated+"\n\n"),
		text("others only", "a = 1\n[b]\nc = 1979-05-27T07:32:00Z\nd = [1.5, inf]\n[[e]]\nf = true\n[[e]]\n"),
		text("strings", "a = \"\"\"\n["+k+".fake]\n\\\"\"\" \"\"\"\nb = '''\n# no\n[x]'''\nc = \"[\\\"]#\"\nd = '\\'\n"),
		text("dotted", "a.b.c = 1\n\"quoted key\".x = 2\n'lit.eral'.y = { z = [ { q = 1 } ] }\n"), text("spaces", "  a   =  1  \n  [ t . u ]  # c\n\tb=2\n"),
		bad("truncated", populated[:strings.Index(populated, "\"x\",")], Unreadable), bad("repeated key", "a = 1\na = 2\n", Unreadable), bad("repeated table", "[a]\n[a]\n", Unreadable),
		bad("UTF-16", utf16le(populated), Unreadable), bad("not UTF-8", "a = \"\xff\"\n", Unreadable), bad("JSON", "{\"a\": 1}\n", Unreadable), bad("number for map", k+" = 1\n", UnexpectedShape),
		bad("open string", "a = \"x\n", Unreadable),
	}
	if r.list {
		return append(out, text("empty list", k+" = []\nz = 1\n"), text("inline list", k+" = [{ name = \"a\" }, { name = 'b' }]\n"), text("inline list over lines", k+" = [\n  { name = \"a\" }, # note\n  { name = \"b\" },\n]\n"),
			text("list with subtable", head+"\n["+k+".env]\nA = \"b\"\n"), bad("table for list", "["+k+"]\nx = 1\n", UnexpectedShape))
	}
	return append(out, text("inline map", k+" = { a = { command = \"x\" } } # c\nz = 1\n"), text("empty inline map", k+" = {}\n"), text("map header", "["+k+"]\na = { command = \"x\" }\nb.command = \"y\"\n[z]\n"),
		text("dotted servers", k+".a.command = \"x\"\n"+k+".a.env.K = \"v\"\n"), text("subtables", "["+k+".a]\ncommand = \"x\"\n["+k+".a.env]\nK = \"v\"\n"), bad("list for map", "[["+k+"]]\nx = 1\n", UnexpectedShape))
}

func yamlCorpus(r *row) []sample {
	k := r.key[0]
	servers := "  one:\n    cmd: npx # note\n    args:\n      - -y\n\n  two: {cmd: x, enabled: true}\n"
	flow := "{one: {cmd: x}}"
	if r.list {
		servers = "  - name: one\n    command: npx # note\n    args:\n      - -y\n\n  - {name: two, command: x}\n"
		flow = "[{name: one}]"
	}
	populated := "# head\nmodel: \"gpt\" # note\n" + k + ": # servers\n  # the first\n" + servers + "# tail\ntext: |\n  keep\n   this\n\nlast: [1, 2]\n"
	out := []sample{
		{name: "missing"}, text("empty", ""), text("blank", "\n\n"), text("comment", "# only\n"), text("comment, no line end", "# only"), text("mark", byteOrderMark+populated), text("CRLF", crlf(populated)),
		text("populated", populated), text("start mark", "---\n"+populated), text("no final line end", strings.TrimSuffix(populated, "\n")), text("final blank lines", populated+"\n\n"), text("last key", "a: 1\n"+k+":\n"+servers),
		text("four", "a:\n    b: 1\n"+k+":\n"+strings.ReplaceAll("\n"+servers, "\n  ", "\n      ")[1:]), text("none", "a: 1\nb:\n  c: [x]\n"), text("null", "a: 1\n"+k+":\nb: 2\n"), text("null, last", "a: 1\n"+k+":"), text("null with a comment", k+": # none\nb: 2\n"), text("tilde", k+": ~\n"), text("written null", k+": null # c\nb: 1\n"),
		text("flow", "a: 1\n"+k+": "+flow+" # c\n"), text("anchors", "base: &b\n  x: 1\nuse: *b\nmerge:\n  <<: *b\n"+k+":\n"+servers), text("strings", "a: 'it''s'\nb: \"x: y # z\"\nc: >-\n  folded\n  text\nd: 2001-01-01\ne: 0x1F\nf: yes\n"+k+":\n"+servers),
		text("unicode", "é: ü\n"+k+":\n"+servers+"日本: 語\n"), text("document end", "a: 1\n"+k+":\n"+servers+"...\n"),
		bad("tab", "a:\n\tb: 1\n", Unreadable), bad("repeated key", "a: 1\na: 2\n", Unreadable), bad("two documents", "a: 1\n---\nb: 2\n", UnexpectedShape), bad("text for map", k+": hello\n", UnexpectedShape),
		bad("alias for map", "x: &x\n  a: 1\n"+k+": *x\n", UnexpectedShape), bad("anchor at the map", k+": &x\n"+servers, UnexpectedShape), bad("list", "- a\n- b\n", UnexpectedShape), bad("text", "hello\n", UnexpectedShape),
		bad("UTF-16", utf16le(populated), Unreadable), bad("not UTF-8", "a: \xff\n", Unreadable), bad("open string", "a: \"x\n", Unreadable), bad("open flow", "a: [1, 2\n", Unreadable),
	}
	if r.list {
		return append(out, text("empty list", k+": []\n"), text("list at the edge", k+":\n- name: a\n- name: b\nz: 1\n"), text("list of texts", k+":\n  - a\n"), bad("map for list", k+":\n  a: 1\n", UnexpectedShape))
	}
	return append(out, text("empty map", k+": {}\n"), text("quoted keys", "\""+k+"\":\n  'one':\n    cmd: x\n"), bad("list for map", k+":\n  - a\n", UnexpectedShape))
}

func (s sample) String() string { return fmt.Sprintf("%s %.60q", s.name, s.data) }

// Every client has at least twelve files of each kind of ugliness to go through.
func TestCorpusIsLargeEnough(t *testing.T) {
	for _, r := range table() {
		good := 0
		for _, s := range corpus(&r) {
			if s.refused == "" {
				good++
			}
		}
		if good < 12 || len(corpus(&r))-good < 3 {
			t.Errorf("%s: %d files that can be edited, %d that are refused", r.id, good, len(corpus(&r))-good)
		}
	}
}
