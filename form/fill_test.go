//go:build unix

package form

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skald-connectors/manifest"
)

const (
	xterm  = "xterm-256color"
	canary = "canary-7c1f-secret"
)

var (
	host   = scripted{Field: manifest.Field{Name: "HOST", Label: "Mail server", Required: true, Example: "imap.example.org"}}
	apiKey = scripted{Field: manifest.Field{Name: "KEY", Label: "API key", Secret: true}}
	pem    = scripted{Field: manifest.Field{Name: "PEM", Label: "Private key", Secret: true, Type: "multiline"}}
	last   = scripted{Field: manifest.Field{Name: "LAST", Label: "Last field"}}
)

// pemText is a key-like text of 40 lines, with the given line end, the last one included.
func pemText(end string) string {
	var b strings.Builder
	b.WriteString("-----BEGIN PRIVATE KEY-----" + end)
	for i := range 38 {
		b.WriteString(strings.Repeat(fmt.Sprintf("%02dcanaryQ", i), 7) + "=" + end)
	}
	b.WriteString("-----END PRIVATE KEY-----" + end)
	return b.String()
}

func TestFillTyped(t *testing.T) {
	c := start(t, script{Term: xterm, Color: true, Fields: []scripted{host, apiKey}}, 80, 24)
	c.steps("such as imap.example.org", "mail.test", "mail.test", "\r", "2 of 2", canary, "18 characters", "\r")
	out := c.finish()
	if out.Err != "" || out.Values["HOST"] != "mail.test" || out.Values["KEY"] != canary {
		t.Errorf("outcome %+v", out)
	}
	c.hidden(canary)
	if s := c.text(); s != "" {
		t.Errorf("left on the screen:\n%s", s)
	}
}

func TestNoColour(t *testing.T) {
	for _, colored := range []bool{false, true} {
		c := start(t, script{Term: xterm, Color: colored, Fields: []scripted{host, apiKey}}, 80, 24)
		c.steps("1 of 2", "\r", "required", "\x1b")
		c.finish()
		if got := regexp.MustCompile(`\x1b\[([0-9;]*;)?[349][0-7]m`).MatchString(c.output()); got != colored {
			t.Errorf("Color %v: colours in the output: %v", colored, got)
		}
	}
}

func TestPastedKeyIsKeptByteForByte(t *testing.T) {
	for _, tt := range []struct{ name, sent, want, seen string }{
		{"marked LF", bracketed(pemText("\n")), pemText("\n"), "40 lines"},
		{"marked CRLF", bracketed(pemText("\r\n")), pemText("\r\n"), "40 lines"},
		{"marked CR, as most terminals send LF", bracketed(pemText("\r")), pemText("\n"), "40 lines"},
		{"marked, no line end at the end", bracketed(strings.TrimSuffix(pemText("\n"), "\n")), strings.TrimSuffix(pemText("\n"), "\n"), "40 lines"},
		{"unmarked LF", pemText("\n"), pemText("\n"), "40 lines"},
		{"unmarked CRLF", pemText("\r\n"), pemText("\r\n"), "40 lines"},
		{"unmarked CR", pemText("\r"), pemText("\n"), "40 lines"},
		{"marked 8 KiB", bracketed(strings.Repeat(pemText("\n"), 4)[:8192]), strings.Repeat(pemText("\n"), 4)[:8192], "8192 characters"},
		{"unmarked 8 KiB", strings.Repeat(pemText("\n"), 4)[:8192], strings.Repeat(pemText("\n"), 4)[:8192], "8192 characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, script{Term: xterm, Fields: []scripted{pem, last}}, 80, 24)
			c.steps("1 of 2", tt.sent, tt.seen, "\r", "2 of 2", "\r")
			out := c.finish()
			if got := out.Values["PEM"]; got != tt.want {
				t.Errorf("got %q\nwant %q (%s)", got, tt.want, out.Err)
			}
			if out.Values["LAST"] != "" {
				t.Errorf("the next field received %q", out.Values["LAST"])
			}
			c.hidden("canaryQ")
		})
	}
}

func TestPasteOfSeveralLinesIntoOneLineIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, sent string }{
		{"marked LF", bracketed(pemText("\n"))}, {"marked CRLF", bracketed(pemText("\r\n"))},
		{"unmarked LF", pemText("\n")}, {"unmarked CR", pemText("\r")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, script{Term: xterm, Fields: []scripted{apiKey, last}}, 80, 24)
			c.steps("1 of 2", tt.sent, "the paste has 40 lines; this field takes one. Nothing was added", canary+"\r", "2 of 2", "\r")
			out := c.finish()
			if out.Values["KEY"] != canary || out.Values["LAST"] != "" {
				t.Errorf("outcome %+v", out)
			}
			c.hidden("canaryQ")
			c.hidden(canary)
		})
	}
}

func TestPastedLineEndNeverSubmits(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		c := start(t, script{Term: xterm, Fields: []scripted{apiKey, last}}, 80, 24)
		c.steps("1 of 2", bracketed(canary+end), "18 characters", "\r", "2 of 2", "\r")
		if out := c.finish(); out.Values["KEY"] != canary || out.Values["LAST"] != "" {
			t.Errorf("after %q: %+v", end, out)
		}
	}
}

