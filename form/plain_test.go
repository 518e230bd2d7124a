//go:build unix

package form

import (
	"strings"
	"testing"

	"skald-connectors/manifest"
)

// plainScripts are the terminals that get line prompts. The first may still be asked to mark pastes.
var plainScripts = map[string]script{
	"accessible": {Term: xterm, Accessible: true},
	"dumb":       {Term: "dumb"},
	"unset":      {Term: ""},
}

func TestPlainPrompts(t *testing.T) {
	for name, sc := range plainScripts {
		t.Run(name, func(t *testing.T) {
			sc.Fields = []scripted{host, apiKey,
				{Field: manifest.Field{Name: "TLS", Label: "Use TLS", Type: "boolean", Default: "true"}},
				{Field: manifest.Field{Name: "PORT", Label: "Port", Type: "number", Default: "993"}}}
			c := start(t, sc, 80, 40)
			c.steps("such as imap.example.org", "mailx\x7f.test\r", "what you type is not shown", canary+"\r", "(18 characters)", "",
				"Enter takes 1", "no\r", "Enter takes 993", "x\r", "number", "143\r")
			out := c.finish()
			if out.Values["HOST"] != "mail.test" || out.Values["KEY"] != canary || out.Values["TLS"] != "false" || out.Values["PORT"] != "143" {
				t.Errorf("outcome %+v", out)
			}
			c.hidden(canary)
			if name != "accessible" && strings.Contains(c.output(), "\x1b") {
				t.Errorf("an escape sequence for a dumb terminal: %q", c.output())
			}
		})
	}
}

// TestPlainChoiceFits: what is offered breaks between words, below its text.
func TestPlainChoiceFits(t *testing.T) {
	c := start(t, script{Term: "dumb", Do: "choose", Title: "What now, with a question that is too long?"}, 20, 40)
	c.steps("[number; Enter", "2\r")
	if out := c.finish(); out.Values["choose"] != "retry" {
		t.Errorf("outcome %+v", out)
	}
	for _, want := range []string{"What now, with a\r\nquestion that is\r\ntoo long?", "  1) Edit the\r\n     answers\r\n", "  [number; Enter\r\n  takes 1]\r\n"} {
		if !strings.Contains(c.output(), want) {
			t.Errorf("%q is not in %q", want, c.output())
		}
	}
}

func TestPlainTypedAhead(t *testing.T) {
	c := start(t, script{Term: "dumb", Fields: []scripted{host, apiKey, last}}, 80, 40)
	c.send("mail.test\n" + canary + "\nthe end\n")
	if out := c.finish(); out.Values["HOST"] != "mail.test" || out.Values["KEY"] != canary || out.Values["LAST"] != "the end" {
		t.Errorf("outcome %+v", out)
	}
}

func TestPlainPastedKey(t *testing.T) {
	for _, tt := range []struct {
		name, sent, want string
		sc               script
	}{
		{"marked LF", bracketed(pemText("\n")) + "\r", pemText("\n"), plainScripts["accessible"]},
		{"marked CRLF", bracketed(pemText("\r\n")) + "\r", pemText("\r\n"), plainScripts["accessible"]},
		{"unmarked LF", pemText("\n"), pemText("\n"), plainScripts["dumb"]},
		{"unmarked CRLF", pemText("\r\n"), pemText("\r\n"), plainScripts["dumb"]},
		{"unmarked CR", pemText("\r"), pemText("\n"), plainScripts["dumb"]},
		{"two blocks", pemText("\n") + pemText("\n"), pemText("\n") + pemText("\n"), plainScripts["dumb"]},
		{"other text, ended by a dot", "line one\rline two\r.\r", "line one\nline two\n", plainScripts["dumb"]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.sc.Fields = []scripted{pem, last}
			c := start(t, tt.sc, 80, 60)
			c.steps("a line with only a dot", tt.sent, "lines, ", "", "Last field", "\r")
			out := c.finish()
			if out.Values["PEM"] != tt.want || out.Values["LAST"] != "" {
				t.Errorf("got %q, next field %q\nwant %q", out.Values["PEM"], out.Values["LAST"], tt.want)
			}
			c.hidden("canaryQ")
			c.hidden("line one")
		})
	}
}

func TestPlainPasteOfSeveralLinesIntoOneLineIsRefused(t *testing.T) {
	for name, sent := range map[string]string{"accessible": bracketed(pemText("\n")), "dumb": pemText("\n")} {
		t.Run(name, func(t *testing.T) {
			sc := plainScripts[name]
			sc.Fields = []scripted{apiKey, last}
			c := start(t, sc, 80, 60)
			c.steps("not shown", sent, "40 lines", canary+"\r", "Last field", "\r")
			if out := c.finish(); out.Values["KEY"] != canary || out.Values["LAST"] != "" {
				t.Errorf("outcome %+v", out)
			}
			c.hidden("canaryQ")
		})
	}
}

