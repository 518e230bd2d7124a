package login

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestReadChallenge(t *testing.T) {
	for _, tt := range []struct {
		headers  []string
		metadata string
		scopes   string
	}{
		{[]string{`Bearer resource_metadata="https://x.example/.well-known/oauth-protected-resource"`}, "https://x.example/.well-known/oauth-protected-resource", ""},
		{[]string{`Bearer error="invalid_token", error_description="a, \"b\"", scope="a b", resource_metadata="https://x.example/m"`}, "https://x.example/m", "a b"},
		{[]string{`Basic realm="x"`, `bearer scope=a,resource_metadata=https://x.example/m`}, "https://x.example/m", "a"},
		{[]string{`Basic realm="Bearer", Bearer resource_metadata="https://x.example/m"`}, "https://x.example/m", ""},
		{[]string{`Digest nonce=1, Bearer resource_metadata="https://x.example/m"`}, "https://x.example/m", ""},
		{[]string{"Bearer"}, "", ""}, {[]string{`Bearer resource_metadata="unended`}, "", ""}, {[]string{"Bearerish x=1"}, "", ""}, {nil, "", ""},
	} {
		got := readChallenge(tt.headers)
		if got.metadata != tt.metadata || strings.Join(got.scopes, " ") != tt.scopes {
			t.Errorf("%q: %+v", tt.headers, got)
		}
	}
}

func FuzzReadChallenge(f *testing.F) {
	f.Add(`Bearer a="b\"c", d=e, Basic x="y"`)
	f.Add(`Bearer ,,=,"`)
	f.Fuzz(func(t *testing.T, h string) { readChallenge([]string{h}) })
}

// mcpWorld is a resource server and an authorization server in one, with documents that a test changes.
type mcpWorld struct {
	*httptest.Server
	documents map[string]any // by path; absent = 404
	asked     []string
}

