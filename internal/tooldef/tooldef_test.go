package tooldef

import (
	"strings"
	"testing"
)

func TestCanonicalNumbers(t *testing.T) {
	// Pairs from RFC 8785 appendix B, and the edges of the plain form.
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "1.0": "1", "1e2": "100", "4.50": "4.5", "2e-3": "0.002",
		"0.000001": "0.000001", "1e-7": "1e-7", "1e21": "1e+21", "999999999999999900000": "999999999999999900000",
		"9007199254740993": "9007199254740992", "333333333.33333329": "333333333.3333333",
		"5e-324": "5e-324", "1.7976931348623157e308": "1.7976931348623157e+308", "-1E-10": "-1e-10",
	} {
		got, err := appendNumber(nil, in)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s (%v), want %s", in, got, err, want)
		}
	}
	if _, err := appendNumber(nil, "1e400"); err == nil {
		t.Error("1e400 has no double and was given a canonical form")
	}
}

func TestDigestIgnoresSpellingOnly(t *testing.T) {
	base := parse(t, `{"name":"a","description":"d\u00e9","inputSchema":{"type":"object","maximum":1e2}}`)
	same := []string{
		`{ "inputSchema" : { "maximum":100, "type":"object" }, "description":"dé", "name":"a" }`,
		`{"name":"a","description":"dé","inputSchema":{"type":"object","maximum":100.0},"_meta":{"x":1},"icons":[]}`,
	}
	for _, s := range same {
		if got := parse(t, s); got.Digest != base.Digest {
			t.Errorf("%s: the digest differs from that of the same definition", s)
		}
	}
	different := []string{
		`{"name":"a","description":"d\u00e8","inputSchema":{"type":"object","maximum":100}}`,
		`{"name":"a","description":"dé","inputSchema":{"type":"object","maximum":101}}`,
		`{"name":"a","title":"A","description":"dé","inputSchema":{"type":"object","maximum":100}}`,
		`{"name":"a","description":"dé","inputSchema":{"type":"object","maximum":"100"}}`,
		`{"name":"a","description":"dé","inputSchema":{"type":"object","maximum":100},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","description":"dé","inputSchema":{"type":"object","maximum":100},"outputSchema":null}`,
	}
	for _, s := range different {
		if got := parse(t, s); got.Digest == base.Digest {
			t.Errorf("%s: the digest is that of another definition", s)
		}
	}
}

func TestRefusals(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                      "a tool definition is not an object",
		`{"title":"x"}`:           "a tool definition has no name",
		`{"name":""}`:             "a tool definition has no name",
		`{"name":"a","name":"b"}`: "a tool definition has no name|the key \"name\" occurs twice",
		`{"name":"a","inputSchema":{"x":1,"x":2}}`: `tool "a": the key "x" occurs twice`,
		`{"name":"a","inputSchema":{"x":1,"X":2}}`: `tool "a": the key "X" occurs twice`,
	} {
		_, err := Parse([]byte(in))
		if err == nil {
			t.Errorf("%s: accepted", in)
			continue
		}
		if ok := anyContains(err.Error(), strings.Split(want, "|")); !ok {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func TestPretty(t *testing.T) {
	for in, want := range map[string]string{"send_message": "Send Message", "a": "A", "": "", "__": "__", "get-page.html": "Get Page Html", "élan": "Élan"} {
		if got := Pretty(in); got != want {
			t.Errorf("Pretty(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"enum":[1,2.5,"\u2028"]}}}}`))
	f.Add([]byte(`{"name":"\ud800","description":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		one, err := Parse(raw)
		if err != nil {
			return
		}
		if two, err := Parse(one.Raw); err != nil || two.Digest != one.Digest {
			t.Fatalf("the same bytes gave another digest: %v", err)
		}
	})
}

func parse(t *testing.T, s string) Tool {
	t.Helper()
	tool, err := Parse([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return tool
}

func anyContains(s string, subs []string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}
