package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// doc gives a local manifest without any deviation, members replaced or added
// as pairs; an empty value leaves a member out.
func doc(pairs ...string) string {
	members := []string{"id", `"x"`, "name", `"X"`, "type", `"mcp_local"`, "scope", `"user"`, "version", "3", "mcp_config", `{"command":"node","args":["index.js"]}`}
	for i := 0; i < len(pairs); i += 2 {
		at := slices.Index(members, pairs[i])
		if at < 0 || at%2 == 1 {
			members = append(members, pairs[i], pairs[i+1])
			continue
		}
		members[at+1] = pairs[i+1]
	}
	var parts []string
	for i := 0; i < len(members); i += 2 {
		if members[i+1] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", members[i], members[i+1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func remote(config string, pairs ...string) string {
	return doc(append([]string{"type", `"mcp_remote"`, "mcp_config", config}, pairs...)...)
}

func parse(t *testing.T, src string) (*Manifest, []Diagnostic) {
	t.Helper()
	m, diags, err := ParseManifest([]byte(src), "connector.json")
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return m, diags
}

// loud gives the rules that are more than information.
func loud(diags []Diagnostic) []string {
	var list []string
	for _, d := range diags {
		if d.Severity > Info {
			list = append(list, d.Rule)
		}
	}
	return list
}

type row struct {
	src    string
	get    func(*Manifest) any
	want   any
	rules  []string
	broken string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		m, diags := parse(t, c.src)
		if got := c.get(m); !reflect.DeepEqual(got, c.want) || !slices.Equal(loud(diags), c.rules) || m.Broken != c.broken {
			t.Errorf("%s:\n got %#v %v broken %q\nwant %#v %v broken %q", c.src, got, loud(diags), m.Broken, c.want, c.rules, c.broken)
		}
	}
}

func broken(*Manifest) any { return nil }

