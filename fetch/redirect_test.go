package fetch

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// canary is a password that must not be seen anywhere but by its own host.
const canary = "c4n4ry-p4ss"

func TestRedirects(t *testing.T) {
	tr, _ := demo()
	var mu sync.Mutex
	seen := map[string][]string{} // server → authorizations
	record := func(name string, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen[name] = append(seen[name], r.Header.Get("Authorization"))
			if strings.Contains(fmt.Sprint(r.Header)+r.URL.String(), canary) {
				seen[name] = append(seen[name], "leak")
			}
			mu.Unlock()
			h.ServeHTTP(w, r)
		})
	}
	var first, other, plainer *httptest.Server
	hop := func(to func(r *http.Request) string, code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to(r))
			w.WriteHeader(code)
		})
	}
	other = tlsServer(record("other", tr))
	defer other.Close()
	plainer = httptest.NewServer(record("plain", tr))
	defer plainer.Close()
	mux := http.NewServeMux()
	first = tlsServer(record("first", mux))
	defer first.Close()
	mux.Handle("/", tr)
	at := func(s *httptest.Server) func(*http.Request) string {
		return func(r *http.Request) string { return (*s).URL + "/connectors.json?sig=" + canary }
	}
	for _, code := range []int{301, 302, 307, 308} {
		p := fmt.Sprintf("/cross%d/", code)
		mux.Handle(p, hop(func(r *http.Request) string { return at(other)(r) }, code))
		mux.Handle(fmt.Sprintf("/same%d/", code), hop(func(r *http.Request) string { return "/connectors.json" }, code))
	}
	mux.Handle("/down/", hop(func(r *http.Request) string { return plainer.URL + "/connectors.json" }, 302))
	mux.Handle("/user/", hop(func(r *http.Request) string {
		return strings.Replace(other.URL, "https://", "https://u:"+canary+"@", 1) + "/connectors.json"
	}, 302))
	mux.Handle("/name/", hop(func(r *http.Request) string {
		return strings.Replace(first.URL, "127.0.0.1", "localhost", 1) + "/connectors.json"
	}, 302))
	mux.Handle("/file/", hop(func(*http.Request) string { return "file:///etc/passwd" }, 302))
	mux.Handle("/loop/", hop(func(*http.Request) string { return "/loop/connectors.json" }, 302))
	roots := filepath.Join(t.TempDir(), "ca.pem")
	both := append(certOf(first), certOf(other)...)
	if err := os.WriteFile(roots, both, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path, want  string
		first       int // requests to the first server
		other, text string
	}{
		{"/same301", "none", 2, "", ""},
		{"/same307", "none", 2, "", ""},
		{"/cross301", "none", 1, "no credentials", ""},
		{"/cross302", "none", 1, "no credentials", ""},
		{"/cross307", "none", 1, "no credentials", ""},
		{"/cross308", "none", 1, "no credentials", ""},
		{"/user", "none", 1, "no credentials", ""},
		{"/name", "unreachable", 1, "", ""}, // the certificate is for example.com and 127.0.0.1
		{"/down", "redirect", 1, "", "redirected to http://127.0.0.1"},
		{"/file", "redirect", 1, "", `scheme "file"`},
		{"/loop", "other", redirectsMost + 1, "", "more than 5 redirects"},
	} {
		t.Run(row.path, func(t *testing.T) {
			clear(seen)
			o := options(t, strings.Replace(first.URL, "https://", "https://user:"+canary+"@", 1)+row.path)
			o.Env = func(k string) string { return map[string]string{"SSL_CERT_FILE": roots}[k] }
			m := open(t, o)
			_, err := m.Index(t.Context(), Refresh)
			if got := errorKind(err); got != row.want || err != nil && !strings.Contains(err.Error(), row.text) {
				t.Errorf("%s (%v), want %s: %s", got, err, row.want, row.text)
			}
			if err != nil && strings.Contains(err.Error(), canary) || strings.Contains(m.Location(), "user:") || strings.Contains(m.Location(), canary) {
				t.Errorf("credentials in a message: %v", err)
			}
			if n := len(seen["first"]); n != row.first*2 && n != row.first {
				t.Errorf("%d requests to the first host, want %d", n, row.first)
			}
			if len(seen["first"]) == 0 || !strings.HasPrefix(seen["first"][0], "Basic ") {
				t.Errorf("the marketplace's own host got no credentials: %q", seen["first"])
			}
			for _, a := range append(seen["other"], seen["plain"]...) {
				if a != "" && a != "leak" {
					t.Errorf("another host got %q", a)
				}
			}
			if row.other != "" && len(seen["other"]) == 0 || len(seen["plain"]) > 0 {
				t.Errorf("hosts asked: %v", seen)
			}
			if strings.Contains(snapshotText(t, o.CacheDir), canary) {
				t.Error("credentials in the cache")
			}
		})
	}
}

