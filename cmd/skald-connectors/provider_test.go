package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// testProvider is an authorization server, an API and a remote MCP server in one, which scripts steer with /set?NAME=VALUE
// and look into with /log. Its settings: deny, life (seconds; "none" leaves it out), norefresh, rotate, down, tokendown, scopes (granted in
// place of those asked for), forget (what a revocation takes: all), pending (device flow: how often it says so), norevoke.
type testProvider struct {
	*httptest.Server
	mu      sync.Mutex
	set     map[string]string
	log     []string
	serial  int
	codes   map[string]url.Values // of authorization requests
	refresh map[string]string     // token → scope; "" value = any
	access  map[string]time.Time  // token → its end
	used    map[string]bool       // refresh tokens that rotated away
	asked   func(r *http.Request) // nil, or called before a request is answered
}

func newTestProvider() *testProvider {
	p := &testProvider{set: map[string]string{"life": "3600"}, codes: map[string]url.Values{}, refresh: map[string]string{}, access: map[string]time.Time{}, used: map[string]bool{}}
	mux := http.NewServeMux()
	for path, handle := range map[string]func(http.ResponseWriter, *http.Request){
		"/authorize": p.authorize, "/token": p.token, "/device": p.device, "/revoke": p.revoke, "/register": p.register, "/api": p.api, "/mcp": p.mcp,
		"/.well-known/oauth-protected-resource/mcp": func(w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, 200, map[string]any{"resource": p.URL + "/mcp", "authorization_servers": []string{p.URL}, "scopes_supported": []string{"tools"}})
		},
		"/.well-known/oauth-authorization-server": func(w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, 200, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "revocation_endpoint": p.URL + "/revoke",
				"registration_endpoint": p.URL + "/register", "device_authorization_endpoint": p.URL + "/device", "code_challenge_methods_supported": []string{"S256"},
				"authorization_response_iss_parameter_supported": true})
		},
		"/set": func(_ http.ResponseWriter, r *http.Request) {
			for name := range r.URL.Query() {
				p.set[name] = r.URL.Query().Get(name)
			}
			if r.URL.Query().Has("revoke") {
				p.refresh, p.access = map[string]string{}, map[string]time.Time{}
			}
		},
		"/log": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, strings.Join(p.log, "\n")) },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.set["down"] == "1" && r.URL.Path != "/set" && r.URL.Path != "/log" {
				http.Error(w, "<html>down</html>", http.StatusServiceUnavailable)
				return
			}
			if p.asked != nil {
				p.asked(r)
			}
			handle(w, r)
		})
	}
	p.Server = httptest.NewServer(mux)
	return p
}

func sendJSON(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

func (p *testProvider) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *testProvider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.note("authorize scope=%s resource=%s", q.Get("scope"), strings.TrimPrefix(q.Get("resource"), p.URL))
	out := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.set["deny"] == "1" {
		out.Set("error", "access_denied")
	} else {
		p.serial++
		code := fmt.Sprint("4/code-", p.serial)
		p.codes[code] = q
		out.Set("code", code)
	}
	to := q.Get("redirect_uri") + "?" + out.Encode()
	if p.set["show"] == "1" { // a browser on another machine
		fmt.Fprint(w, to)
		return
	}
	http.Redirect(w, r, to, http.StatusFound)
}

