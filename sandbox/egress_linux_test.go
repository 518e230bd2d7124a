package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// fakeWorld answers for names on a loopback address: name → address, or a list
// that is gone through one question at a time.
func fakeWorld(t testing.TB, names map[string][]string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	var asked atomic.Int64
	go func() {
		buf := make([]byte, dnsLimit)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo(respond(buf[:n], func(name string) (netip.Addr, byte) {
				list := names[name]
				if len(list) == 0 {
					return netip.Addr{}, dnsNoName
				}
				q, _ := parseQuestion(buf[:n])
				if q.kind != dnsTypeA {
					return netip.Addr{}, dnsOK
				}
				return netip.MustParseAddr(list[int(asked.Add(1)-1)%len(list)]), dnsOK
			}), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// greeter listens on a loopback address, says hello first, and echoes lines.
func greeter(t testing.TB, addr string) (port int) {
	t.Helper()
	return serveOn(t, addr, func(c net.Conn) {
		fmt.Fprintf(c, "hello from %s\n", addr)
		in := bufio.NewReader(c)
		for {
			l, err := in.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(c, l)
		}
	})
}

func serveOn(t testing.TB, addr string, serve func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// talk is a program that connects and shows what it reads, or what failed.
const talk = `
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    try:
        s = socket.create_connection((host.strip("[]"), int(port)), 5)
        line = s.makefile().readline().strip()
        print(target, "got", repr(line))
    except Exception as e:
        print(target, type(e).__name__, getattr(e, "errno", ""))
`

func talkTo(t *testing.T, s *Sandbox, p Policy, targets ...string) (string, []Denial) {
	t.Helper()
	c := Command{Argv: append([]string{"/usr/bin/python3", "-c", talk}, targets...), Dir: "/usr", Env: []string{"HTTPS_PROXY=http://127.0.0.1:1", "PATH=/usr/bin"}}
	r, err := s.Run(t.Context(), p, c, nil)
	if err != nil || r.Code != 0 {
		t.Fatalf("got %+v, %v\n%s%s", r, err, r.Stdout, r.Stderr)
	}
	return string(r.Stdout), r.Denied
}

func TestOnlyDeclaredHosts(t *testing.T) {
	if !isolated(t) {
		return
	}
	s := openMode(t, Combined)
	port, local := greeter(t, "127.0.0.2"), greeter(t, "127.0.0.1")
	s.resolver = fakeWorld(t, map[string][]string{
		"imap.example.org": {"127.0.0.2"}, "a.b.wild.example.org": {"127.0.0.2"}, "wild.example.org": {"127.0.0.2"},
		"inside.example.org": {"10.0.0.1"}, "meta.example.org": {"169.254.169.254"}, "other.example.org": {"127.0.0.2"},
		"nat64.example.org": {"64:ff9b::7f00:1"},
	})
	at := func(host string) string { return fmt.Sprintf("%s:%d", host, port) }
	p := Policy{Network: Network{Hosts: []string{at("imap.example.org"), at("*.wild.example.org"), at("inside.example.org"), at("meta.example.org"),
		at("gone.example.org"), at("127.0.0.2"), fmt.Sprintf("localhost:%d", local)}}, Loopback: true}
	const yes, reset, noName, closed = "got 'hello from 127.0.0.2'", "ConnectionResetError 104", "gaierror -2", "ConnectionRefusedError 111"
	rows := []struct{ target, want, denied string }{
		{at("imap.example.org"), yes, ""},
		{at("IMAP.example.org"), yes, ""},
		{at("a.b.wild.example.org"), yes, ""},
		{at("127.0.0.2"), yes, ""},
		{fmt.Sprintf("localhost:%d", local), "got 'hello from 127.0.0.1'", ""},
		{at("gone.example.org"), noName, ""}, // declared, and it does not exist
		{at("wild.example.org"), reset, "the name is not declared"},
		{at("other.example.org"), reset, "the name is not declared"},
		{"other.example.org:443", reset, "the name is not declared"},
		{at("inside.example.org"), reset, "it leads to 10.0.0.1, a private address"},
		{at("meta.example.org"), reset, "it leads to 169.254.169.254, a link-local or metadata address"},
		{at("8.8.8.8"), reset, "the address is not declared"},
		{at("192.168.1.1"), reset, "the address is not declared, and it is a private address"},
		{"169.254.169.254:80", reset, "the address is not declared, and it is a link-local or metadata address"},
		{at("[2001:db8::1]"), reset, "the address is not declared, and it is a reserved address"},
		{fmt.Sprintf("imap.example.org:%d", local), reset, "the port is not declared for this name"},
		{"imap.example.org:443", reset, "the port is not declared for this name"},
		{"imap.example.org:2", closed, ""},
	}
	var targets []string
	for _, r := range rows {
		targets = append(targets, r.target)
	}
	out, denied := talkTo(t, s, p, targets...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, r := range rows {
		if lines[i] != r.target+" "+r.want {
			t.Errorf("got %q, want %s", lines[i], r.want)
		}
		if want := (Denial{DeniedNetwork, r.target, r.denied}); r.denied != "" && !slices.Contains(denied, want) {
			t.Errorf("%v is not in the list %v", want, denied)
		}
	}
	if len(denied) != 11 {
		t.Errorf("%d refusals, want 11: %v", len(denied), denied)
	}
}

func TestRebindingGainsNothing(t *testing.T) {
	if !isolated(t) {
		return
	}
	// The name changes what it leads to with every question. However many questions a connection takes, four
	// connections cannot all meet one of the three good answers of seven.
	const good, bad = "127.0.0.2", "127.0.0.1"
	s := openMode(t, Combined)
	port := greeter(t, good)
	s.resolver = fakeWorld(t, map[string][]string{"turns.example.org": {good, bad, good, bad, bad, good, bad}})
	at := fmt.Sprintf("turns.example.org:%d", port)
	p := Policy{Network: Network{Hosts: []string{at, fmt.Sprintf("127.0.0.2:%d", port)}}, Loopback: true}
	out, denied := talkTo(t, s, p, at, at, at, at)
	if strings.Contains(out, "127.0.0.1") {
		t.Errorf("reached what was not declared: %s", out)
	}
	if want := (Denial{DeniedNetwork, at, "it leads to 127.0.0.1, an address of this machine"}); !slices.Contains(denied, want) {
		t.Errorf("%s\nrefused: %v", out, denied)
	}
}

func TestNoNetworkAtAll(t *testing.T) {
	if !isolated(t) {
		return
	}
	port := greeter(t, "127.0.0.1")
	for _, mode := range []Mode{Combined, Bubblewrap, Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			out, _ := talkTo(t, openMode(t, mode), Policy{}, fmt.Sprintf("127.0.0.1:%d", port), "example.org:443", fmt.Sprintf("127.0.0.2:%d", port))
			if strings.Contains(out, "got") || strings.Count(out, "\n") != 3 {
				t.Errorf("got %s", out)
			}
		})
	}
}