// TestServer has the rows of format.md, section 3, on how a connector is started.
func TestServer(t *testing.T) {
	server := func(m *Manifest) any { return m.Server }
	command := func(m *Manifest) any { return append([]string{m.Server.Command}, m.Server.Args...) }
	check(t, []row{
		{doc(), server, Server{Command: "node", Args: []string{"index.js"}, Transport: "stdio"}, nil, ""},
		{doc("mcp_config", `{"command":"npx","args":["-y","firecrawl-mcp"],"env":{"B":"2","A":1,"Z":null}}`), server,
			Server{Command: "npx", Args: []string{"-y", "firecrawl-mcp"}, Env: []EnvVar{{"B", "2"}, {"A", "1"}}, Transport: "stdio"}, []string{"not-a-string"}, ""},
		{doc("mcp_config", "", "launch_command", `"python3 'my server.py' --x=\"a b\""`), command, []string{"python3", "my server.py", "--x=a b"}, []string{"mcp-config-missing"}, ""},
		{doc("mcp_config", `{"args":["--port","80"]}`, "launch_command", `"python3 s.py"`), command, []string{"python3", "s.py", "--port", "80"}, nil, ""},
		{doc("launch_command", `"rm -rf /"`), command, []string{"node", "index.js"}, nil, ""},
		{doc("mcp_config", `{}`, "launch_command", `"node x.js | tee log"`), broken, nil, []string{"launch-command"},
			`launch_command: splitting a command: it holds "|", which only a shell understands`},
		{doc("mcp_config", `{}`), broken, nil, []string{"command-missing"}, "mcp_config: a local connector without a command"},
		{doc("mcp_config", `[]`), broken, nil, []string{"not-an-object", "mcp-config-missing", "command-missing"}, "mcp_config: a local connector without a command"},
		{doc("mcp_config", `{"command":"node","args":"x.js"}`), broken, nil, []string{"args-not-an-array"}, "mcp_config.args: found a string, expected an array of strings"},
		{doc("mcp_config", `{"command":"node","args":[1,{}]}`), broken, nil, []string{"not-a-string", "not-a-string"}, "mcp_config.args[1]: an argument that is not a text"},
		{doc("mcp_config", `{"command":"node","env":{"LD_PRELOAD":"x"}}`), broken, nil, []string{"env-name"}, `mcp_config.env.LD_PRELOAD: name "LD_PRELOAD" steers the loader, the interpreter or the network`},
		{doc("mcp_config", `{"command":"node","env":{"PYTHONPATH":"lib"}}`), func(m *Manifest) any { return m.Server.Env }, []EnvVar{{"PYTHONPATH", "lib"}}, nil, ""},
		{doc("mcp_config", `{"command":"node","env":{"A":[]}}`), broken, nil, []string{"not-a-string"}, "mcp_config.env.A: a value that is not a text"},
		{doc("mcp_config", `{"command":"node\u0000"}`), broken, nil, nil, "mcp_config: a command that holds a NUL character"},
		{doc("type", `"script"`), broken, nil, []string{"type-reserved"}, `type: the type "script" is reserved and cannot be installed`},
		{doc("type", `"mcp_docker"`), func(m *Manifest) any { return m.Type }, "mcp_local", []string{"type-unknown"}, ""},
		{remote(`{"url":"https://e.org/mcp"}`), server, Server{URL: "https://e.org/mcp", Transport: "streamable-http"}, nil, ""},
		{remote(`{"url":"https://e.org/mcp","transport":"http","headers":{"X-A":"1"}}`), server,
			Server{URL: "https://e.org/mcp", Transport: "streamable-http", Headers: []EnvVar{{"X-A", "1"}}}, nil, ""},
		{remote(`{"url":"https://e.org/mcp"}`, "transport", `"sse"`), server, Server{URL: "https://e.org/mcp", Transport: "sse"}, nil, ""},
		{remote(`{"url":"https://e.org/mcp","transport":"sse"}`, "transport", `"http"`), server, Server{URL: "https://e.org/mcp", Transport: "sse"}, nil, ""},
		{remote(`{"url":"https://e.org/","transport":"websocket"}`), broken, nil, []string{"transport-unknown"}, `mcp_config.transport: found "websocket", expected streamable-http, http or sse`},
		{doc("transport", `"sse"`), broken, nil, []string{"transport-unknown"}, `transport: found "sse", expected stdio for a local connector`},
		{remote(`{"url":""}`), broken, nil, []string{"url-missing"}, "mcp_config: a remote connector without a url"},
		{remote(`{"url":"http://e.org/"}`), broken, nil, []string{"url-invalid"}, "mcp_config.url: an http URL to another machine; expected https"},
		{remote(`{"url":"https://{ENV:H}/"}`, "env", `["H"]`), broken, nil, []string{"env-legacy-name", "url-invalid"}, "mcp_config.url: the token {ENV:H} stands in the scheme or host of a URL"},
		{remote(`{"url":"https://e.org/","headers":{"Host":"x"}}`), broken, nil, []string{"headers-name"}, `mcp_config.headers.Host: header "Host" belongs to the transport`},
		{remote(`{"url":"https://e.org/","headers":{"X Y":"x"}}`), broken, nil, []string{"headers-name"}, `mcp_config.headers.X Y: header "X Y" holds something other than letters, digits and -`},
		{remote(`{"url":"https://e.org/","headers":{"X":"a\r\nB: c"}}`), broken, nil, []string{"headers-value"}, "mcp_config.headers.X: a value that holds a NUL character or a line end"},
	})
}