// snapshotText is all that the cache holds.
func snapshotText(t *testing.T, dir string) string {
	var b strings.Builder
	filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			data, _ := os.ReadFile(p)
			b.WriteString(p)
			b.Write(data)
		}
		return nil
	})
	return b.String()
}

func certOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// tlsServer is a loopback server that does not report clients who do not trust it.
func tlsServer(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	return s
}

func TestPrivateAuthorities(t *testing.T) {
	tr, _ := demo()
	s := tlsServer(tr)
	defer s.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	for name, data := range map[string][]byte{file: certOf(s), empty: []byte("nothing\n"), filepath.Join(dir, "README"): []byte("x")} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"file", map[string]string{"SSL_CERT_FILE": file}, ""},
		{"folder", map[string]string{"SSL_CERT_DIR": "/nowhere" + string(filepath.ListSeparator) + dir}, ""},
		{"none", nil, `issued by "O=Acme Co", which is not trusted here`},
		{"empty file", map[string]string{"SSL_CERT_FILE": empty}, "no certificate in"},
		{"missing file", map[string]string{"SSL_CERT_FILE": file + "x"}, "reading SSL_CERT_FILE"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(t, s.URL)
			o.Env = func(k string) string { return row.env[k] }
			m, err := Open(o)
			if err == nil {
				_, err = m.Index(t.Context(), Refresh)
			}
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// proxy is a CONNECT proxy that leads every host to one server, and remembers what it was asked.
type proxy struct {
	to    string
	mu    sync.Mutex
	asked []string
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		resp, err := http.Get("http://" + p.to + r.URL.Path)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		defer resp.Body.Close()
		io.Copy(w, resp.Body)
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(502)
		return
	}
	c, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	defer up.Close()
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	go io.Copy(up, bufio.NewReader(buf))
	io.Copy(c, up)
}

func TestProxies(t *testing.T) {
	tr, _ := demo()
	behind := tlsServer(tr)
	defer behind.Close()
	plainer := httptest.NewServer(tr)
	defer plainer.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, certOf(behind), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, location string
		env            func(proxy string) map[string]string
		asked          string // what the proxy was asked; "" = nothing
	}{
		{"https", "https://example.com", func(p string) map[string]string { return map[string]string{"HTTPS_PROXY": p} }, "CONNECT example.com:443 "},
		{"lower case wins", "https://example.com", func(p string) map[string]string {
			return map[string]string{"https_proxy": p, "HTTPS_PROXY": "http://127.0.0.1:1"}
		}, "CONNECT example.com:443 "},
		{"all", "https://example.com", func(p string) map[string]string { return map[string]string{"ALL_PROXY": p} }, "CONNECT example.com:443 "},
		{"password", "https://example.com", func(p string) map[string]string {
			return map[string]string{"HTTPS_PROXY": strings.Replace(p, "://", "://user:"+canary+"@", 1)}
		}, "CONNECT example.com:443 Basic "},
		{"plain http", "http://example.com", func(p string) map[string]string { return map[string]string{"http_proxy": p} }, "GET example.com "},
		{"no proxy for loopback", plainer.URL, func(p string) map[string]string { return map[string]string{"http_proxy": p} }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &proxy{to: behind.Listener.Addr().String()}
			if strings.HasPrefix(row.location, "http://") {
				p.to = plainer.Listener.Addr().String()
			}
			env := row.env(serve(t, p))
			env["SSL_CERT_FILE"] = ca
			o := options(t, row.location)
			o.AllowHTTP, o.Env = true, func(k string) string { return env[k] }
			if _, err := open(t, o).Index(t.Context(), Refresh); err != nil {
				t.Error(err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if row.asked == "" && len(p.asked) > 0 || row.asked != "" && (len(p.asked) == 0 || !strings.HasPrefix(p.asked[0], row.asked)) {
				t.Errorf("the proxy was asked %q, want %q", p.asked, row.asked)
			}
		})
	}
	for _, value := range []string{"http://user:" + canary + "@127.0.0.1:1", "http://user:" + canary + "@[bad", "::" + canary} {
		o := options(t, "https://example.com")
		o.Env = func(k string) string { return map[string]string{"https_proxy": value}[k] }
		if _, err := open(t, o).Index(t.Context(), Refresh); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestTransportSettings(t *testing.T) {
	tr := newTransport(func(string) string { return "" }, nil, answerLimit)
	if tr.TLSClientConfig.MinVersion < tls.VersionTLS12 || tr.TLSClientConfig.InsecureSkipVerify || tr.ResponseHeaderTimeout == 0 || !tr.DisableCompression {
		t.Error("the transport is not ours")
	}
}
