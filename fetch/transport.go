package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// ownTransport makes its connections when they are needed: reading the certificate authorities costs more than all the
// rest of a start, and a cached index or plain loopback needs none.
type ownTransport struct {
	plain, secure func() (*http.Transport, error)
}

// Patient is Transport without a limit on the wait for an answer, for sessions
// with servers whose answers take as long as their work does.
func Patient(env func(string) string) http.RoundTripper { return newOwnTransport(env, 0) }

func newOwnTransport(env func(string) string, answer time.Duration) *ownTransport {
	return &ownTransport{
		plain: sync.OnceValues(func() (*http.Transport, error) { return newTransport(env, nil, answer), nil }),
		secure: sync.OnceValues(func() (*http.Transport, error) {
			roots, err := rootsFrom(env)
			if err != nil {
				return nil, final{err}
			}
			return newTransport(env, roots, answer), nil
		}),
	}
}

// RoundTrip implements http.RoundTripper.
func (o *ownTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	pick := o.secure
	if req.URL.Scheme == "http" {
		pick = o.plain
	}
	t, err := pick()
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(req)
}

// CloseIdleConnections implements the optional interface of http.Client.
func (o *ownTransport) CloseIdleConnections() {
	for _, made := range []func() (*http.Transport, error){o.plain, o.secure} {
		if t, err := made(); err == nil {
			t.CloseIdleConnections()
		}
	}
}

// newTransport makes connections through the proxies of env to hosts that roots (nil: the system's) vouch for.
// HTTP/1.1 with kept-alive connections is chosen over HTTP/2: for many small files it was faster in BenchmarkInstall,
// and one stalled connection does not hold back the others.
func newTransport(env func(string) string, roots *x509.CertPool, answer time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connectLimit, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		Proxy:                  proxyFrom(env),
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    tlsLimit,
		ResponseHeaderTimeout:  answer,
		MaxResponseHeaderBytes: headerLimit,
		MaxIdleConnsPerHost:    parallelFiles,
		ReadBufferSize:         2 * copyBuffer, // most files come in one or two reads
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// proxyFrom reads the proxy variables in both cases. The lower-case one wins, as in other tools.
func proxyFrom(env func(string) string) func(*http.Request) (*url.URL, error) {
	get := func(lower, upper string) string {
		if v := env(lower); v != "" {
			return v
		}
		return env(upper)
	}
	c := httpproxy.Config{
		HTTPProxy:  get("http_proxy", "HTTP_PROXY"),
		HTTPSProxy: get("https_proxy", "HTTPS_PROXY"),
		NoProxy:    get("no_proxy", "NO_PROXY"),
		CGI:        env("REQUEST_METHOD") != "",
	}
	if all := get("all_proxy", "ALL_PROXY"); all != "" {
		if c.HTTPProxy == "" {
			c.HTTPProxy = all
		}
		if c.HTTPSProxy == "" {
			c.HTTPSProxy = all
		}
	}
	pick := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) {
		u, err := pick(r.URL)
		if err != nil { // the library's text quotes the value, which may hold a password
			return nil, fmt.Errorf("the proxy variable for %s is not a proxy address", r.URL.Scheme)
		}
		return u, nil
	}
}

// rootsFrom adds the private authorities of SSL_CERT_FILE and SSL_CERT_DIR to the system's. Nil means the system's.
func rootsFrom(env func(string) string) (*x509.CertPool, error) {
	file, dirs := env("SSL_CERT_FILE"), env("SSL_CERT_DIR")
	if file == "" && dirs == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if file != "" {
		if err := addRoots(pool, file); err != nil {
			return nil, fmt.Errorf("reading SSL_CERT_FILE: %w", err)
		}
	}
	for _, dir := range filepath.SplitList(dirs) {
		addRootDir(pool, dir)
	}
	return pool, nil
}

func addRoots(pool *x509.CertPool, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, caFileLimit))
	if err != nil {
		return err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %q", file)
	}
	return nil
}

// addRootDir takes what it can: certificate folders hold other files and dead links too.
func addRootDir(pool *x509.CertPool, dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(caDirLimit)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			_ = addRoots(pool, path) // a file without certificates is not an error here
		}
	}
}
