package form

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"skald-connectors/manifest"
)

func TestOpenNeedsATerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Open(f, f, Options{Term: "xterm"}); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("a file that is no terminal: %v", err)
	}
	if _, err := Open(nil, f, Options{}); err == nil || err.Error() != "no terminal to ask on" {
		t.Errorf("no file: %v", err)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 🙂":              "plain ä 漢 🙂",
		"a\x1b]52;c;QQ==\x07b":     `a\x1b]52;c;QQ==\x07b`,
		"\x1b[2Jx\r\n\ty\x7f":      `\x1b[2Jx\r\n\ty\x7f`,
		"c1 \u009b2J":              `c1 \u009b2J`,
		"raw c1 \x9b2J":            `raw c1 \x9b2J`,
		"bidi \u202ex\u2066":       `bidi \u202ex\u2066`,
		"tag \U000e0041":           `tag \U000e0041`,
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"soft\u00adhyphen \u2028z": `soft\u00adhyphen \u2028z`,
		"no\u00a0break":            "no\u00a0break",
		"bad \xff\xfe utf8":        `bad \xff\xfe utf8`,
		"replacement \ufffd":       "replacement \ufffd",
		"":                         "",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31mb\u202e\U000e0041\xff\u200b")
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if !utf8.ValidString(c) || strings.ContainsFunc(c, unsafeRune) {
			t.Errorf("Clean(%q) = %q", s, c)
		}
		if Clean(c) != c {
			t.Errorf("Clean is not stable on %q", c)
		}
	})
}

// decodeAll feeds chunks and gives the keys as text, pastes in brackets.
func decodeAll(chunks ...string) string {
	var d decoder
	var b strings.Builder
	drain := func(expired bool) {
		for {
			msg, ok, _ := d.next(expired)
			if !ok {
				return
			}
			switch msg := msg.(type) {
			case tea.PasteMsg:
				b.WriteString("[" + msg.Content + "]")
			case tea.KeyPressMsg:
				b.WriteString("<" + msg.String() + ">")
			}
		}
	}
	for _, c := range chunks {
		d.feed([]byte(c))
		drain(false)
	}
	drain(true)
	return b.String()
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"aä\r\n":                      "<a><ä><enter><ctrl+j>",
		"\x1b":                        "<esc>",
		"\x1b[A\x1bOB\x1b[Z\x1b[3~":   "<up><down><shift+tab><delete>",
		"\x1b\r\x7f\x01\x00":          "<alt+enter><backspace><ctrl+a>",
		"\x1b[1;5Ca":                  "<a>",
		"\x1b]11;rgb:00/00/00\x1b\\x": "<x>",
		"\x1b]11;rgb:00/00/00\x07x":   "<x>",
		pasteStart + "a\x1b[Ab\x00" + pasteEnd + "c": "[a\x1b[Ab\x00]<c>",
		pasteStart + "\xff\r\n" + pasteEnd:           "[\xff\r\n]",
		"\xffa":                                      "<\xff><a>",
		pasteStart + "never ended":                   "",
	} {
		if got := decodeAll(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// FuzzDecode holds that a paste arrives byte for byte and that the borders of reads do not matter.
func FuzzDecode(f *testing.F) {
	f.Add("key\r\n\x1b[A", "pasted\x1b[20\r\n", uint8(3))
	f.Add("\x1b", "\x1b[201", uint8(1))
	f.Fuzz(func(t *testing.T, typed, pasted string, step uint8) {
		if strings.Contains(pasted+pasteEnd[:5], pasteEnd) || strings.Index(pasted+pasteEnd, pasteEnd) != len(pasted) || len(pasted) > maxPaste {
			t.Skip()
		}
		decodeAll(typed) // must not panic, whatever it is
		stream := pasteStart + pasted + pasteEnd + "z"
		var chunks []string
		for n := int(step%16) + 1; len(stream) > n; stream = stream[n:] {
			chunks = append(chunks, stream[:n])
		}
		if got, want := decodeAll(append(chunks, stream)...), "["+pasted+"]<z>"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestMarkBurst(t *testing.T) {
	long := strings.Repeat("k", leastBurst)
	for in, want := range map[string]string{
		"abc\r":              "abc\r",
		"abc\r\n":            "abc\r",
		"y\rx\r":             "y\rx\r", // a slow link
		long + "\r":          long + "\r",
		long + "\nmore":      bracketed(long + "\nmore"),
		long + "\nm\r\x1b[A": bracketed(long+"\nm\r") + "\x1b[A",
	} {
		if got := string(markBurst([]byte(in))); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func bracketed(s string) string { return pasteStart + s + pasteEnd }

func TestEditor(t *testing.T) {
	e := newEditor("one two  ")
	e.cutWord()
	e.home()
	_ = e.insert("ä\xff")
	e.left()
	e.delete()
	e.left()
	e.right()
	if e.text != "äone " || e.at != 2 {
		t.Errorf("%q at %d", e.text, e.at)
	}
	if err := e.paste(strings.Repeat("x", maxValue), false); err == nil || err.Error() != "longer than 64 KiB; nothing was added" {
		t.Errorf("a paste that is too long: %v", err)
	}
	if err := e.paste("a\nb\n", false); err == nil || err.Error() != "the paste has 2 lines; this field takes one. Nothing was added" {
		t.Errorf("a paste of two lines: %v", err)
	}
	if e.text != "äone " {
		t.Errorf("a refused paste changed the text to %q", e.text)
	}
}

func TestFileOfAValue(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"full": maxValue, "over": maxValue + 1, "empty": 0} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"~/full":  "",
		"~/over":  `"~/over" is larger than 64 KiB`,
		"~/empty": `"~/empty" is empty`,
		"~/none":  `reading "~/none": no such file or directory`,
		"~/":      `"~/" is not a file`,
	} {
		got := ""
		if _, err := readFile(path, dir); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if _, err := readFile("~/full", ""); err == nil {
		t.Error("a home folder that is not known was found")
	}
}

func TestPrefill(t *testing.T) {
	secret := manifest.Field{Name: "K", Secret: true, Default: "never"}
	if e := newEntry(Question{Field: secret}, ""); e.buf != "" || strings.Contains(e.placeholder(true), "never") {
		t.Errorf("the default of a secret is used: %q", e.buf)
	}
	open := manifest.Field{Name: "K", Default: "993", Required: true}
	if e := newEntry(Question{Field: open}, ""); e.buf != "993" {
		t.Errorf("the default is not filled in: %q", e.buf)
	}
	if c, n, _ := newEntry(Question{Field: open}, "").check("994"); c != "994" || len(n) != 0 {
		t.Errorf("check gives %q, %q", c, n)
	}
}

func TestFrameIsRedrawnInPlace(t *testing.T) {
	s := newScreenText(10, 4)
	var f frame
	s.write([]byte("before\r\n"))
	s.write([]byte(f.draw("one\ntwo", 10, 4)))
	s.write([]byte(f.draw("ONE\nTWO\nTHREE is too long", 10, 4)))
	if got := s.String(); got != "before\nONE\nTWO\nTHREE is t" {
		t.Errorf("got %q", got)
	}
	s.write([]byte(f.erase()))
	if got := s.String(); got != "before" || f.erase() != "" {
		t.Errorf("after erase %q", got)
	}
}