// TestManifestMembers has the other rows of section 3, and those of section 8.
func TestManifestMembers(t *testing.T) {
	verify := func(m *Manifest) any { return m.Verify }
	command := func(d time.Duration) *Verify { return &Verify{"python3 verify.py", d} }
	seconds := func(v string) string { return doc("verify", `{"command":"python3 verify.py","timeout_secs":`+v+`}`) }
	check(t, []row{
		{doc("id", `null`), func(m *Manifest) any { return m.ID }, "", []string{"id-missing"}, ""},
		{doc("id", `"../x"`), broken, nil, []string{"id-invalid"}, `id: id "../x" does not begin with a-z or 0-9`},
		{doc("dependencies", `["a>=1","b"]`), func(m *Manifest) any { return m.Dependencies }, []string{"a>=1", "b"}, nil, ""},
		{doc("setup_instructions", `"do it"`), func(m *Manifest) any { return m.SetupInstructions }, []string{"do it"}, []string{"not-an-array"}, ""},
		{doc("engines", `{"Node":">=20","npm":null,"python":"new"}`), func(m *Manifest) any { return m.Engines }, map[string]string{"node": ">=20", "python": "new"}, []string{"engines-range"}, ""},
		{doc("docs", `[{"lang":"en","description":"D","llm_short_description":"S"},7]`), func(m *Manifest) any { return m.Docs }, []Doc{{"en", "D", "S"}}, []string{"doc-not-an-object"}, ""},
		{doc("files", `[{"path":"a","sha256":"`+sum64+`","size":1}]`), func(m *Manifest) any { return m.LegacyFiles }, []File{{"a", sum64, 1}}, []string{"files-in-manifest"}, ""},
		{doc("files", `[{"path":"../a","sha256":"`+sum64+`","size":1}]`), func(m *Manifest) any { return len(m.LegacyFiles) }, 0, []string{"file-path"}, ""},
		{doc("small_icon", `"s.svg"`), func(m *Manifest) any { return m.IconSmall }, "s.svg", []string{"icon-legacy"}, ""},
		{doc("verify", `null`), verify, (*Verify)(nil), nil, ""},
		{doc("verify", `{"command":"python3 verify.py"}`), verify, command(15 * time.Second), nil, ""},
		{seconds(`20`), verify, command(20 * time.Second), nil, ""},
		{seconds(`1`), verify, command(time.Second), nil, ""},
		{seconds(`120`), verify, command(2 * time.Minute), nil, ""},
		{seconds(`0`), verify, command(time.Second), []string{"verify-timeout"}, ""},
		{seconds(`-5`), verify, command(time.Second), []string{"verify-timeout"}, ""},
		{seconds(`1e9`), verify, command(2 * time.Minute), []string{"verify-timeout"}, ""},
		{seconds(`"30"`), verify, command(30 * time.Second), []string{"verify-timeout"}, ""},
		{seconds(`"NaN"`), verify, command(15 * time.Second), []string{"verify-timeout"}, ""},
		{seconds(`true`), verify, command(15 * time.Second), []string{"verify-timeout"}, ""},
		{doc("verify", `"python3 verify.py"`), verify, command(15 * time.Second), []string{"verify-not-an-object"}, ""},
		{doc("verify", `[]`), verify, (*Verify)(nil), []string{"verify-not-an-object"}, ""},
		{doc("verify", `{"command":" "}`), verify, (*Verify)(nil), []string{"verify-command-missing"}, ""},
		{doc("verify", `{"command":"a\u0000b"}`), broken, nil, []string{"verify-command-nul"}, "verify: the command holds a NUL character"},
	})
}

