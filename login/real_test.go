package login

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// The tests of this file sign in at a certified OpenID provider with a real browser. They need node 20, chromium, and a folder
// with the npm packages that .ci/run lists, named by SKALD_TEST_OAUTH.

// lack skips a test that has no such thing to run with; where nothing may be skipped, it fails.
func lack(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("SKALD_TEST_REQUIRE") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// stage is a folder in which node finds the packages and our scripts.
func stage(t *testing.T, scripts ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a real provider and a real browser, not with -short")
	}
	packages := os.Getenv("SKALD_TEST_OAUTH")
	if packages == "" {
		lack(t, "SKALD_TEST_OAUTH names no folder with oidc-provider, the MCP SDK and playwright-core")
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		data, err := os.ReadFile(filepath.Join("testdata", "real", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	lack(t, "no %s here", names[0])
	return ""
}

// node is a script of ours that runs until the test ends; what it prints are lines of JSON.
type node struct {
	mu    sync.Mutex
	lines []map[string]string
	first chan map[string]string
}

func startNode(t *testing.T, dir, script string, env ...string) *node {
	t.Helper()
	cmd := exec.Command(program(t, "node"), script)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	n := &node{first: make(chan map[string]string, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer close(n.first)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			var line map[string]string
			if json.Unmarshal(sc.Bytes(), &line) != nil {
				continue
			}
			n.mu.Lock()
			if n.lines = append(n.lines, line); len(n.lines) == 1 {
				n.first <- line
			}
			n.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		in.Close() // its end
		<-over
		_ = cmd.Wait()
	})
	return n
}

func (n *node) listening(t *testing.T) map[string]string {
	t.Helper()
	line, ok := <-n.first
	if !ok {
		t.Fatal("the script ended before it listened")
	}
	return line
}

func (n *node) count(event string) (many int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.lines {
		if line["event"] == event {
			many++
		}
	}
	return many
}

// person is one visit of a person with a browser.
func person(t *testing.T, dir, address, choice string) (url, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "node"), "browser.mjs", address, choice)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "CHROMIUM="+program(t, "chromium", "chromium-browser", "google-chrome"))
	out, err := cmd.Output()
	var page struct{ URL, Text string }
	if err == nil {
		err = json.Unmarshal(out, &page)
	}
	if err != nil {
		t.Errorf("the browser: %v %s", err, out)
	}
	return page.URL, page.Text
}

func realClient() *Client {
	return &Client{HTTP: &http.Client{Transport: &http.Transport{}}, Now: time.Now}
}

// The whole way with a real provider: discovery, code with PKCE, refresh with rotation, revocation. It takes 6 s.
func TestRealProvider(t *testing.T) {
	dir := stage(t, "provider.mjs", "browser.mjs")
	srv := startNode(t, dir, "provider.mjs")
	issuer := srv.listening(t)["issuer"]
	c := realClient()
	p, err := c.Discover(t.Context(), Provider{Slug: "real", Title: "Real", Issuer: issuer, ClientID: "skald", TokenAuth: "none", Rotates: true,
		Extra: map[string]string{"prompt": "consent"}})
	if err != nil {
		t.Fatal(err)
	}
	if !p.NamesIssuer || p.RevokeURL == "" || p.DeviceURL == "" {
		t.Errorf("discovered %+v", p)
	}
	scopes := []string{"openid", "offline_access", "mail.read"}
	var page string
	cred, err := signIn(t, c, SignIn{Provider: p, Scopes: scopes}, func(link string) { _, page = person(t, dir, link, "") })
	if err != nil {
		t.Fatal(err)
	}
	if cred.Refresh.IsZero() || len(cred.Missing()) > 0 || cred.Expires.IsZero() || !strings.Contains(page, "You have signed in with Real") {
		t.Errorf("scopes %v, until %v, page %q", cred.Granted, cred.Expires, page)
	}

	keys := keystore.Open(keystore.Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: keystore.BackendKeyfile})
	hs, err := cred.Merge(nil)
	if err == nil {
		err = keys.Put(t.Context(), "gmail", 1, hs)
	}
	if err != nil {
		t.Fatal(err)
	}
	keep, lock := vaultKeep{keys}, filepath.Join(t.TempDir(), "lock")
	for range 2 { // the second with the token that the first one brought
		next, err := c.Fresh(t.Context(), lock, keep, cred.Access)
		if err != nil || next.Access.Equal(cred.Access) || next.Refresh.Equal(cred.Refresh) {
			t.Fatalf("refreshed: %v", err)
		}
		cred = next
	}
	if err := c.Revoke(t.Context(), cred); err != nil {
		t.Errorf("revoked: %v", err)
	}
	_, err = c.Fresh(t.Context(), lock, keep, cred.Access)
	if !strings.Contains(fmt.Sprint(err), "it has expired or was revoked") {
		t.Errorf("after the revocation: %v", err)
	}
}

