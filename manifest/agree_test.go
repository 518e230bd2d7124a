package manifest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAgree(t *testing.T) {
	entry := func(member, value string) Entry { e, _ := ParseEntry([]byte(with(member, value))); return e }
	same := with("name", `"X"`)
	plain, _ := ParseEntry([]byte(same))
	for _, c := range []struct {
		name  string
		e     Entry
		src   string
		rules []string
		field string // of the disagreement
	}{
		{"same", plain, doc(), nil, ""},
		{"id", plain, doc("id", `"y"`), nil, "id"},
		{"id silent", plain, doc("id", ""), nil, ""},
		{"type", entry("type", `"mcp_remote"`), doc(), nil, "type"},
		{"type silent is local", entry("type", `"mcp_remote"`), doc("type", ""), nil, "type"},
		{"scope", plain, doc("scope", `"global"`), nil, "scope"},
		{"scope spelled the older way", plain, doc("scope", `"per_user"`), nil, ""},
		{"scope silent", entry("scope", `"global"`), doc("scope", "", "name", `"N"`), nil, ""},
		{"version", plain, doc("version", "4"), nil, "version"},
		{"version older", plain, doc("version", "2"), nil, "version"},
		{"version as a string", plain, doc("version", `"3"`), nil, ""},
		{"version unreadable", plain, doc("version", `"3.0.1"`), []string{"version-differs"}, ""},
		{"version of the index unreadable", entry("version", `"3.0.1"`), doc("name", `"N"`), []string{"version-differs"}, ""},
		{"name", plain, doc("name", `"Z"`), []string{"name-differs"}, ""},
		{"tags", plain, doc("tags", `["a"]`), []string{"tags-differs"}, ""},
		{"tags in another order", entry("tags", `["b","a"]`), doc("tags", `["a","b"]`, "name", `"N"`), nil, ""},
		{"requires", plain, doc("requires", `["NODE"]`), []string{"requires-differs"}, ""},
		{"version_string", entry("version_string", `"1.0.0"`), doc("version_string", `"1.0.1"`, "name", `"N"`), []string{"version-string-differs"}, ""},
		{"auth", entry("auth", `{"type":"qr"}`), doc("auth", `{"type":"none"}`, "name", `"N"`), []string{"auth-differs"}, ""},
		{"auth scopes in another order", entry("auth", `{"type":"oauth2","provider":"p","scopes":["a","b"]}`), doc("auth", `{"type":"oauth2","provider":"p","scopes":["b","a"]}`, "name", `"N"`), nil, ""},
		{"tools", entry("tools", `["a"]`), doc("tools", `[{"name":"b"}]`, "name", `"N"`), []string{"tools-differ"}, ""},
		{"verify script pinned", plain, doc("verify", `{"command":"cat connector.json"}`), nil, ""},
		{"verify script not pinned", plain, doc("verify", `{"command":"python3 ./verify.py"}`), []string{"verify-script-unpinned"}, ""},
	} {
		m, _ := parse(t, c.src)
		diags, err := Agree(c.e, m)
		var differ *DisagreeError
		switch {
		case c.field == "" && err != nil, c.field != "" && (!errors.As(err, &differ) || differ.Field != c.field):
			t.Errorf("%s: %v, want a disagreement in %q", c.name, err, c.field)
		case !slices.Equal(rules(diags), c.rules):
			t.Errorf("%s: %v, want %v", c.name, diags, c.rules)
		}
	}
	m, _ := parse(t, doc("version", "4"))
	_, err := Agree(plain, m)
	if want := `connector "x": the index says version "3", its manifest says "4"`; err == nil || err.Error() != want {
		t.Errorf("text: %v, want %s", err, want)
	}
}

func TestAgreeFillsFromTheIndex(t *testing.T) {
	e, _ := ParseEntry([]byte(`{"id":"x","name":"N","type":"mcp_remote","scope":"global","version":3,"version_string":"1.2.0","version_release_date":"2026-11-30","auth":{"type":"api_key","delivery":"query","param":"k"},"tools":["a"],"files":[]}`))
	m, _ := parse(t, `{"type":"mcp_remote","mcp_config":{"url":"https://e.org/?k={key}"}}`)
	if _, err := Agree(e, m); err != nil {
		t.Fatal(err)
	}
	if m.ID != "x" || m.Name != "N" || m.Scope != "global" || m.Version != 3 || m.Auth.Type != "api_key" || len(m.Tools) != 1 || m.Server.URL != "https://e.org/?k={SECRET:k}" {
		t.Errorf("%+v", m)
	}
	if m.VersionString != "1.2.0" || m.ReleaseDate != "2026-11-30" {
		t.Errorf("version %q of %q", m.VersionString, m.ReleaseDate)
	}
	m, _ = parse(t, `{"type":"mcp_remote","auth":{"type":"none"},"tools":[{"name":"b"}],"mcp_config":{"url":"https://e.org/"}}`)
	if _, err := Agree(e, m); err != nil || m.Auth.Type != "" || m.Tools[0].Name != "b" {
		t.Errorf("%+v %v", m, err)
	}
}

