package activate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

func parse(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m, _, err := manifest.ParseManifest([]byte(text), "connector.json")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const envManifest = `{"id":"c","name":"C","type":"mcp_local","scope":"user","version":1,
 "env":[{"name":"HOST","label":"Host","required":true},{"name":"PW","label":"PW","required":true,"secret":true},
        {"name":"MODE","label":"Mode","default":"fast"},{"name":"OPT","label":"Opt"}],
 "auth":{"type":"password","delivery":"env"},
 "mcp_config":{"command":"python3","args":["server.py","--host","{ENV:HOST}","-x"],
   "env":{"URL":"imap://{ENV:HOST}/?p={SECRET:PW}","HOST":"literal","MODE":"{ENV:HOST}-mode","PYTHONPATH":"lib","GONE":"{ENV:NOPE}!","EMPTY":"{ENV:OPT}"}}}`

func filledValues(m *manifest.Manifest) *values {
	v := newValues(m)
	v.set("HOST", keystore.NewSecret("h.example.org"))
	v.set("PW", keystore.NewSecret(`a'b"{ENV:HOST}`))
	v.applyDefaults()
	return v
}

// TestConnectorEnviron holds every rule of format.md section 6.
func TestConnectorEnviron(t *testing.T) {
	m := parse(t, envManifest)
	ours := []string{"PATH=/usr/bin:.::/bin", "HOME=/home/me", "USER=me", "LC_ALL=de_DE.UTF-8", "https_proxy=http://p:1", "SSL_CERT_FILE=/ca.pem",
		"GITHUB_TOKEN=leak", "LD_PRELOAD=/evil.so", "NODE_OPTIONS=--inspect", "DBUS_SESSION_BUS_ADDRESS=unix:x", "SSH_AUTH_SOCK=/s", "TMPDIR=/tmp", "XDG_RUNTIME_DIR=/run/user/1"}
	base := baseEnviron(ours, "/state/c/home", []record.Runtime{{Program: "python3", Path: "/opt/py/bin/python3"}})
	env, undeclared := connectorEnviron(base, m, filledValues(m), "/work/c")
	want := []string{
		"USER=me", "LC_ALL=de_DE.UTF-8", "https_proxy=http://p:1", "SSL_CERT_FILE=/ca.pem", "TMPDIR=/tmp",
		"PATH=/opt/py/bin:/usr/bin:/bin", "HOME=/state/c/home",
		"HOST=h.example.org", "PW=a'b\"{ENV:HOST}", "MODE=h.example.org-mode",
		"URL=imap://h.example.org/?p=a'b\"{ENV:HOST}", "PYTHONPATH=/work/c/.pydeps:lib", "GONE=!", "EMPTY=",
	}
	if !slices.Equal(env, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(env, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(undeclared, []string{"{ENV:NOPE}"}) {
		t.Errorf("undeclared: %q", undeclared)
	}
}

func TestKeyDeliveredByEnv(t *testing.T) {
	m := parse(t, `{"id":"c","name":"C","type":"mcp_local","scope":"user","version":1,"env":[{"name":"MY_KEY","label":"k","required":true,"secret":true}],
	 "auth":{"type":"api_key","delivery":"env","param":"MAPS_KEY"},"mcp_config":{"command":"node","args":["s.js"]}}`)
	v := newValues(m)
	v.set("MY_KEY", keystore.NewSecret("k-123456"))
	env, _ := connectorEnviron(baseEnviron(nil, "/h", nil), m, v, "/w")
	if !slices.Contains(env, "MAPS_KEY=k-123456") || !slices.Contains(env, "MY_KEY=k-123456") {
		t.Errorf("the key is not delivered: %q", env)
	}
}

func TestServerArgv(t *testing.T) {
	m := parse(t, envManifest)
	files := []manifest.File{{Path: "server.py"}, {Path: "lib/x"}}
	argv, err := serverArgv(&trial{manifest: m, files: files, values: filledValues(m), runtimes: []record.Runtime{{Program: "python3", Path: "/opt/py/bin/python3"}}, dir: "/work/c"})
	if want := []string{"/opt/py/bin/python3", "/work/c/server.py", "--host", "h.example.org", "-x"}; err != nil || !slices.Equal(argv, want) {
		t.Errorf("%q (%v), want %q", argv, err, want)
	}
	for _, arg := range []string{"--pw={SECRET:PW}", "{ENV:PW}", "{SECRET:HOST}"} {
		m.Server.Args = []string{"server.py", arg}
		_, err := serverArgv(&trial{manifest: m, files: files, values: filledValues(m), dir: "/work/c"})
		var secret *SecretArgumentError
		if !errors.As(err, &secret) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestGivenValues(t *testing.T) {
	m := parse(t, envManifest)
	v := newValues(m)
	for name, tt := range map[string]struct {
		given map[string]Given
		want  string
	}{
		"unknown":   {map[string]Given{"X": {Source: "--set"}}, `--set X: the connector asks for no such field; it asks for HOST, PW, MODE, OPT`},
		"public":    {map[string]Given{"PW": {Source: "--set", Public: true, Value: keystore.NewSecret("canary-canary")}}, `--set PW: this field is a secret, and arguments are visible to every user of the machine`},
		"two lines": {map[string]Given{"HOST": {Source: "--set", Value: keystore.NewSecret("a\nb")}}, ""},
	} {
		_, err := v.take(tt.given)
		if err == nil || tt.want != "" && err.Error() != tt.want || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if err := (&MissingError{Name: "c", Fields: v.missing()}).Error(); err != `"c" needs values that were not given: HOST (Host), PW (PW)` {
		t.Error(err)
	}
}
