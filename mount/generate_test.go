package mount

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// generator writes random files of a format, well-formed and ugly.
type generator struct {
	r        *rand.Rand
	comments bool
	eol      string
}

func (g *generator) one(of ...string) string { return of[g.r.IntN(len(of))] }

// gap is white space, with comments where the format has them.
func (g *generator) gap() string {
	out := g.one("", "", " ", "  ", "\t", g.eol, g.eol+"  ", g.eol+g.eol+"\t")
	if g.comments && g.r.IntN(5) == 0 {
		out += g.one("/* a */", "/* { , \" */ ", "// ] note"+g.eol, "//"+g.eol+"  ")
	}
	return out
}

func (g *generator) key(i int) string {
	return jsonString(g.one("k", "sl/ash", "é", "with \"quotes\"", "日本", "a.b", "//") + fmt.Sprint(i))
}

func (g *generator) value(depth int) string {
	if depth > 0 && g.r.IntN(3) == 0 {
		n := g.r.IntN(4)
		parts := make([]string, n)
		for i := range parts {
			parts[i] = g.value(depth - 1)
		}
		return g.list("[", "]", parts)
	}
	if depth > 0 && g.r.IntN(2) == 0 {
		return g.object(depth-1, "")
	}
	return g.one("1", "-0.50", "1e400", "true", "null", `""`, `"x"`, `"\u00e9\\\""`, `"// no /* comment"`, `"}"`, "[]", "{}")
}

func (g *generator) list(open, end string, parts []string) string {
	var b strings.Builder
	b.WriteString(open)
	for i, p := range parts {
		b.WriteString(g.gap() + p + g.gap())
		if i < len(parts)-1 || g.comments && g.r.IntN(3) == 0 {
			b.WriteString(",")
		}
	}
	b.WriteString(g.gap() + end)
	return b.String()
}

// object has the member named, if any, at a random place.
func (g *generator) object(depth int, named string) string {
	var parts []string
	for i := range g.r.IntN(4) {
		parts = append(parts, g.key(i)+g.gap()+":"+g.gap()+g.value(depth))
	}
	if named != "" {
		at := g.r.IntN(len(parts) + 1)
		parts = append(parts[:at], append([]string{named}, parts[at:]...)...)
	}
	return g.list("{", "}", parts)
}

func TestGeneratedJSON(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := &generator{r: r, comments: r.IntN(2) == 0, eol: []string{"\n", "\r\n"}[r.IntN(2)]}
		named := ""
		if r.IntN(4) > 0 {
			named = `"mcpServers"` + g.gap() + ":" + g.gap() + g.one("null", "{}", g.object(2, ""), g.object(2, ""), g.object(3, ""))
		}
		src := g.one("", "", byteOrderMark) + g.gap() + g.object(3, named) + g.gap()
		generated(t, textEdit{jsonEditor{comments: g.comments}, place{path: []string{"mcpServers"}}}, zedShape, []byte(src))
	}
}

func TestGeneratedTOML(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := &generator{r: r, eol: []string{"\n", "\r\n"}[r.IntN(2)]}
		list := r.IntN(2) == 0
		value := func() string {
			return g.one(`"x"`, `'C:\x'`, `"""`+g.eol+`[no] \"""" `, "'''#'''", "1", "-1.5e3", "true", "1979-05-27", "[1, 2, # c"+g.eol+" 3]", "{ a = 1, b.c = \"}\" }", "[]")
		}
		var b strings.Builder
		for i := range r.IntN(3) {
			fmt.Fprintf(&b, "%s%s%d%s=%s%s%s%s", g.one("", "  "), g.one("k", "\"q k\".", "'l'.x"), i, g.one("", " "), g.one("", " "), value(), g.one("", " # note", "\t#[x]"), g.eol)
		}
		for i := range r.IntN(4) {
			b.WriteString(g.one("", g.eol, "# c"+g.eol))
			if list {
				fmt.Fprintf(&b, "[[mcp_servers]]%sname = \"s%d\"%s", g.eol, i, g.eol)
			} else {
				fmt.Fprintf(&b, "[%s.%s%d]%s", g.one("mcp_servers", "other", "\"mcp_servers\"", "a . b"), g.one("s", "'x y'.z"), i, g.eol)
			}
			fmt.Fprintf(&b, "v = %s%s", value(), g.eol)
		}
		src := g.one("", byteOrderMark) + b.String() + g.one("", g.eol, "# end"+g.eol)
		e := textEdit{tomlEditor{}, place{path: []string{"mcp_servers"}, list: list}}
		if _, err := e.read([]byte(src)); err != nil {
			continue // a table twice
		}
		generated(t, e, vibeShape, []byte(src))
	}
}

