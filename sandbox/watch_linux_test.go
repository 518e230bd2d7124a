package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestSharedNetworkIsJudged(t *testing.T) {
	if !isolated(t) {
		return
	}
	port := greeter(t, "127.0.0.1")
	at := func(host string) string { return fmt.Sprintf("%s:%d", host, port) }
	const denied, yes = "PermissionError 13", "got 'hello from 127.0.0.1'"
	for _, tt := range []struct {
		name   string
		policy Policy
		want   map[string]string
	}{
		{"everything", Policy{Network: Network{All: true}}, map[string]string{
			at("127.0.0.1"): denied, at("0.0.0.0"): denied, at("[::ffff:127.0.0.1]"): denied, at("localhost"): denied, "169.254.169.254:80": denied, "[fe80::1]:80": denied, "100.100.100.200:80": denied}},
		{"everything and this machine", Policy{Network: Network{All: true}, Loopback: true}, map[string]string{
			at("127.0.0.1"): yes, at("localhost"): yes, "169.254.169.254:80": denied, "127.0.0.1:1": "ConnectionRefusedError 111"}},
		{"everything and one port", Policy{Network: Network{All: true, Hosts: []string{at("127.0.0.1")}}}, map[string]string{
			at("127.0.0.1"): yes, at("0.0.0.0"): denied, "127.0.0.1:1": denied, "127.0.0.2:1": denied, "169.254.169.254:80": denied}},
		{"everything and one port by name", Policy{Network: Network{All: true, Hosts: []string{at("localhost")}}}, map[string]string{
			at("127.0.0.1"): yes, at("localhost"): yes, "127.0.0.1:1": denied}},
		{"this machine", Policy{Loopback: true}, map[string]string{
			at("127.0.0.1"): yes, at("localhost"): yes, "169.254.169.254:80": denied, "10.0.0.1:80": denied, "8.8.8.8:53": denied, "example.org:80": "gaierror -3"}},
	} {
		for _, mode := range []Mode{Combined, Bubblewrap, Landlock} {
			t.Run(tt.name+"/"+string(mode), func(t *testing.T) {
				s := openMode(t, mode)
				if s.facts.Watch != "" {
					t.Skip(s.facts.Watch)
				}
				var targets []string
				for target := range tt.want {
					targets = append(targets, target)
				}
				out, refused := talkTo(t, s, tt.policy, targets...)
				for _, target := range targets {
					if !strings.Contains("\n"+out, "\n"+target+" "+tt.want[target]+"\n") {
						t.Errorf("%s is not %s:\n%s", target, tt.want[target], out)
					}
					if _, err := netip.ParseAddrPort(target); err == nil && tt.want[target] == denied && !strings.Contains(target, "ffff") &&
						!slices.ContainsFunc(refused, func(d Denial) bool { return d.Target == target }) {
						t.Errorf("%s is not in the list %v", target, refused)
					}
				}
			})
		}
	}
}

// TestListenerNeedsAGrant holds that a process in the machine's network cannot
// let others in.
func TestListenerNeedsAGrant(t *testing.T) {
	const listen = `
import socket
s = socket.socket()
try:
    s.bind(("127.0.0.1", 0)); s.listen(1); print("listens")
except Exception as e:
    print(type(e).__name__)
try:
    s = socket.socket(); s.listen(1); print("listens")
except Exception as e:
    print(type(e).__name__)
`
	for _, mode := range []Mode{Combined, Bubblewrap, Landlock} {
		for loopback, want := range map[bool]string{false: "PermissionError\nPermissionError\n", true: "listens\nlistens\n"} {
			p := Policy{Network: Network{All: true}, Loopback: loopback}
			r, err := openMode(t, mode).Run(t.Context(), p, Command{Argv: []string{"/usr/bin/python3", "-c", listen}, Dir: "/usr"}, nil)
			if err != nil || string(r.Stdout) != want {
				t.Errorf("%s, loopback %v: got %q, %v\n%s", mode, loopback, r.Stdout, err, r.Stderr)
			}
		}
	}
}

func TestNodeTalks(t *testing.T) {
	port := greeter(t, "127.0.0.1")
	const script = `const s = require("net").connect(+process.argv[1], "localhost"); s.on("data", d => { console.log(String(d).trim()); s.end() }); s.on("error", e => console.log(e.code || e.errors))`
	for _, mode := range []Mode{Combined, Landlock} {
		c := Command{Argv: []string{"/usr/bin/node", "-e", script, fmt.Sprint(port)}, Dir: "/usr"}
		r, err := openMode(t, mode).Run(t.Context(), Policy{Loopback: true}, c, nil)
		if err != nil || string(r.Stdout) != "hello from 127.0.0.1\n" {
			t.Errorf("%s: got %q, %v\n%s", mode, r.Stdout, err, r.Stderr)
		}
	}
}
