package activate

import (
	"fmt"
	"slices"
	"testing"

	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

func testTrial(t *testing.T, permissions string) *trial {
	t.Helper()
	m := parse(t, `{"id":"c","name":"C","type":"mcp_local","scope":"user","version":1,
	 "env":[{"name":"HOST","label":"Mail host","required":true},{"name":"PORT","label":"Port","type":"number"},{"name":"DIR","label":"Folder","type":"directory"}],
	 "auth":{"type":"none"},"mcp_config":{"command":"python3","args":["s.py"]}`+permissions+`}`)
	box, err := sandbox.New(sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	return &trial{name: "c", manifest: m, values: newValues(m), box: box}
}

const declaredAccess = `,"permissions":{"network":{"hosts":["{ENV:HOST}:{ENV:PORT}","*.example.org:443"]},"filesystem":{"read":["{ENV:DIR}"],"write":["{ENV:DIR}"]}}`

// TestPolicy: silence on the network is every host but this machine; what is
// declared is all there is; the user grants and withholds on top.
func TestPolicy(t *testing.T) {
	a := &Activator{Home: "/home/x", Environ: []string{"SSH_AUTH_SOCK=/run/agent"}}
	silent := testTrial(t, "").policy(a)
	if !slices.Equal(silent.Hidden, []string{"/home/x"}) {
		t.Errorf("our own home is not hidden: %q", silent.Hidden)
	}
	if !silent.Network.All || silent.Loopback || len(silent.Read)+len(silent.Write) > 0 || silent.Agent != "" {
		t.Errorf("silent: %+v", silent)
	}
	tr := testTrial(t, declaredAccess)
	tr.dir = "/home/x/work/c/1"
	tr.values.set("HOST", keystore.NewSecret("imap.example.org"))
	tr.values.set("PORT", keystore.NewSecret("993"))
	p := tr.policy(a)
	if p.Network.All || !slices.Equal(p.Network.Hosts, []string{"imap.example.org:993", "*.example.org:443"}) || p.Loopback {
		t.Errorf("declared: %+v", p.Network)
	}
	if !slices.Equal(p.Own, []string{"/home/x/work/c/1", "/home/x/state/c"}) || len(p.Read)+len(p.Write) > 0 {
		t.Errorf("paths: own %q, read %q, write %q", p.Own, p.Read, p.Write)
	}
	tr.values.set("HOST", keystore.NewSecret("127.0.0.1"))
	tr.values.set("DIR", keystore.NewSecret("/data/mail"))
	tr.grants = []Access{{"network", "b.example.org:25"}, {"agent", ""}, {"read", "/data/keys"}}
	tr.withheld = []Access{{"network", "*.example.org:443"}, {"write", "/data/mail"}}
	p = tr.policy(a)
	if !p.Loopback || !slices.Equal(p.Network.Hosts, []string{"127.0.0.1:993", "b.example.org:25"}) || p.Agent != "/run/agent" {
		t.Errorf("granted: %+v", p)
	}
	if !slices.Equal(p.Read, []string{"/data/mail", "/data/keys"}) || len(p.Write) > 0 {
		t.Errorf("paths: read %q, write %q", p.Read, p.Write)
	}
}

// TestStandIn: a plan names what was not asked yet by the label of its field.
func TestStandIn(t *testing.T) {
	tr := testTrial(t, declaredAccess)
	label := tr.values.standIn()
	hosts := tr.policy(&Activator{}).Network.Hosts
	if got := label(hosts[0]); got != "<Mail host>:<Port>" {
		t.Errorf("%q", got)
	}
}

func TestParseAccess(t *testing.T) {
	for text, ok := range map[string]bool{
		"network=all": true, "network=a.example:1": true, "network=[::1]:80": true, "network=*.a.example:443": true, "loopback": true, "browser": true, "agent": true,
		"read=/a/b": true, "write=/a/../b": true,
		"": false, "network": false, "network=a": false, "network=a:": false, "read": false, "read=a": false, "read=/": false, "write=/a/..": false, "loopback=1": false, "all": false,
	} {
		x, err := ParseAccess(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if again, err2 := ParseAccess(x.String()); err == nil && (err2 != nil || again != x) {
			t.Errorf("%q reads back as %+v (%v)", text, again, err2)
		}
	}
}

func TestRelaxations(t *testing.T) {
	got := relaxations([]sandbox.Denial{
		{Kind: sandbox.DeniedNetwork, Target: "a.example:443"}, {Kind: sandbox.DeniedNetwork, Target: "a.example:443"}, {Kind: sandbox.DeniedNetwork, Target: "no port"},
		{Kind: sandbox.DeniedFile, Target: "/data/x", Why: "it is not visible in the sandbox"}, {Kind: sandbox.DeniedFile, Target: "/data/y", Why: "it may be read, not written"},
	})
	if want := []Access{{"network", "a.example:443"}, {"read", "/data/x"}, {"write", "/data/y"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestWithheldGivesNothing: what is withheld never opens more than before, least
// of all this machine as a whole; a host granted by name stays beside the network
// withheld as a whole.
func TestWithheldGivesNothing(t *testing.T) {
	local := `,"permissions":{"network":{"hosts":["localhost:81","a.example.org:443"]},"filesystem":{"read":["/data/b"],"write":["/data/a"]}}`
	all := Access{"network", "all"}
	for _, c := range []struct {
		name, declared   string
		grants, withheld []Access
		want             string // every host, loopback, hosts, read, write
	}{
		{"all of what is declared", local, nil, []Access{all}, "false false [] [/data/b] [/data/a]"},
		{"the one local host", local, nil, []Access{{"network", "LocalHost.:81"}}, "false false [a.example.org:443] [/data/b] [/data/a]"},
		{"this machine", local, nil, []Access{{"loopback", ""}}, "false false [a.example.org:443] [/data/b] [/data/a]"},
		{"one host left", "", []Access{{"network", "127.0.0.1:81"}}, []Access{all}, "false true [127.0.0.1:81] [] []"},
		{"one host besides", "", []Access{{"network", "127.0.0.1:81"}}, nil, "true false [127.0.0.1:81] [] []"},
		{"granted and withheld", "", []Access{all, {"loopback", ""}}, []Access{all, {"loopback", ""}}, "false false [] [] []"},
		{"a folder and what is in it", local, nil, []Access{{"read", "/data"}}, "false true [localhost:81 a.example.org:443] [] []"},
		{"to write", local, nil, []Access{{"write", "/data/a"}}, "false true [localhost:81 a.example.org:443] [/data/b] []"},
	} {
		tr := testTrial(t, c.declared)
		tr.grants, tr.withheld = c.grants, c.withheld
		p := tr.policy(&Activator{Home: "/home/x"})
		if got := fmt.Sprint(p.Network.All, p.Loopback, p.Network.Hosts, p.Read, p.Write); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