// TestAuth has the rows of format.md, section 7.
func TestAuth(t *testing.T) {
	auth := func(m *Manifest) any { return m.Auth }
	type result struct {
		Auth
		unsupported string
	}
	full := func(m *Manifest) any { return result{m.Auth, m.Auth.Unsupported()} }
	deliver := func(d string) string { return doc("auth", `{"type":"oauth2","provider":"p","deliver":`+d+`}`) }
	oauth := func(d Deliver) Auth { return Auth{Type: "oauth2", Provider: "p", Deliver: &d} }
	check(t, []row{
		{doc(), auth, Auth{}, nil, ""},
		{doc("auth", `{"type":"none"}`), auth, Auth{}, nil, ""},
		{doc("auth", `"none"`), auth, Auth{}, []string{"auth-not-an-object"}, ""},
		{doc("auth", `{"type":"api_key","delivery":"query","param":"k"}`), full, result{Auth{Type: "api_key", Delivery: "query", Param: "k"}, ""}, nil, ""},
		{doc("auth", `{"type":"api_key","delivery":"header","param":"X-API-Key"}`), full, result{Auth{Type: "api_key", Delivery: "header", Param: "X-API-Key"}, ""}, nil, ""},
		{doc("auth", `{"type":"api_key","delivery":"env","param":"K"}`), full, result{Auth{Type: "api_key", Delivery: "env", Param: "K"}, ""}, nil, ""},
		{doc("auth", `{"type":"api_key"}`), full, result{Auth{Type: "api_key"}, ""}, nil, ""},
		{doc("auth", `{"type":"api_key","delivery":"query"}`), full, result{Auth{Type: "api_key", Delivery: "query"}, ""}, []string{"auth-param-missing"}, ""},
		{doc("auth", `{"type":"api_key","delivery":"cookie"}`), full, result{Auth{Type: "api_key", Delivery: "cookie"}, `auth delivery "cookie"`}, []string{"auth-unsupported"}, ""},
		{doc("auth", `{"type":"api_key","delivery":"env","param":"LD_PRELOAD"}`), broken, nil, []string{"env-name"}, `auth.param: name "LD_PRELOAD" steers the loader, the interpreter or the network`},
		{doc("auth", `{"type":"password","delivery":"env"}`), full, result{Auth{Type: "password", Delivery: "env"}, ""}, nil, ""},
		{doc("auth", `{"type":"qr"}`), full, result{Auth{Type: "qr"}, ""}, nil, ""},
		{doc("auth", `{"type":"oauth2","provider":"google","scopes":["a","b"]}`), full, result{Auth{Type: "oauth2", Provider: "google", Scopes: []string{"a", "b"}}, ""}, nil, ""},
		{doc("auth", `{"type":"oauth2"}`), full, result{Auth{Type: "oauth2"}, ""}, []string{"auth-provider-missing"}, ""},
		{doc("auth", `{"type":"saml"}`), full, result{Auth{Type: "saml"}, `auth type "saml"`}, []string{"auth-type-unknown"}, ""},
		{doc("auth", `{"provider":"p"}`), broken, nil, []string{"auth-type-missing"}, "auth: it has no type"},
		{deliver(`{"as":"env","format":"google_authorized_user","env":"C"}`), full, result{oauth(Deliver{"env", "google_authorized_user", "C", ""}), ""}, nil, ""},
		{deliver(`{"format":"access_token","env":"C"}`), full, result{oauth(Deliver{"env", "access_token", "C", ""}), ""}, []string{"deliver-as-missing"}, ""},
		{deliver(`{"as":"file","format":"refresh_token","path":"{secrets}/c.json"}`), full, result{oauth(Deliver{"file", "refresh_token", "", "{secrets}/c.json"}), ""}, nil, ""},
		{deliver(`{"format":"refresh_token","path":"{secrets}/c.json"}`), full, result{oauth(Deliver{"file", "refresh_token", "", "{secrets}/c.json"}), ""}, []string{"deliver-as-missing"}, ""},
		{deliver(`{"as":"env","format":"pickle","env":"C"}`), full, result{oauth(Deliver{"env", "pickle", "C", ""}), `auth deliver format "pickle"`}, []string{"auth-unsupported"}, ""},
		{deliver(`{"as":"pipe","format":"access_token"}`), full, result{oauth(Deliver{"pipe", "access_token", "", ""}), `auth deliver as "pipe"`}, []string{"auth-unsupported"}, ""},
		{deliver(`{"as":"env","format":"access_token"}`), full, result{oauth(Deliver{"env", "access_token", "", ""}), ""}, []string{"deliver-env-missing"}, ""},
		{deliver(`{"as":"file","format":"access_token"}`), full, result{oauth(Deliver{"file", "access_token", "", ""}), ""}, []string{"deliver-path-missing"}, ""},
		{deliver(`{"as":"env","format":"access_token","env":"PATH"}`), broken, nil, []string{"env-name"}, `auth.deliver.env: name "PATH" steers the loader, the interpreter or the network`},
	})
}

