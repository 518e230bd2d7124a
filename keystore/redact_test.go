package keystore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const pemValue = "-----BEGIN PRIVATE KEY-----\n" +
	"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" +
	"MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n" +
	"NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0V==\n" +
	"-----END PRIVATE KEY-----\n"

// asJSON is s as the inside of a JSON string, with Go's HTML escapes or without.
func asJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

func everyUnicode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

func TestRedactForms(t *testing.T) {
	token := `s3cr/t+<Tök&n>"\x='q`
	python := `s3cr/t+<T\u00f6k&n>\"\\x='q`
	php := `s3cr\/t+<T\u00f6k&n>\"\\x='q`
	dotnet := `s3cr/t\u002B\u003CT\u00F6k\u0026n\u003E\u0022\\x=\u0027q`
	gson := `s3cr/t+\u003cTök\u0026n\u003e\"\\x\u003d\u0027q`
	rows := map[string]string{
		"raw": token, "go": asJSON(token, true), "js": asJSON(token, false), "python": python, "php": php, "dotnet": dotnet, "gson": gson,
		"json in json": asJSON(asJSON(token, false), false), "json in go json": asJSON(asJSON(token, true), true), "python in js": asJSON(python, false),
		"query": url.QueryEscape(token), "path": url.PathEscape(token),
		"hex": hex.EncodeToString([]byte(token)), "HEX": fmt.Sprintf("%X", token),
	}
	rows["lower"] = strings.NewReplacer("%C3%B6", "%c3%b6", "%2F", "%2f", "%2B", "%2b", "%3C", "%3c", "%3E", "%3e", "%5C", "%5c", "%3D", "%3d").Replace(url.QueryEscape(token))
	for i := range 3 {
		padded := strings.Repeat("a", i) + token + "zz"
		rows[fmt.Sprint("base64 ", i)] = base64.StdEncoding.EncodeToString([]byte(padded))
		rows[fmt.Sprint("base64url ", i)] = base64.RawURLEncoding.EncodeToString([]byte(padded))
		rows[fmt.Sprint("base64 in php ", i)] = strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(padded)), "/", `\/`)
		rows[fmt.Sprint("base64 in query ", i)] = url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(padded)))
	}
	r := NewRedactor(handles("TOKEN", token))
	for name, form := range rows {
		t.Run(name, func(t *testing.T) {
			out := r.String("{\"a\":\"x" + form + "y\"}")
			if !strings.Contains(out, "[redacted:TOKEN]") || !strings.HasPrefix(out, `{"a":"x`) || !strings.HasSuffix(out, `y"}`) && !strings.Contains(name, "base64") {
				t.Errorf("%s\ngave %s", form, out)
			}
			if got := r.Find([]byte(form)); !slices.Equal(got, []string{"TOKEN"}) {
				t.Errorf("found %v", got)
			}
		})
	}
	plain := "plainTokenValue_1"
	if out := NewRedactor(handles("T", plain)).String(everyUnicode(plain)); out != "[redacted:T]" {
		t.Errorf("every byte escaped: %s", out)
	}
}

func TestRedactMultiLine(t *testing.T) {
	r := NewRedactor(handles("PEM", pemValue))
	lines := strings.Split(strings.TrimSpace(pemValue), "\n")
	body := strings.Join(lines[1:4], "")
	rows := map[string][2]string{
		"whole":     {pemValue, "[redacted:PEM]\n"},
		"crlf":      {strings.ReplaceAll(pemValue, "\n", "\r\n"), "[redacted:PEM]\r\n"},
		"json":      {asJSON(pemValue, true), `[redacted:PEM]\n`},
		"one line":  {"a " + lines[2] + " b", "a [redacted:PEM] b"},
		"php line":  {"a " + strings.ReplaceAll(lines[2], "/", `\/`) + " b", "a [redacted:PEM] b"},
		"joined":    {"a" + body + "b", "a[redacted:PEM]b"},
		"frame":     {"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"},
		"frame end": {"x-----END PRIVATE KEY-----\n", "x-----END PRIVATE KEY-----\n"},
	}
	for name, row := range rows {
		if out := r.String(row[0]); out != row[1] {
			t.Errorf("%s: %q", name, out)
		}
	}
	if out := r.String(base64.StdEncoding.EncodeToString([]byte("Y" + pemValue))); strings.Count(out, "[") != 1 || len(out) > 30 {
		t.Errorf("base64 of it: %s", out)
	}
}