// TestConcerns has the rows H16 and H17.
func TestConcerns(t *testing.T) {
	files := paths("index.js", "pkg/server.py", "verify.py")
	for args, want := range map[string]string{
		`node|index.js`:                     "",
		`node|./index.js|--port|1`:          "",
		`python3|-u|pkg/server.py|-e|x`:     "",
		`npx|-y|firecrawl-mcp`:              "command-fetches-code",
		`sh|run.sh`:                         "command-unknown",
		`NODE|index.js`:                     "command-unknown",
		`bash -c`:                           "command-not-a-name",
		`node;id`:                           "command-not-a-name",
		`python3 -c`:                        "command-not-a-name",
		`nodé`:                              "command-not-a-name",
		`/bin/node|index.js`:                "command-is-a-path",
		`./node|index.js`:                   "command-is-a-path",
		`..\node|index.js`:                  "command-is-a-path",
		`node`:                              "args-entry-missing",
		`python3|-u`:                        "args-entry-missing",
		`node|-e|x()`:                       "args-option-before-entry",
		`node|--require|x|index.js`:         "args-option-before-entry",
		`node|-r/x|index.js`:                "args-option-before-entry",
		`node|--inspect=0.0.0.0|index.js`:   "args-option-before-entry",
		`python3|-m|server`:                 "args-option-before-entry",
		`node|other.js`:                     "args-entry-not-shipped",
		`node|../x.js`:                      "args-entry-not-shipped args-path-outside",
		`node|index.js|--config=/etc/x`:     "args-path-outside",
		`node|index.js|a/../../b`:           "args-path-outside",
		`node|index.js|C:\x`:                "args-path-outside",
		`node|index.js|~/x`:                 "args-path-outside",
		`node|index.js|https://e.org/a/../`: "",
	} {
		words := strings.Split(args, "|")
		m := &Manifest{Type: "mcp_local", Server: Server{Command: words[0], Args: words[1:]}}
		if got := strings.Join(rules(m.Concerns(files)), " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if got := (&Manifest{Type: "mcp_remote"}).Concerns(nil); got != nil {
		t.Errorf("remote: %v", got)
	}
}

func TestDisplayVersions(t *testing.T) {
	for _, c := range []struct {
		e    Entry
		want string
	}{
		{Entry{Version: 3, VersionString: "1.2.3"}, "1.2.3"}, {Entry{Version: 3, VersionString: "v1.2"}, "1.2.0"}, {Entry{Version: 3, VersionString: "spring"}, "spring"},
		{Entry{Version: 3}, "3"}, {Entry{}, "unknown"},
	} {
		if got := DisplayVersion(c.e); got != c.want {
			t.Errorf("DisplayVersion(%+v) = %q, want %q", c.e, got, c.want)
		}
	}
	ordered := []string{"", "alpha", "spring", "1.0.0-rc.1", "1.0.0", "1.2", "1.10.0", "2"}
	for i := range ordered {
		for j := range ordered {
			if got := CompareDisplay(ordered[i], ordered[j]); got < 0 != (i < j) || got == 0 != (i == j) {
				t.Errorf("CompareDisplay(%q, %q) = %d", ordered[i], ordered[j], got)
			}
		}
	}
}

func TestRuntimeRange(t *testing.T) {
	for _, c := range []struct {
		m             Manifest
		runtime, want string
	}{
		{Manifest{}, "node", ""},
		{Manifest{Engines: map[string]string{"node": ">=20"}}, "node", ">=20"},
		{Manifest{Engines: map[string]string{"python": ">=3.10,<4"}}, "python3", ">=3.10, <4"},
		{Manifest{Engines: map[string]string{"python": "~=3.10"}}, "python3", ">=3.10, <4"},
		{Manifest{Engines: map[string]string{"python": "~=3.10.2"}}, "python3", ">=3.10.2, <3.11"},
		{Manifest{Engines: map[string]string{"python": "==3.12"}}, "python3", "=3.12"},
		{Manifest{Engines: map[string]string{"node": "latest"}}, "node", ""},
		{Manifest{Engines: map[string]string{"node": "*"}, Requires: []string{"NODE>=18"}}, "node", ">=18"},
		{Manifest{Requires: []string{"API_KEY", "PYTHON >= 3.11"}}, "python3", ">= 3.11"},
		{Manifest{Requires: []string{"NODE"}}, "node", ""},
		{Manifest{Requires: []string{"NODE>=18"}}, "python3", ""},
		{Manifest{Engines: map[string]string{"deno": "^2"}}, "deno", "^2"},
	} {
		if got := RuntimeRange(&c.m, c.runtime); got != c.want {
			t.Errorf("RuntimeRange(%+v, %q) = %q, want %q", c.m.Engines, c.runtime, got, c.want)
		}
	}
}

func TestSeverityNames(t *testing.T) {
	for s, want := range map[Severity]string{Info: "info", Warning: "warning", Error: "error"} {
		if s.String() != want {
			t.Errorf("%d is %q", s, s)
		}
	}
}

func TestPlainVersionsAreSemver(t *testing.T) {
	for s, want := range map[string]bool{"1.2.3": true, "0.0.0": true, "10.20.30": true, "01.2.3": false, "1.2": false, "1.2.3.4": false, "1..3": false, "": false, "1.2.": false, "1.2.3-rc.1": true, "v1.2.3": true, "1.2.03": false} {
		if got := isSemver(s); got != want {
			t.Errorf("isSemver(%q) = %t, want %t", s, got, want)
		}
	}
}
