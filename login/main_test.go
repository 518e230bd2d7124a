package login

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skald-connectors/keystore"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("LOGIN_TEST_ROLE"); role != "" {
		os.Exit(helper(role))
	}
	os.Exit(m.Run())
}

// unkind is a provider that does what a test tells it. Every field is read under mu.
type unkind struct {
	*httptest.Server
	mu sync.Mutex
	// authorize turns the parameters of an authorization request into those of its answer; nil = a code and the state.
	authorize func(q url.Values) url.Values
	// token answers the token endpoint; nil = tokens.
	token func(w http.ResponseWriter, form url.Values)
	// revoked are the tokens that were given back, asked the forms that came to the token endpoint.
	revoked []string
	asked   []url.Values
	auths   []string // Authorization headers
	extra   func(mux *http.ServeMux)
}

func newUnkind(t *testing.T, set func(u *unkind)) *unkind {
	t.Helper()
	u := &unkind{}
	if set != nil {
		set(u)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		q := r.URL.Query()
		out := url.Values{"code": {"code-" + q.Get("code_challenge")}, "state": {q.Get("state")}}
		if u.authorize != nil {
			out = u.authorize(q)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+out.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		u.mu.Lock()
		u.asked, u.auths = append(u.asked, r.PostForm), append(u.auths, r.Header.Get("Authorization"))
		answer := u.token
		u.mu.Unlock()
		if answer != nil {
			answer(w, r.PostForm)
			return
		}
		reply(w, 200, map[string]any{"access_token": "access-1", "refresh_token": "refresh-1", "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("/revoke", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		u.mu.Lock()
		defer u.mu.Unlock()
		u.revoked = append(u.revoked, r.PostForm.Get("token"))
	})
	if u.extra != nil {
		u.extra(mux)
	}
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.Close)
	return u
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (u *unkind) provider() Provider {
	return Provider{Slug: "unkind", Title: "Unkind", Issuer: u.URL, AuthURL: u.URL + "/authorize", TokenURL: u.URL + "/token", RevokeURL: u.URL + "/revoke",
		ClientID: "client", ClientSecret: keystore.NewSecret(canaryClient)}
}

func (u *unkind) forms() []url.Values {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked
}

const canaryClient = "c4n4ry-client-secret"

// epoch is the time of tests.
var epoch = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func testClient() *Client {
	return &Client{HTTP: &http.Client{Transport: &http.Transport{}}, Now: func() time.Time { return epoch }}
}

// visit is a browser: it goes where it is sent and gives the last page.
func visit(address string) (status int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	_, err = fmt.Fprint(&b, readAll(resp))
	return resp.StatusCode, b.String(), err
}

func readAll(resp *http.Response) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// signIn runs a sign-in with a browser that does do with the link, and waits for both.
func signIn(t *testing.T, c *Client, s SignIn, do func(link string)) (Credential, error) {
	t.Helper()
	var browser sync.WaitGroup
	if s.Link == nil {
		s.Link = func(string) {}
	}
	s.Open = nil
	shown := s.Link
	s.Link = func(link string) {
		shown(link)
		browser.Go(func() { do(link) })
	}
	cred, err := c.SignIn(t.Context(), s)
	browser.Wait()
	return cred, err
}