// TestPermissions has the rows of format.md, section 10: a fault never widens.
func TestPermissions(t *testing.T) {
	perms := func(m *Manifest) any {
		if m.Permissions == nil {
			return nil
		}
		return *m.Permissions
	}
	hosts := func(list string) string {
		return doc("permissions", `{"network":{"hosts":[`+list+`]}}`, "env", `[{"name":"H"},{"name":"P"}]`)
	}
	check(t, []row{
		{doc(), perms, nil, nil, ""},
		{doc("permissions", `{}`), perms, Permissions{}, nil, ""},
		{doc("permissions", `7`), perms, Permissions{HostsDeclared: true}, []string{"permissions-not-an-object"}, ""},
		{doc("permissions", `{"network":{}}`), perms, Permissions{}, nil, ""},
		{doc("permissions", `{"network":[]}`), perms, Permissions{HostsDeclared: true}, []string{"permissions-network"}, ""},
		{doc("permissions", `{"network":{"hosts":[]}}`), perms, Permissions{HostsDeclared: true}, nil, ""},
		{doc("permissions", `{"network":{"hosts":"e.org:1"}}`), perms, Permissions{HostsDeclared: true}, []string{"not-an-array"}, ""},
		{hosts(`"{ENV:H}:{ENV:P}","*.example.org:443","10.0.0.1:80","[::1]:80"`), perms,
			Permissions{HostsDeclared: true, Hosts: []string{"{ENV:H}:{ENV:P}", "*.example.org:443", "10.0.0.1:80", "[::1]:80"}}, nil, ""},
		{hosts(`"e.org","e.org:0","e.org:http","*.:1",":1","a..b:1","a/b:1","{SECRET:H}:1","[x]:1",7`), perms, Permissions{HostsDeclared: true},
			[]string{"permissions-host", "permissions-host", "permissions-host", "permissions-host", "permissions-host", "permissions-host", "permissions-host", "permissions-host", "permissions-host", "not-a-string", "permissions-host"}, ""},
		{doc("permissions", `{"filesystem":{"read":["~/a","",3],"write":["b"]}}`), perms, Permissions{Read: []string{"~/a", "3"}, Write: []string{"b"}},
			[]string{"permissions-path", "permissions-path", "not-a-string", "permissions-path", "permissions-path"}, ""},
		{doc("permissions", `{"filesystem":{"read":["/a","{ENV:A}/b","C:\\c","\\\\d\\e"]}}`), perms, Permissions{Read: []string{"/a", "{ENV:A}/b", `C:\c`, `\\d\e`}}, nil, ""},
		{doc("permissions", `{"loopback":true,"browser":"yes","agent":"true"}`), perms, Permissions{Loopback: true, Agent: true}, []string{"not-a-boolean", "not-a-boolean"}, ""},
	})
}

func TestRefusedManifests(t *testing.T) {
	for src, want := range map[string]string{
		``:                        "connector.json:1:1: error: the document ends where a value was expected [syntax]",
		`[]`:                      "connector.json:1:1: error: found an array, expected an object [not-an-object]",
		`{} {}`:                   "connector.json:1:4: error: data after the document [syntax]",
		doc("id", `"x","id":"y"`): `connector.json:1:11: id: error: the key "id" stands here a second time [repeated-key]`,
		"{\n\"auth\":{\"type\":\"qr\",\"TYPE\":\"none\"}}":                `connector.json:2:21: auth.TYPE: error: the key "TYPE" differs from an earlier one only in case [case-twin]`,
		`{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "connector.json:1:37: error: nested deeper than 32 [syntax]",
		strings.Repeat(" ", MaxManifestBytes+1):                           "connector.json: error: 1048577 bytes; at most 1048576 [too-large]",
		"{\"a\":\"\xff\"}":                                                "connector.json:1:7: error: invalid UTF-8 [syntax]",
	} {
		m, _, err := ParseManifest([]byte(src), "connector.json")
		var refused *RefusedError
		if m != nil || !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", src, err, want)
		}
	}
}

func TestDocByLanguage(t *testing.T) {
	m := &Manifest{Docs: []Doc{{Lang: "fr"}, {Lang: "en"}, {Lang: "pt-BR"}, {Lang: "it"}}}
	for lang, want := range map[string]string{"it": "it", "it_IT": "it", "IT-ch": "it", "pt-br": "pt-BR", "pt": "en", "ja": "en", "": "en", "C": "en"} {
		if got := m.Doc(lang).Lang; got != want {
			t.Errorf("Doc(%q) is %q, want %q", lang, got, want)
		}
	}
	if got := (&Manifest{Docs: []Doc{{Lang: "fr"}}}).Doc("it").Lang; got != "fr" {
		t.Errorf("without English: %q", got)
	}
	if got := (&Manifest{}).Doc("it"); got != (Doc{}) {
		t.Errorf("without docs: %v", got)
	}
}

func TestManifestWithBOMAndUnknownMembers(t *testing.T) {
	m, diags := parse(t, "\xef\xbb\xbf"+doc("future", `{"x":[1,{"y":null}]}`))
	if m.ID != "x" || len(diags) != 0 {
		t.Errorf("%+v %v", m, diags)
	}
	if !json.Valid([]byte(doc())) {
		t.Error("the test's own manifest is not JSON")
	}
}