func TestGeneratedYAML(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := &generator{r: r, eol: []string{"\n", "\r\n"}[r.IntN(2)]}
		list := r.IntN(2) == 0
		step := strings.Repeat(" ", 1+r.IntN(4))
		value := func(pad string) string {
			return g.one("x", "'a: b'", "\"# no\"", "1", "true", "~", "[a, b]", "{a: 1}", "|"+g.eol+pad+"text"+g.eol+g.eol+pad+" more", ">-"+g.eol+pad+"folded") + g.one("", "")
		}
		var b strings.Builder
		b.WriteString(g.one("", "---"+g.eol, "# head"+g.eol, byteOrderMark))
		other := func(i int) {
			fmt.Fprintf(&b, "%sk%d: %s%s%s", g.one("", "# c"+g.eol, g.eol), i, value(step), g.one("", g.eol+"# after"), g.eol)
		}
		for i := range r.IntN(3) {
			other(i)
		}
		if n := r.IntN(4); n > 0 {
			b.WriteString("servers:" + g.one("", " # note") + g.eol)
			for i := range n {
				b.WriteString(g.one("", step+"# c"+g.eol, g.eol))
				if list {
					fmt.Fprintf(&b, "%s- name: s%d%s%s  v: %s%s", step, i, g.eol, step, value(step+"    "), g.eol)
				} else {
					fmt.Fprintf(&b, "%ss%d:%s%s v: %s%s", step, i, g.eol, step, value(step+"    "), g.eol)
				}
			}
		}
		for i := range r.IntN(3) {
			other(i + 5)
		}
		src := strings.ReplaceAll(b.String(), "\r\n", "\n")
		generated(t, textEdit{yamlEditor{}, place{path: []string{"servers"}, list: list}}, namedShape, []byte(strings.ReplaceAll(src, "\n", g.eol)))
	}
}

// generated puts an entry in and takes it out; where others stand beside it the text
// is the same afterwards.
func generated(t *testing.T, e textEdit, s shape, src []byte) {
	t.Helper()
	before, err := e.read(src)
	if err != nil {
		t.Fatalf("generated badly: %v\n%s", err, src)
	}
	out, err := e.set(src, "mail", s.entry("mail", "/p q/skald-connectors", []string{"run", "mail"}))
	if err != nil {
		t.Fatalf("refused: %v\n%s", err, src)
	}
	if !contains(out, dropNull(src)) {
		t.Fatalf("bytes were lost:\n%s\n%s", src, out)
	}
	if bytes.Contains(src, []byte("\r\n")) && bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n"))+bytes.Count(src, []byte("\n"))-bytes.Count(src, []byte("\r\n")) {
		t.Fatalf("other line ends:\n%q\n%q", src, out)
	}
	back, err := e.unset(out, "mail")
	if err != nil {
		t.Fatalf("not taken out: %v\n%s", err, out)
	}
	others := len(e.place.entries(before)) > 0
	if others && !bytes.Equal(back, src) && !bytes.Equal(bytes.TrimRight(back, "\r\n"), bytes.TrimRight(src, "\r\n")) {
		t.Fatalf("taken out, it differs:\n%q\n%q\n%q", src, out, back)
	}
	after, err := e.read(back)
	if err != nil || !e.place.sameForeign(before, after, "mail") {
		t.Fatalf("the values differ: %v\n%s\n%s", err, src, back)
	}
}