func TestRealDenial(t *testing.T) {
	dir := stage(t, "provider.mjs", "browser.mjs")
	issuer := startNode(t, dir, "provider.mjs").listening(t)["issuer"]
	c := realClient()
	p, err := c.Discover(t.Context(), Provider{Slug: "real", Issuer: issuer, ClientID: "skald", TokenAuth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	var page string
	_, err = signIn(t, c, SignIn{Provider: p, Scopes: []string{"openid"}}, func(link string) { _, page = person(t, dir, link, "deny") })
	if err == nil || !strings.HasPrefix(err.Error(), "signing in: access was denied in the browser") || !strings.Contains(page, "Not signed in") {
		t.Errorf("error %v, page %q", err, page)
	}
}

func TestRealDeviceFlow(t *testing.T) {
	dir := stage(t, "provider.mjs", "browser.mjs")
	issuer := startNode(t, dir, "provider.mjs").listening(t)["issuer"]
	c := realClient()
	p, err := c.Discover(t.Context(), Provider{Slug: "real", Issuer: issuer, ClientID: "skald", TokenAuth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	var visit sync.WaitGroup
	cred, err := c.SignInDevice(t.Context(), SignIn{Provider: p, Scopes: []string{"openid", "offline_access"}, Code: func(d DeviceCode) {
		visit.Go(func() {
			if _, page := person(t, dir, d.Complete, ""); !strings.Contains(page, "Sign-in Success") {
				t.Errorf("page %q", page)
			}
		})
	}})
	visit.Wait()
	if err != nil || cred.Access.IsZero() {
		t.Errorf("%v", err)
	}
}

// A remote MCP server that knows nothing of us: from its 401 to an accepted token, with a client that registered itself.
func TestRealServer(t *testing.T) {
	dir := stage(t, "provider.mjs", "browser.mjs", "mcpserver.mjs")
	srv := startNode(t, dir, "provider.mjs", "RESOURCE_PREFIX=http://127.0.0.1", "TOKEN_SECONDS=60")
	issuer := srv.listening(t)["issuer"]
	mcp := startNode(t, dir, "mcpserver.mjs", "ISSUER="+issuer).listening(t)["url"]
	ask := func(token string) (int, []string) {
		req, _ := http.NewRequest(http.MethodPost, mcp, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Values("WWW-Authenticate")
	}
	status, challenges := ask("")
	if status != http.StatusUnauthorized {
		t.Fatalf("status %d", status)
	}
	c := realClient()
	needs, err := c.DiscoverServer(t.Context(), mcp, challenges)
	if err != nil {
		t.Fatal(err)
	}
	cred, err := signIn(t, c, SignIn{Provider: needs.Provider, Scopes: needs.Scopes, Resource: needs.Resource}, func(link string) { person(t, dir, link, "") })
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := ask(cred.Access.Reveal()); status != http.StatusOK {
		t.Errorf("with the token: status %d", status)
	}
	if !cred.Registered || cred.Refresh.IsZero() || cred.Resource != mcp {
		t.Errorf("credential %+v", cred)
	}
	next, err := c.refresh(t.Context(), cred)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := ask(next.Access.Reveal()); status != http.StatusOK {
		t.Errorf("with the refreshed token: status %d", status)
	}
	// A second sign-in uses the same client again.
	before := srv.count("registered")
	if _, err := signIn(t, c, SignIn{Provider: needs.Provider, Scopes: needs.Scopes, Resource: needs.Resource, Before: next}, func(link string) { person(t, dir, link, "") }); err != nil {
		t.Fatal(err)
	}
	if n := srv.count("registered"); n != before {
		t.Errorf("%d clients registered, had %d", n, before)
	}
}
