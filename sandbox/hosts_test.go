package sandbox

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
)

func TestParseHost(t *testing.T) {
	for host, want := range map[string]string{
		"imap.example.org:993": "", "*.example.org:443": "", "127.0.0.1:80": "", "[::1]:80": "", "::1:80": "", "10.0.0.0/8:443": "", "localhost:1": "", "EXAMPLE.org.:65535": "",
		"example.org": "it is not host:port", ":443": "it is not host:port", "example.org:": `"" is no port`, "example.org:0": `"0" is no port`, "example.org:65536": `"65536" is no port`,
		"example.org:0443": `"0443" is no port`, "example.org:https": `"https" is no port`, "exa mple.org:1": `"exa mple.org" is neither a name nor an address`,
		"*.org:443": `"*.org" stands for a whole top-level domain`, "*:443": `"*" is neither a name nor an address`, "a..b:1": `"a..b" is neither a name nor an address`,
		"http://example.org:80": `"http://example.org" is neither a name nor an address`, "0x7f.1:80": `"0x7f.1" is neither a name nor an address`, "fe80::1%eth0:1": `"fe80::1%eth0" is neither a name nor an address`,
	} {
		_, err := parseHosts([]string{host})
		got := ""
		if err != nil {
			got = err.(*UnenforceableError).Why
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
	_, err := parseHosts([]string{"example.org"})
	if want := `enforcing network to "example.org": it is not host:port`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSpecialAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"1.1.1.1": "", "2606:4700::1111": "", "169.254.169.254": kindLink, "fe80::1%eth0": kindLink, "fd00:ec2::254": kindLink, "100.100.100.200": kindLink, "168.63.129.16": kindLink,
		"127.9.9.9": kindLoopback, "::1": kindLoopback, "0.0.0.0": kindLoopback, "::": kindLoopback, "::ffff:127.0.0.1": kindLoopback, "::ffff:169.254.169.254": kindLink,
		"10.1.2.3": kindPrivate, "172.31.0.1": kindPrivate, "172.32.0.1": "", "192.168.0.1": kindPrivate, "100.64.0.1": kindPrivate, "fd12::1": kindPrivate,
		"64:ff9b::a9fe:a9fe": kindLink, "64:ff9b::7f00:1": kindLoopback, "64:ff9b::101:101": "", "64:ff9b:1::1": kindHidden, "2002:7f00:1::": kindHidden, "2001::1": kindHidden, "::127.0.0.1": kindHidden,
		"224.0.0.251": kindReserved, "255.255.255.255": kindReserved, "240.0.0.1": kindReserved, "ff02::1": kindReserved, "198.18.0.1": kindReserved,
	} {
		if got := special(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
}

func TestWhereNamesLead(t *testing.T) {
	list, err := parseHosts([]string{"mail.example.org:993", "nas.lan:443", "home:80", "10.0.0.0/8:993", "localhost:25"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, addr string
		port       int
		loopback   bool
		ok         bool
	}{
		{"mail.example.org", "1.2.3.4", 993, false, true},
		{"mail.example.org", "10.0.0.1", 993, false, true}, // declared
		{"mail.example.org", "192.168.0.1", 993, false, false},
		{"mail.example.org", "127.0.0.1", 25, true, true},
		{"mail.example.org", "127.0.0.1", 25, false, false},
		{"mail.example.org", "127.0.0.1", 993, true, false},
		{"nas.lan", "192.168.0.1", 443, false, true},
		{"nas.lan", "169.254.169.254", 443, false, false},
		{"nas.lan", "127.0.0.1", 443, true, false},
		{"home", "fd00::1", 80, false, true},
	} {
		why := hostRules{list: list, loopback: tt.loopback}.leads(tt.name, netip.MustParseAddr(tt.addr), tt.port)
		if (why == "") != tt.ok {
			t.Errorf("%+v: %q", tt, why)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"a.example:1", "*.a.b:443", "[::1]:2", "10.0.0.0/8:3", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseHost(s)
		if err == nil && (r.port < 1 || r.port > 65535 || (r.name == "") == !r.prefix.IsValid() || r.name != cleanName(r.name)) {
			t.Errorf("%q gives %+v", s, r)
		}
	})
}

// query is a question for name as a resolver sends it.
func query(name string, kind uint16) []byte {
	msg := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range bytes.SplitSeq([]byte(name), []byte(".")) {
		msg = append(append(msg, byte(len(label))), label...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(append(msg, 0), kind), dnsClassIN)
}

func TestRespond(t *testing.T) {
	address := func(name string) (netip.Addr, byte) {
		if name == "known.example" {
			return netip.MustParseAddr("127.64.0.1"), dnsOK
		}
		return netip.Addr{}, dnsNoName
	}
	for _, tt := range []struct {
		msg     []byte
		code    byte
		answers byte
	}{
		{query("known.example", dnsTypeA), dnsOK, 1},
		{query("KNOWN.Example", dnsTypeA), dnsOK, 1},
		{query("known.example", dnsTypeAAAA), dnsOK, 0},
		{query("known.example", 65), dnsOK, 0},
		{query("unknown.example", dnsTypeA), dnsNoName, 0},
		{query("known.example", dnsTypeA)[:20], dnsBad, 0},
		{append(query("known.example", dnsTypeA)[:12], 0xc0, 0x0c, 0, 1, 0, 1), dnsBad, 0},
	} {
		got := respond(tt.msg, address)
		if len(got) < dnsHeader || !bytes.Equal(got[:2], tt.msg[:2]) || got[2]&0x80 == 0 || got[3]&0xf != tt.code || got[7] != tt.answers {
			t.Errorf("answer %x to %x", got, tt.msg)
		}
	}
	if got := respond([]byte("short"), address); got != nil {
		t.Errorf("answer %x to half a header", got)
	}
}

func FuzzRespond(f *testing.F) {
	f.Add(query("known.example", dnsTypeA))
	f.Add(query("x", 255)[:15])
	f.Fuzz(func(t *testing.T, msg []byte) {
		got := respond(msg, func(string) (netip.Addr, byte) { return netip.MustParseAddr("127.64.0.1"), dnsOK })
		if got != nil && (len(got) < dnsHeader || !bytes.Equal(got[:2], msg[:2]) || len(got) > len(msg)+16) {
			t.Errorf("answer %x", got)
		}
	})
}

// hello is a real ClientHello that asks for name.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		client.Close()
	}()
	buf := make([]byte, helloLimit)
	n, err := server.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func TestServerName(t *testing.T) {
	whole := hello(t, "api.example.org")
	if got, err := serverName(whole); got != "api.example.org" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for n := range whole {
		if got, err := serverName(whole[:n]); err != errMore {
			t.Fatalf("of %d bytes: %q, %v", n, got, err)
		}
	}
	// The same message in two records.
	half := len(whole) / 2
	split := append(append([]byte{}, whole[:3]...), binary.BigEndian.AppendUint16(nil, uint16(half-recordHead))...)
	split = append(append(split, whole[recordHead:half]...), whole[:3]...)
	split = append(binary.BigEndian.AppendUint16(split, uint16(len(whole)-half)), whole[half:]...)
	if got, err := serverName(split); got != "api.example.org" || err != nil {
		t.Errorf("in two records: %q, %v", got, err)
	}
	if got, err := serverName(hello(t, "127.0.0.1")); got != "" || err != nil { // an address is not sent
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range [][]byte{[]byte("GET / HTTP/1.1\r\n"), {22, 3, 1, 0, 0}, {22, 3, 1, 0, 1, 2}, {22, 3, 1, 0, 4, 1, 0, 0, 0}} {
		if got, err := serverName(bad); err != errHello {
			t.Errorf("%x: %q, %v", bad, got, err)
		}
	}
}

func FuzzServerName(f *testing.F) {
	f.Add(hello(f, "api.example.org"))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, err := serverName(b); err != nil && name != "" {
			t.Errorf("%q with %v", name, err)
		}
	})
}