func TestBack(t *testing.T) {
	c := start(t, script{Term: xterm, Fields: []scripted{host, apiKey, last}}, 80, 24)
	c.steps("1 of 3", "mail.test\r", "2 of 3", canary+"\r", "3 of 3", "\x1b[Z", "2 of 3", "\x1b[Z",
		"1 of 3", "\x1b[H", "> mail.test", "e\r", "2 of 3", "\r", "3 of 3", "\r")
	if out := c.finish(); out.Values["HOST"] != "email.test" || out.Values["KEY"] != canary {
		t.Errorf("outcome %+v", out)
	}
	c.hidden(canary)
}

func TestKeptSecret(t *testing.T) {
	kept, again := apiKey, apiKey
	kept.Name, kept.Kept = "OLD", true
	again.Name, again.Current = "AGAIN", canary
	fields := []scripted{kept, again, last}
	c := start(t, script{Term: xterm, Fields: fields}, 80, 24)
	c.steps("kept; Enter keeps it, typing replaces it", "\r", "entered before, 18 characters; Enter keeps it", "\r", "3 of 3", "\r")
	out := c.finish()
	if !out.Kept["OLD"] || out.Values["OLD"] != "" || out.Values["AGAIN"] != canary || out.Kept["AGAIN"] {
		t.Errorf("outcome %+v", out)
	}
	c.hidden(canary)

	c = start(t, script{Term: xterm, Fields: fields}, 80, 24)
	c.steps("1 of 3", "new-value-1\r", "2 of 3", "new-value-2\r", "3 of 3", "\r")
	if out := c.finish(); out.Kept["OLD"] || out.Values["OLD"] != "new-value-1" || out.Values["AGAIN"] != "new-value-2" {
		t.Errorf("outcome %+v", out)
	}
}

func TestWrongInputIsSaidUnderTheField(t *testing.T) {
	port := scripted{Field: manifest.Field{Name: "PORT", Label: "Port", Type: "number", Default: "993"}}
	asked := last
	asked.Problem = "the server said: no such folder"
	c := start(t, script{Term: xterm, Fields: []scripted{host, port, asked}}, 80, 24)
	c.steps("1 of 3", "\r")
	c.until("a problem under the first field", func(s string) bool { return strings.Contains(s, "1 of 3") && strings.Contains(s, "required") })
	c.steps("1 of 3", "mail.test\r", "> 993", "x\r", "993x", "\r", "number", "\x15", "> ", "143\r", "the server said: no such folder", "\r")
	if out := c.finish(); out.Values["PORT"] != "143" || out.Values["HOST"] != "mail.test" {
		t.Errorf("outcome %+v", out)
	}
}

func TestNotesAsk(t *testing.T) {
	c := start(t, script{Term: xterm, Fields: []scripted{apiKey, last}}, 80, 24)
	c.steps("1 of 2", "abc\r", "too short", "d", "> 4 characters", "\r",
		"too short", "\r", "2 of 2", bracketed(" spaced")+"\r", "Enter takes it as it is.", "\r")
	if out := c.finish(); out.Values["KEY"] != "abcd" || out.Values["LAST"] != " spaced" {
		t.Errorf("outcome %+v", out)
	}
}

func TestChoices(t *testing.T) {
	region := scripted{Field: manifest.Field{Name: "REGION", Label: "Region", Type: "choice", Choices: []string{"eu", "us", "ap"}, Required: true}}
	tls := scripted{Field: manifest.Field{Name: "TLS", Label: "Use TLS", Type: "boolean", Default: "true"}}
	c := start(t, script{Term: xterm, Fields: []scripted{region, tls}}, 80, 24)
	c.steps("> eu", "\x1b[B", "> us", "\r", "2 of 2", "n", "> No", "\r")
	if out := c.finish(); out.Values["REGION"] != "us" || out.Values["TLS"] != "false" {
		t.Errorf("outcome %+v", out)
	}
}

func TestValueFromFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(name, []byte(pemText("\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, script{Term: xterm, Fields: []scripted{pem, last}}, 120, 24)
	c.steps("Paste it, or name a file: @/path/to/file", "@"+name+"x", "key.pemx", "\r", "no such file", "\x7f\r", "2 of 2", "")
	c.expect("read 40 lines")
	c.send("\r")
	if out := c.finish(); out.Values["PEM"] != pemText("\r\n") {
		t.Errorf("outcome %+v", out)
	}
	c.hidden("canaryQ")
}

func TestLateAnswersOfTheTerminalAreNoInput(t *testing.T) {
	c := start(t, script{Term: xterm, Fields: []scripted{host, last}}, 80, 24)
	c.steps("1 of 2", "\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[24;80R\x1b[?2026;2$y\x1b[I", "1 of 2", "mail.test", "> mail.test", "\r", "2 of 2", "\r")
	if out := c.finish(); out.Values["HOST"] != "mail.test" {
		t.Errorf("outcome %+v", out)
	}
}

func TestHostileTextIsShownEscaped(t *testing.T) {
	f := host
	f.Label, f.Description = "Na\x1b]52;c;AAAA\x07me\u202e", "first\x1b[2J\nsecond\U000e0041"
	c := start(t, script{Term: xterm, Title: "T\x9b2J", Fields: []scripted{f, last}}, 80, 24)
	c.expect(`Na\x1b]52;c;AAAA\x07me\u202e`)
	c.expect(`second\U000e0041`)
	c.send("\x1b")
	if out := c.finish(); !out.Aborted {
		t.Errorf("outcome %+v", out)
	}
	if strings.Contains(c.output(), "\x1b]52") || strings.Contains(c.output(), "\x1b[2J") {
		t.Errorf("raw sequence in %q", c.output())
	}
}