func newMCPWorld(t *testing.T) *mcpWorld {
	w := &mcpWorld{documents: map[string]any{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked = append(w.asked, r.URL.Path)
		switch doc := w.documents[r.URL.Path].(type) {
		case nil:
			http.NotFound(rw, r)
		case string:
			http.Redirect(rw, r, doc, http.StatusFound)
		default:
			_ = json.NewEncoder(rw).Encode(doc)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *mcpWorld) as(issuer string) map[string]any {
	return map[string]any{"issuer": issuer, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token",
		"registration_endpoint": w.URL + "/register", "code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"a"}}
}

func TestDiscoverServer(t *testing.T) {
	const resourceAt, asAt = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
	for _, tt := range []struct {
		name      string
		set       func(w *mcpWorld)
		challenge string
		resource  string // "" = an error with want
		want      string
	}{
		{"by path", func(w *mcpWorld) {
			w.documents[resourceAt+"/mcp"] = map[string]any{"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL}}
			w.documents[asAt] = w.as(w.URL)
		}, "", "/mcp", ""},
		{"at the root", func(w *mcpWorld) {
			w.documents[resourceAt] = map[string]any{"resource": w.URL + "/", "authorization_servers": []string{w.URL + "/tenant"}, "scopes_supported": []string{"b"}}
			w.documents[asAt+"/tenant"] = w.as(w.URL + "/tenant")
		}, "", "/", ""},
		{"OpenID after the path", func(w *mcpWorld) {
			w.documents[resourceAt+"/mcp"] = map[string]any{"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL + "/tenant/"}}
			w.documents["/tenant/.well-known/openid-configuration"] = w.as(w.URL + "/tenant")
		}, "", "/mcp", ""},
		{"named and moved", func(w *mcpWorld) {
			w.documents["/elsewhere"] = "/moved"
			w.documents["/moved"] = map[string]any{"resource": w.URL, "authorization_servers": []string{w.URL}}
			w.documents[asAt] = w.as(w.URL)
		}, `Bearer resource_metadata="HERE/elsewhere", scope="x"`, "", ""},
		{"before 2025-06", func(w *mcpWorld) { w.documents[asAt] = w.as(w.URL) }, "", "/mcp", ""},
		{"nothing", func(*mcpWorld) {}, "", "", "does not say how to get one"},
		{"another resource", func(w *mcpWorld) {
			w.documents[resourceAt+"/mcp"] = map[string]any{"resource": "https://bank.example/mcp", "authorization_servers": []string{w.URL}}
			w.documents[asAt] = w.as(w.URL)
		}, "", "", `the metadata is of the resource "https://bank.example/mcp"`},
		{"another path", func(w *mcpWorld) {
			w.documents[resourceAt+"/mcp"] = map[string]any{"resource": w.URL + "/mc"}
			w.documents[asAt] = w.as(w.URL)
		}, "", "", "the metadata is of the resource"},
		{"another issuer", func(w *mcpWorld) { w.documents[asAt] = w.as("https://evil.example") }, "", "", `is of the issuer "https://evil.example"`},
		{"no PKCE", func(w *mcpWorld) {
			doc := w.as(w.URL)
			delete(doc, "code_challenge_methods_supported")
			w.documents[asAt] = doc
		}, "", "", "does not offer PKCE"},
		{"plain endpoint", func(w *mcpWorld) {
			doc := w.as(w.URL)
			doc["token_endpoint"] = "http://as.example/token"
			w.documents[asAt] = doc
		}, "", "", "is not https"},
		{"script for a page", func(w *mcpWorld) {
			doc := w.as(w.URL)
			doc["authorization_endpoint"] = "javascript:alert(1)"
			w.documents[asAt] = doc
		}, "", "", "is no address"},
		{"in circles", func(w *mcpWorld) { w.documents["/loop"] = "/loop" }, `Bearer resource_metadata="HERE/loop"`, "", "a redirect"},
		{"file", func(*mcpWorld) {}, `Bearer resource_metadata="file:///etc/passwd"`, "", "is no address"},
		{"cloud metadata", func(*mcpWorld) {}, `Bearer resource_metadata="https://169.254.169.254/latest"`, "", "is not an address of the internet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newMCPWorld(t)
			tt.set(w)
			var headers []string
			if tt.challenge != "" {
				headers = []string{strings.ReplaceAll(tt.challenge, "HERE", w.URL)}
			}
			n, err := testClient().DiscoverServer(t.Context(), w.URL+"/mcp", headers)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want …%s…", err, tt.want)
				}
				return
			}
			if err != nil || n.Resource != w.URL+tt.resource || n.Provider.TokenURL != w.URL+"/token" || n.Provider.RegisterURL == "" {
				t.Errorf("%+v, %v", n, err)
			}
			if tt.challenge != "" && !slices.Equal(n.Scopes, []string{"x"}) {
				t.Errorf("scopes %v", n.Scopes)
			}
		})
	}
}

// A server elsewhere cannot make us ask this machine.
func TestReach(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"https://mcp.example/x", "https://as.example", true}, {"http://127.0.0.1:1/x", "http://127.0.0.1:2", true}, {"http://127.0.0.1:1/x", "https://as.example", true},
		{"https://mcp.example/x", "http://127.0.0.1:631/", false}, {"https://mcp.example/x", "https://localhost/", false}, {"https://mcp.example/x", "https://[::1]/", false},
		{"https://mcp.example/x", "https://[fe80::1]/", false}, {"https://mcp.example/x", "https://0.0.0.0/", false}, {"https://mcp.example/x", "https://u:p@as.example/", false},
	} {
		if err := checkReach(tt.from, tt.to); (err == nil) != tt.ok {
			t.Errorf("%s → %s: %v", tt.from, tt.to, err)
		}
	}
}

func TestRegister(t *testing.T) {
	for _, tt := range []struct {
		reply  string
		status int
		auth   string
		want   string
	}{
		{`{"client_id":"c1","token_endpoint_auth_method":"none"}`, 201, "none", ""},
		{`{"client_id":"c1","client_secret":"s"}`, 201, "post", ""},
		{`{"client_id":"c1","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}`, 200, "basic", ""},
		{`{"client_id":"c1","token_endpoint_auth_method":"private_key_jwt"}`, 201, "", "a way of naming the client"},
		{`{}`, 201, "", "no client id"},
		{`{"error":"invalid_redirect_uri"}`, 400, "", `it refused with "invalid_redirect_uri"`},
		{`<html>`, 403, "", "a web page"},
	} {
		var wish map[string]any
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&wish)
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.reply)
		}))
		p := Provider{RegisterURL: srv.URL}
		err := testClient().register(t.Context(), &p, SignIn{Scopes: []string{"a", "b"}}, "http://127.0.0.1:4711/callback")
		srv.Close()
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.reply, err)
			}
			continue
		}
		if err != nil || p.ClientID != "c1" || p.TokenAuth != tt.auth || fmt.Sprintln(wish["redirect_uris"], wish["scope"]) != "[http://127.0.0.1:4711/callback] a b\n" {
			t.Errorf("%s: %v, %+v, wished %v", tt.reply, err, p, wish)
		}
	}
}