func TestRedactShortValues(t *testing.T) {
	r := NewRedactor(handles("PIN", "1234", "COLON", ":", "QUOTE", `a"b`, "NL", "x\n", "T", "true"))
	rows := [][2]string{
		{`{"pin":"1234","n":1234,"s":"12345"}`, `{"pin":"[redacted:PIN]","n":1234,"s":"12345"}`},
		{`{"a":"b","c":"d"}`, `{"a":"b","c":"d"}`},
		{`{":":":"}`, `{"[redacted:COLON]":"[redacted:COLON]"}`},
		{`["a\"b","\u0031234","\u0061\u0022\u0062"]`, `["[redacted:QUOTE]","[redacted:PIN]","[redacted:QUOTE]"]`},
		{`["x","x\n"]`, `["[redacted:NL]","[redacted:NL]"]`},
		{`["\\","1234"]`, `["\\","[redacted:PIN]"]`},
		{`"say \"1234\" now"`, `"say \"1234\" now"`},
		{"\"open\n\"1234\"", "\"open\n\"[redacted:PIN]\""},
		{`"` + strings.Repeat("long ", 20) + `","1234"`, `"` + strings.Repeat("long ", 20) + `","[redacted:PIN]"`},
		{`"1234`, `"1234`},
		{`true 1234 : {"t":true}`, `true 1234 : {"t":true}`},
	}
	for _, row := range rows {
		if out := r.String(row[0]); out != row[1] {
			t.Errorf("%s\ngave %s", row[0], out)
		}
		checkSplits(t, r, []byte(row[0]))
	}
	if got := r.Find([]byte(`{"k":"1234","l":["true"]}`)); !slices.Equal(got, []string{"PIN", "T"}) {
		t.Errorf("found %v", got)
	}
}

// checkSplits writes text in two parts at each place, and byte by byte, and
// wants what Bytes gives.
func checkSplits(t *testing.T, r *Redactor, text []byte) {
	t.Helper()
	want := string(r.Bytes(text))
	for cut := range len(text) + 1 {
		if got := written(t, r, text[:cut], text[cut:]); got != want {
			t.Fatalf("cut at %d of %q:\n%q, want\n%q", cut, text, got, want)
		}
	}
	var single [][]byte
	for i := range text {
		single = append(single, text[i:i+1])
	}
	if got := written(t, r, single...); got != want {
		t.Fatalf("byte by byte %q:\n%q, want\n%q", text, got, want)
	}
}

func written(t *testing.T, r *Redactor, parts ...[]byte) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, p := range parts {
		if n, err := w.Write(p); n != len(p) || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, len(p), err)
		}
	}
	must(t, errors.Join(w.Close(), w.Close()))
	return out.String()
}

func TestRedactSplits(t *testing.T) {
	hs := handles("A", "abcdefghij", "B", "ghijklmnopqrstuvw", "C", "aaaaaaaaaaaa", "PEM", pemValue, "PIN", "42")
	r := NewRedactor(hs)
	for _, text := range []string{
		"xx abcdefghijklmnopqrstuvw abcdefghij yy", "abcdefgabcdefghijabcdefghij", strings.Repeat("a", 300) + "b" + strings.Repeat("a", 11),
		"<" + pemValue + ">" + pemValue[40:150], asJSON(pemValue, true) + `"42"`, `{"a":"42","b":"abcdefghij"}` + "\n",
	} {
		checkSplits(t, r, []byte(text))
	}
}

func TestRedactHoldsLittle(t *testing.T) {
	r := NewRedactor(handles("A", strings.Repeat("a", maxValue), "PEM", pemValue, "PIN", "42"))
	var out bytes.Buffer
	w := r.Writer(&out)
	io.WriteString(w, "an ordinary line of a log\n")
	if out.String() != "an ordinary line of a log\n" {
		t.Errorf("an ordinary line is held back: %q", out.String())
	}
	out.Reset()
	text := strings.Repeat("b", 1000) + `"` + strings.Repeat("a", 200)
	io.WriteString(w, text)
	if held := len(text) - out.Len(); held > 304 {
		t.Errorf("%d bytes held", held)
	}
	big := strings.Repeat("a", 3*maxValue)
	io.WriteString(w, big)
	must(t, w.Close())
	if strings.Contains(out.String(), "aaaaaaaa") && !strings.Contains(text, "aaaaaaaa") {
		t.Error("the value passed")
	}
	if _, err := io.WriteString(w, "x"); err == nil {
		t.Error("a closed writer writes")
	}
}