func TestPlainBackKeptAndNotes(t *testing.T) {
	kept := apiKey
	kept.Kept = true
	c := start(t, script{Term: "dumb", Fields: []scripted{kept, last}}, 80, 40)
	c.steps("kept; Enter keeps it", "abc-qx\r", "Take it as it is?", "n\r", "Then once more", "\r", "Last field", "\x1b[Z")
	c.until("the first question again", func(s string) bool { return strings.Count(s, "API key") == 2 })
	c.send("abc-qx\r")
	c.until("the note again", func(s string) bool { return strings.Count(s, "Take it as it is?") == 2 })
	c.send("y\r")
	c.until("the second question again", func(s string) bool { return strings.Count(s, "Last field") == 2 })
	c.send("x\r")
	if out := c.finish(); out.Values["KEY"] != "abc-qx" || out.Kept["KEY"] || out.Values["LAST"] != "x" {
		t.Errorf("outcome %+v", out)
	}
	c.hidden("abc-qx")
}

// TestQuestionsOfTheCommand runs the questions that are no connector's fields, in both modes.
func TestQuestionsOfTheCommand(t *testing.T) {
	for _, tt := range []struct {
		name, do    string
		drawn, dumb []string // expect, send, ...
		want, shown string   // the answer; what stays on the screen when drawn
	}{
		{"yes", "confirm", []string{"> Cancel", "y", "> Install", "\r"}, []string{"Enter takes 1", "y\r"}, "yes", "It will run here.\nIt asks for one key.\n\nSet up gmail Install"},
		{"no is preselected", "confirm", []string{"> Cancel", "\r"}, []string{"Enter takes 1", "\r"}, "no", "It will run here.\nIt asks for one key.\n\nSet up gmail Cancel"},
		{"choose", "choose", []string{"> Edit", "2", "> Try again", "\r"}, []string{"Enter takes 1", "7\r", "none of them", "Try again\r"}, "retry", "Set up gmail Try again"},
		{"pick all", "pick", []string{"> [x] Claude Code", "\r"}, []string{"Enter takes all", "\r"}, "claude-code cursor codex", "Set up gmail Claude Code, Cursor, Codex"},
		{"pick two", "pick", []string{"> [x] Claude Code", "\x1b[B", "> [x] Cursor", " ", "> [ ] Cursor", "\r"}, []string{"Enter takes all", "4\r", "none of them", "1,3\r"}, "claude-code codex", "Set up gmail Claude Code, Codex"},
		{"pick none", "pick", []string{"> [x] Claude Code", "\x01", "> [ ] Claude Code", "\r"}, []string{"Enter takes all", "none\r"}, "", "Set up gmail none"},
		{"passphrase", "passphrase", []string{"Passphrase", "\r", "cannot be empty", canary, "18 characters", "\r"}, []string{"not shown", canary + "\r"}, canary, ""},
		{"new passphrase", "new-passphrase", []string{"1 of 2", canary + "\r", "2 of 2", "canary-other\r", "the two are not the same", "\x15" + canary + "\r"},
			[]string{"not shown", canary + "\r", "The same again", "canary-other\r", "the two are not the same", canary + "\r"}, canary, ""},
		{"typed", "type", []string{"Type gmail to go on", "gmial\r", `that is not "gmail"`, "\x15gmail\r"}, []string{"Type gmail", "gmail\r"}, "yes", ""},
		{"not typed", "type", []string{"Type gmail to go on", "\r"}, []string{"Type gmail", "\r"}, "no", ""},
	} {
		for _, term := range []string{xterm, "dumb"} {
			t.Run(tt.name+" "+term, func(t *testing.T) {
				t.Parallel()
				c := start(t, script{Term: term, Do: tt.do}, 80, 24)
				if term == "dumb" {
					c.steps(tt.dumb...)
				} else {
					c.steps(tt.drawn...)
				}
				out := c.finish()
				if got := out.Values[strings.TrimPrefix(tt.do, "new-")]; got != tt.want || out.Err != "" {
					t.Errorf("outcome %+v, want %q", out, tt.want)
				}
				c.hidden("canary")
				if term != "dumb" && c.text() != tt.shown {
					t.Errorf("left on the screen:\n%s", c.text())
				}
			})
		}
	}
}
