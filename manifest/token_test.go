package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func values(m map[string]string) Lookup {
	return func(kind, name string) (string, bool) {
		v, ok := m[kind+":"+name]
		return v, ok
	}
}

func TestTokens(t *testing.T) {
	for s, want := range map[string]string{
		"":                                      "",
		"{ENV:A}":                               "ENV:A 0-7",
		"x{SECRET:a_1}y{ENV:B}":                 "SECRET:a_1 1-13, ENV:B 14-21",
		"{SECRET:X-API-Key}":                    "SECRET:X-API-Key 0-18",
		"{{ENV:A}}":                             "ENV:A 1-8",
		"{key}":                                 "key: 0-5 old",
		"{env:A} {secret:B}":                    "env:A 0-7 old, secret:B 8-18 old",
		"{secrets}/x.json":                      "secrets: 0-9 old",
		"{ENV:}":                                "malformed: 0-6",
		"{ENV:1}":                               "malformed:1 0-7",
		"{ENV:A":                                "malformed:A 0-6",
		"{ENV:A B}":                             "malformed:A 0-6",
		"{ENV:A:B}":                             "malformed:A:B 0-9",
		"{Env:A}":                               "malformed:A 0-7",
		"{ENV:" + strings.Repeat("a", 65) + "}": "malformed:" + strings.Repeat("a", 65) + " 0-71",
		"{ENV} {a:1} {} { {x} {KEY}":            "",
		"{ENV:{ENV:A}}":                         "malformed: 0-5, ENV:A 5-12",
	} {
		var parts []string
		for _, ref := range Tokens(s) {
			text := fmt.Sprintf("%s:%s %d-%d", ref.Kind, ref.Name, ref.Start, ref.End)
			if ref.Deprecated {
				text += " old"
			}
			parts = append(parts, text)
		}
		if got := strings.Join(parts, ", "); got != want {
			t.Errorf("Tokens(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	look := values(map[string]string{"ENV:A": "a b/ü?&=%", "SECRET:K": "{ENV:A}", "ENV:E": "", "ENV:D": ".."})
	for _, c := range []struct {
		s    string
		enc  Encoding
		want string
		lost string
	}{
		{"x{ENV:A}y", Plain, "xa b/ü?&=%y", ""},
		{"{SECRET:K}", Plain, "{ENV:A}", ""}, // one pass
		{"{ENV:A}", URLPath, "a%20b%2F%C3%BC%3F%26%3D%25", ""},
		{"{ENV:A}", URLQuery, "a%20b%2F%C3%BC%3F%26%3D%25", ""},
		{"[{ENV:E}]", Plain, "[]", ""},
		{"[{ENV:NO}{ENV:NO}{SECRET:A}]", Plain, "[]", "{ENV:NO} {SECRET:A}"},
		{"{key}{env:A}{secrets}/{ENV:", Plain, "{key}{env:A}{secrets}/{ENV:", ""},
		{"{ENV:{ENV:E}}", Plain, "{ENV:}", ""},
	} {
		out, lost := Expand(c.s, look, c.enc)
		if out != c.want || strings.Join(lost, " ") != c.lost {
			t.Errorf("Expand(%q) = %q %q, want %q %q", c.s, out, lost, c.want, c.lost)
		}
	}
}

func TestExpandURL(t *testing.T) {
	look := values(map[string]string{"ENV:T": "a/b?c#d", "SECRET:K": "k&x=1 +", "ENV:H": "evil.org"})
	for s, want := range map[string]string{
		"https://e.org/{ENV:T}/mcp?key={SECRET:K}&t={ENV:T}": "https://e.org/a%2Fb%3Fc%23d/mcp?key=k%26x%3D1%20%2B&t=a%2Fb%3Fc%23d",
		"https://e.org?{SECRET:K}":                           "https://e.org?k%26x%3D1%20%2B",
		"https://e.org/a?b#c":                                "https://e.org/a?b#c",
		"https://e.org":                                      "https://e.org",
		"https://e.org/?a?{ENV:T}":                           "https://e.org/?a?a%2Fb%3Fc%23d",
	} {
		if out, lost, err := ExpandURL(s, look); out != want || lost != nil || err != nil {
			t.Errorf("ExpandURL(%q) = %q %q %v, want %q", s, out, lost, err, want)
		}
	}
	for _, s := range []string{"https://{ENV:H}/", "https://{SECRET:K}@e.org/", "https://e.org:{ENV:H}", "{ENV:H}", "https://e.org{ENV:H}/x", "https://e.org/#{ENV:H}"} {
		out, _, err := ExpandURL(s, look)
		var place *TokenPlaceError
		if !errors.As(err, &place) || out != "" {
			t.Errorf("ExpandURL(%q) = %q %v, want a *TokenPlaceError", s, out, err)
		}
	}
	_, lost, _ := ExpandURL("https://e.org/{ENV:N}?{ENV:N}{ENV:M}", look)
	if !slices.Equal(lost, []string{"{ENV:N}", "{ENV:M}"}) {
		t.Errorf("undeclared %q", lost)
	}
}

// TestTokensOfAManifest has the rows of format.md, section 5.
func TestTokensOfAManifest(t *testing.T) {
	const env = `[{"name":"H"},{"name":"K","secret":true}]`
	const key = `{"type":"api_key","delivery":"query","param":"apiKey"}`
	url := func(m *Manifest) any { return m.Server.URL }
	args := func(m *Manifest) any { return m.Server.Args }
	vars := func(m *Manifest) any { return m.Server.Env }
	verify := func(m *Manifest) any { return m.Verify.Command }
	local := func(config string, more ...string) string {
		return doc(append([]string{"env", env, "mcp_config", config}, more...)...)
	}
	check(t, []row{
		{remote(`{"url":"https://e.org/{ENV:H}?k={SECRET:K}"}`, "env", env), url, "https://e.org/{ENV:H}?k={SECRET:K}", nil, ""},
		{remote(`{"url":"https://e.org/?k={key}"}`, "auth", key), url, "https://e.org/?k={SECRET:apiKey}", []string{"token-deprecated"}, ""},
		{remote(`{"url":"https://e.org/?k={key}"}`, "auth", key, "env", env), url, "https://e.org/?k={SECRET:K}", []string{"token-deprecated"}, ""},
		{remote(`{"url":"https://e.org/?k={SECRET:apiKey}"}`, "auth", key, "env", env), url, "https://e.org/?k={SECRET:K}", nil, ""},
		{remote(`{"url":"https://e.org/?k={key}"}`), url, "https://e.org/?k={key}", []string{"token-deprecated"}, ""},
		{remote(`{"url":"https://e.org/","headers":{"X":"{SECRET:X-Key}"}}`, "auth", `{"type":"api_key","delivery":"header","param":"X-Key"}`),
			func(m *Manifest) any { return m.Server.Headers }, []EnvVar{{"X", "{SECRET:X_Key}"}}, nil, ""},
		{remote(`{"url":"https://e.org/?k={ENV:Q}"}`), url, "https://e.org/?k={ENV:Q}", []string{"token-undeclared"}, ""},
		{local(`{"command":"node","args":["i.js","{ENV:H}"]}`), args, []string{"i.js", "{ENV:H}"}, nil, ""},
		{local(`{"command":"node","args":["{SECRET:K}"]}`), args, []string{"{SECRET:K}"}, []string{"secret-in-args"}, ""},
		{local(`{"command":"node","args":["{ENV:K}"]}`), args, []string{"{SECRET:K}"}, []string{"token-kind", "secret-in-args"}, ""},
		{local(`{"command":"node","env":{"A":"{SECRET:K}","B":"{ENV:K}","C":"{SECRET:H}"}}`), vars, []EnvVar{{"A", "{SECRET:K}"}, {"B", "{SECRET:K}"}, {"C", "{SECRET:H}"}},
			[]string{"token-kind", "token-kind"}, ""},
		{local(`{"command":"node","env":{"A":"{secrets}/a","B":"{env:H}","C":"{ENV:H"}}`), vars, []EnvVar{{"A", "{secrets}/a"}, {"B", "{env:H}"}, {"C", "{ENV:H"}},
			[]string{"token-deprecated", "token-deprecated", "token-malformed"}, ""},
		{local(`{"command":"node"}`, "verify", `{"command":"x {ENV:H}"}`), verify, "x {ENV:H}", nil, ""},
		{local(`{"command":"node"}`, "verify", `{"command":"x {SECRET:K}"}`), verify, "x {SECRET:K}", []string{"secret-in-verify"}, ""},
		{local(`{"command":"node"}`, "verify", `{"command":"cat <<X\n{ENV:H}\nX"}`), verify, "cat <<X\n{ENV:H}\nX", []string{"verify-token-place"}, ""},
		{local(`{}`, "launch_command", `"node i.js {SECRET:K}"`), args, []string{"i.js", "{SECRET:K}"}, []string{"secret-in-args"}, ""},
		{local(`{"command":"node","args":["-e","if(a){b}","${x}"]}`), args, []string{"-e", "if(a){b}", "${x}"}, nil, ""},
	})
}

func TestTokenPlaces(t *testing.T) {
	src := "{\"id\":\"x\",\"type\":\"mcp_local\",\"scope\":\"user\",\"version\":1,\n\"launch_command\":\"a {SECRET:Q}\",\n\"mcp_config\":{\"args\":[\"{SECRET:R}\"]}}"
	_, diags := parse(t, src)
	for _, want := range []string{
		"connector.json:2:18: launch_command: error: {SECRET:Q} names no field of env[]; it becomes empty [token-undeclared]",
		"connector.json:3:23: mcp_config.args[0]: error: {SECRET:R} names no field of env[]; it becomes empty [token-undeclared]",
	} {
		if !slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.String() == want }) {
			t.Errorf("not told: %s\n%v", want, diags)
		}
	}
}

func TestPathsShowNoControlCharacters(t *testing.T) {
	_, diags := parse(t, doc("mcp_config", `{"command":"node","env":{"A\u001b]0;x\u0007":"1","":"2"}}`))
	var got []string
	for _, d := range diags {
		got = append(got, d.Path)
	}
	if want := []string{`mcp_config.env."A\x1b]0;x\a"`, `mcp_config.env.""`}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}