func TestRedactLeavesOrdinaryTextAlone(t *testing.T) {
	for _, hs := range [][]Handle{nil, handles("E", ""), handles("S", "      "), {{Name: "PUBLIC", Value: NewSecret("https://api.example.com")}}} {
		r := NewRedactor(hs)
		in := []byte(`{"url":"https://api.example.com","s":"      ","e":""}`)
		if out := r.Bytes(in); &out[0] != &in[0] || r.Find(in) != nil {
			t.Errorf("%v changed %s", hs, out)
		}
		checkSplits(t, r, in)
	}
	// A value that is in the marker must not make the marker a leak.
	for _, v := range []string{"redacted", "********", "[redacted]", "redacted:X"} {
		if out := NewRedactor(handles("X", v)).String("a" + v + "b"); strings.Contains(out, v) || !strings.HasPrefix(out, "a") || !strings.HasSuffix(out, "b") {
			t.Errorf("%q gave %q", v, out)
		}
	}
	if out := NewRedactor([]Handle{{Name: "bad\x1bname", Value: NewSecret("abcdefgh"), Secret: true}}).String("abcdefgh"); out != "[redacted]" {
		t.Errorf("%q", out)
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestRedactWriterPassesErrors(t *testing.T) {
	for _, hs := range [][]Handle{handles("A", "abcdefghij"), handles("PIN", "42")} {
		w := NewRedactor(hs).Writer(&failing{after: 10})
		var err error
		for range 5 {
			if _, err = io.WriteString(w, "more and more text\n"); err != nil {
				break
			}
		}
		if err == nil || w.Close() == nil {
			t.Errorf("error %v", err)
		}
	}
}

// naive is the plain way: every pattern at every place.
func naive(r *Redactor, b []byte) []span {
	var spans []span
	for _, p := range r.now.Load().begin.sorted {
		for i := 0; ; i++ {
			at := bytes.Index(b[min(i, len(b)):], []byte(p))
			if at < 0 {
				break
			}
			i += at
			spans = append(spans, span{i, i + len(p), 0})
		}
	}
	return merge(spans)
}

func FuzzRedact(f *testing.F) {
	f.Add("abcdefgh", "correct horse battery staple", "42", []byte(`{"a":"abcdefghabcdefg correct horse battery staple","b":"42"}`), 7)
	f.Add(pemValue, "aaaaaaaaaaaaaaaa", "a\"", []byte(pemValue+strings.Repeat("a", 40)+`"a\""`), 30)
	f.Add("[redacted:B]", "redacted", "]", []byte("x[redacted:B]redactedredacted]"), 3)
	f.Fuzz(func(t *testing.T, a, b, short string, text []byte, cut int) {
		if len(a) > 400 || len(b) > 100 || len(text) > 1000 {
			return
		}
		r := NewRedactor(handles("A", a, "B", b, "C", short))
		for _, in := range [][]byte{text, slices.Concat(text, []byte(a), text, []byte(asJSON(b, true))), []byte(url.QueryEscape(b) + base64.StdEncoding.EncodeToString([]byte("x"+a)))} {
			got, want := r.now.Load().spans(in), naive(r, in)
			if !slices.EqualFunc(got, want, func(x, y span) bool { return x.start == y.start && x.end == y.end }) {
				t.Fatalf("spans %v, want %v", got, want)
			}
			out := r.Bytes(in)
			if r.Find(in) == nil && !bytes.Equal(out, in) {
				t.Fatalf("text without secrets changed: %q", out)
			}
			at := uint(cut) % uint(len(in)+1)
			if parts := written(t, r, in[:at], in[at:]); parts != string(out) {
				t.Fatalf("in parts %q, whole %q", parts, out)
			}
		}
	})
}

// A token that is renewed while a stream is written is found in it from then on.
func TestRedactAdded(t *testing.T) {
	r := NewRedactor([]Handle{{Name: "first", Value: NewSecret("first-token-0123"), Secret: true}})
	var out, long bytes.Buffer
	w := r.Writer(&out)
	m := r.Masker(&long, func(string) {})
	text := []byte("first-token-0123 second-token-4567\n")
	say := func(w io.Writer) {
		t.Helper()
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	say(w)
	say(m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	r.Add([]Handle{{Name: "second", Value: NewSecret("second-token-4567"), Secret: true}, {Name: "plain", Value: NewSecret("first-token")}})
	say(w)
	say(m)
	for _, c := range []io.Closer{w, m} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "[redacted:first] second-token-4567\n[redacted:first] [redacted:second]\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := long.String(), "**************** second-token-4567\n**************** *****************\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := r.Find(text); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("found %v", got)
	}
	for i := range 3 * mostAdded {
		r.Add([]Handle{{Name: "more", Value: NewSecret(fmt.Sprintf("renewed-token-%04d", i)), Secret: true}})
	}
	if got := r.String("first-token-0123 renewed-token-0095 renewed-token-0001"); got != "[redacted:first] [redacted:more] renewed-token-0001" {
		t.Error(got)
	}
}