func (p *testProvider) token(w http.ResponseWriter, r *http.Request) {
	f := r.PostForm
	if p.set["tokendown"] == "1" {
		http.Error(w, "<html>down</html>", http.StatusServiceUnavailable)
		return
	}
	refuse := func(code string) {
		p.note("token refused: %s", code)
		sendJSON(w, 400, map[string]any{"error": code})
	}
	scope := ""
	switch f.Get("grant_type") {
	case "authorization_code":
		q, ok := p.codes[f.Get("code")]
		delete(p.codes, f.Get("code"))
		digest := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || q.Get("redirect_uri") != f.Get("redirect_uri") || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(digest[:]) || q.Get("resource") != f.Get("resource") {
			refuse("invalid_grant")
			return
		}
		scope = q.Get("scope")
		p.note("signed in")
	case "refresh_token":
		s, ok := p.refresh[f.Get("refresh_token")]
		if !ok {
			if p.used[f.Get("refresh_token")] {
				p.note("reuse")
			}
			refuse("invalid_grant")
			return
		}
		scope = s
		p.note("refreshed")
	case "urn:ietf:params:oauth:grant-type:device_code":
		if n, _ := strconv.Atoi(p.set["pending"]); n > 0 {
			p.set["pending"] = strconv.Itoa(n - 1)
			sendJSON(w, 400, map[string]any{"error": "authorization_pending"})
			return
		}
		p.note("signed in by device")
	default:
		refuse("unsupported_grant_type")
		return
	}
	p.grant(w, f, scope)
}

func (p *testProvider) grant(w http.ResponseWriter, f url.Values, scope string) {
	p.serial++
	life, err := strconv.ParseFloat(p.set["life"], 64)
	doc := map[string]any{"access_token": fmt.Sprint("c4n4ry-access-", p.serial), "token_type": "Bearer", "scope": scope}
	if p.set["scopes"] != "" {
		doc["scope"] = p.set["scopes"]
	}
	end := time.Now().Add(time.Hour)
	if err == nil {
		doc["expires_in"], end = life, time.Now().Add(time.Duration(life*float64(time.Second)))
	}
	p.access[doc["access_token"].(string)] = end
	old := f.Get("refresh_token")
	if p.set["norefresh"] != "1" && (old == "" || p.set["rotate"] == "1") {
		token := fmt.Sprint("c4n4ry-refresh-", p.serial)
		doc["refresh_token"] = token
		p.refresh[token] = scope
		if old != "" {
			delete(p.refresh, old)
			p.used[old] = true
		}
	}
	sendJSON(w, 200, doc)
}

func (p *testProvider) device(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, 200, map[string]any{"device_code": "dev", "user_code": "WDJB-MJHT", "verification_uri": p.URL + "/activate", "expires_in": 300, "interval": 1})
}

func (p *testProvider) revoke(w http.ResponseWriter, r *http.Request) {
	if p.set["norevoke"] == "1" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	p.note("revoked")
	delete(p.refresh, r.PostForm.Get("token"))
	if p.set["forget"] == "all" { // every sign-in of the account, as Google does
		p.refresh = map[string]string{}
	}
	p.access = map[string]time.Time{}
}

func (p *testProvider) register(w http.ResponseWriter, _ *http.Request) {
	p.note("registered")
	sendJSON(w, 201, map[string]any{"client_id": "made-for-you", "token_endpoint_auth_method": "none"})
}

func (p *testProvider) good(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	end, ok := p.access[token]
	return ok && time.Now().Before(end)
}

func (p *testProvider) api(w http.ResponseWriter, r *http.Request) {
	if !p.good(r) {
		p.note("api refused")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	sendJSON(w, 200, map[string]any{"email": "ada@example.org"})
}

// mcp is a server of one tool, behind the sign-in.
func (p *testProvider) mcp(w http.ResponseWriter, r *http.Request) {
	if !p.good(r) {
		p.note("mcp refused")
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version string `json:"protocolVersion"`
		} `json:"params"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&msg) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var result any
	switch {
	case msg.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case msg.Method == "initialize":
		result = map[string]any{"protocolVersion": msg.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "far", "version": "1"}}
	case msg.Method == "tools/list":
		result = map[string]any{"tools": []any{map[string]any{"name": "whoami", "title": "Who am I", "description": "Says who.", "inputSchema": map[string]any{"type": "object"}}}}
	default:
		text := "ada"
		if p.set["leak"] == "1" {
			text += " by " + r.Header.Get("Authorization")
		}
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	sendJSON(w, 200, map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": result})
}
