package sandbox

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tlsServer answers each TLS connection with the name that was asked for.
func tlsServer(t testing.TB, addr string) (port int) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return serveOn(t, addr, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() == nil {
			fmt.Fprintf(s, "asked for %q\n", s.ConnectionState().ServerName)
			_ = s.CloseWrite()
			_, _ = io.Copy(io.Discard, s)
		}
	})
}

// askTLS connects to argv[1]:argv[2] and asks for each further name, "-" for none.
const askTLS = `
import socket, ssl, sys
ctx = ssl._create_unverified_context()
for name in sys.argv[3:]:
    try:
        raw = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
        s = ctx.wrap_socket(raw, server_hostname=None if name == "-" else name)
        print(name, s.makefile().readline().strip())
    except Exception as e:
        print(name, type(e).__name__)
`

func TestNameInTLSIsChecked(t *testing.T) {
	if !isolated(t) {
		return
	}
	s := openMode(t, Combined)
	port := tlsServer(t, "127.0.0.2")
	s.resolver = fakeWorld(t, map[string][]string{"api.example.org": {"127.0.0.2"}})
	p := Policy{Network: Network{Hosts: []string{fmt.Sprintf("api.example.org:%d", port), fmt.Sprintf("127.0.0.2:%d", port)}}}
	p.Loopback = true
	c := Command{Argv: []string{"/usr/bin/python3", "-c", askTLS, "api.example.org", fmt.Sprint(port), "api.example.org", "API.example.org", "evil.example.org", "-"}, Dir: "/usr"}
	r, err := s.Run(t.Context(), p, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	want := []string{`api.example.org asked for "api.example.org"`, `API.example.org asked for "API.example.org"`, "evil.example.org SSL", `- asked for ""`}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(strings.Replace(got[i], "ConnectionReset", "SSL", 1), want[i]) {
			t.Errorf("got %q, want %q\n%s", got, want, r.Stderr)
			break
		}
	}
	if d := (Denial{DeniedNetwork, fmt.Sprintf("api.example.org:%d", port), `its TLS handshake asks for "evil.example.org"`}); len(r.Denied) != 1 || r.Denied[0] != d {
		t.Errorf("refused %v", r.Denied)
	}
}

func TestThroughTheProxy(t *testing.T) {
	if !isolated(t) {
		return
	}
	s := openMode(t, Combined)
	target := greeter(t, "127.0.0.2")
	var asked, credentials string
	port := serveOn(t, "127.0.0.1", func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		asked, credentials = req.Method+" "+req.Host, req.Header.Get("Proxy-Authorization")
		if !strings.HasPrefix(req.Host, "imap.") {
			fmt.Fprint(c, "HTTP/1.1 403 Forbidden\r\n\r\n")
			return
		}
		out, err := net.Dial("tcp", fmt.Sprintf("127.0.0.2:%d", target))
		if err != nil {
			return
		}
		defer out.Close()
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, c) }()
		_, _ = io.Copy(c, out)
	})
	env := map[string]string{"https_proxy": fmt.Sprintf("http://u:p@127.0.0.1:%d", port), "NO_PROXY": "direct.example.org"}
	s.env = func(n string) string { return env[n] }
	s.resolver = fakeWorld(t, map[string][]string{"direct.example.org": {"127.0.0.2"}})
	direct := fmt.Sprintf("direct.example.org:%d", target)
	p := Policy{Network: Network{Hosts: []string{"imap.example.org:993", "smtp.example.org:465", direct}}}
	out, denied := talkTo(t, s, p, "imap.example.org:993")
	if out != "imap.example.org:993 got 'hello from 127.0.0.2'\n" || asked != "CONNECT imap.example.org:993" || credentials != "Basic dTpw" || len(denied) != 0 {
		t.Errorf("got %q, asked %q with %q, refused %v", out, asked, credentials, denied)
	}
	out, denied = talkTo(t, s, p, "smtp.example.org:465", direct)
	if strings.Contains(out, "got") || len(denied) != 2 || !strings.Contains(denied[0].Why, "it answered 403 Forbidden") || strings.Contains(denied[0].Why, ":p@") {
		t.Errorf("got %q, refused %v", out, denied)
	}
	if len(denied) == 2 && denied[1].Why != "it leads to 127.0.0.2, an address of this machine" {
		t.Errorf("past the proxy: %v", denied[1])
	}
}
