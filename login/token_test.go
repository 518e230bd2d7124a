package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"skald-connectors/keystore"
)

func stored() Credential {
	return Credential{Provider: "unkind", ClientID: "client", ClientSecret: keystore.NewSecret(canaryClient), Access: keystore.NewSecret("old-access"),
		Refresh: keystore.NewSecret("c4n4ry-refresh"), Asked: []string{"a", "b"}, Granted: []string{"a"}, Obtained: epoch.Add(-time.Hour), Expires: epoch.Add(-time.Minute)}
}

// A reply of the token endpoint at a refresh, and what becomes of it.
func TestOddReplies(t *testing.T) {
	const html = "<!doctype html><title>Sign in to the network</title>"
	for _, tt := range []struct {
		name, kind string
		status     int
		body       string
		life       time.Duration // 0 = not known
		refresh    string
		granted    string
		want       string // error; "" = none
	}{
		{name: "plain", body: `{"access_token":"new","token_type":"bearer","expires_in":3600,"refresh_token":"next","scope":"a b"}`, life: time.Hour, refresh: "next", granted: "a b"},
		{name: "nothing but a token", body: `{"access_token":"new"}`},
		{name: "null", body: `{"access_token":"new","expires_in":null,"refresh_token":null,"scope":null}`},
		{name: "empty", body: `{"access_token":"new","refresh_token":"","scope":""}`},
		{name: "text", body: `{"access_token":"new","expires_in":"3600"}`, life: time.Hour},
		{name: "fraction", body: `{"access_token":"new","expires_in":1.5}`, life: 1500 * time.Millisecond},
		{name: "negative", body: `{"access_token":"new","expires_in":-1}`},
		{name: "zero", body: `{"access_token":"new","expires_in":0}`},
		{name: "huge", body: `{"access_token":"new","expires_in":1e12}`},
		{name: "beyond numbers", body: `{"access_token":"new","expires_in":1e999}`},
		{name: "no number", body: `{"access_token":"new","expires_in":"soon"}`},
		{name: "not a number", body: `{"access_token":"new","expires_in":"NaN"}`},
		{name: "object", body: `{"access_token":"new","expires_in":{"seconds":1}}`},
		{name: "form", kind: "application/x-www-form-urlencoded", body: "access_token=new&expires_in=60&scope=a+b", life: time.Minute, granted: "a b"},
		{name: "mark", body: "\ufeff" + `{"access_token":"new"}`},
		{name: "no type", kind: "-", body: `{"access_token":"new"}`},
		{name: "web page", kind: "text/html", body: html, want: `asking HOST for a new token: it answered 200, a web page`},
		{name: "web page that claims JSON", body: html, want: "it answered 200, a web page"},
		{name: "500", status: 500, kind: "text/html", body: html, want: "it answered 500, a web page"},
		{name: "503 without a word", status: 503, want: "it answered 503, and nothing in it"},
		{name: "redirect", status: 307, want: "a redirect, which is not followed"},
		{name: "array", body: `[]`, want: "JSON that is no object"},
		{name: "not JSON", body: `{"access_token":`, want: "something that is not JSON"},
		{name: "twice", body: `{"access_token":"new","access_token":"other"}`, want: "stands twice"},
		{name: "case twin", body: `{"access_token":"new","Access_Token":"other"}`, want: "stands twice"},
		{name: "no token", body: `{"token_type":"bearer"}`, want: "the answer has no access token"},
		{name: "token of a number", body: `{"access_token":1}`, want: "the answer has no access token"},
		{name: "header in the token", body: `{"access_token":"a\r\nX: y"}`, want: "no header can carry"},
		{name: "other kind", body: `{"access_token":"new","token_type":"mac"}`, want: `of the type "mac"`},
		{name: "long", body: `{"access_token":"` + strings.Repeat("x", tokenLimit+1) + `"}`, want: "longer than"},
		{name: "endless", body: `{"access_token":"` + strings.Repeat("x", replyLimit) + `"}`, want: "longer than 1024 KiB"},
		{name: "revoked", status: 400, body: `{"error":"invalid_grant","error_description":"Token has been revoked."}`, want: `it has expired or was revoked ("Token has been revoked.")`},
		{name: "refusal with 200", body: `{"ok":false,"error":"bad_refresh_token"}`, want: "expired or was revoked"},
		{name: "other refusal", status: 401, body: `{"error":"invalid_client"}`, want: `it refused with "invalid_client"`},
		{name: "error object", status: 400, body: `{"error":{"status":"INVALID"}}`, want: `it refused with "INVALID"`},
		{name: "echo", status: 400, body: `{"error":"invalid_request","error_description":"no c4n4ry-refresh here, c4n4ry-client-secret"}`, want: `it refused with "invalid_request"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUnkind(t, func(u *unkind) {
				u.token = func(w http.ResponseWriter, _ url.Values) {
					w.Header().Set("Content-Type", orElse(tt.kind, "application/json"))
					if tt.kind == "-" {
						w.Header()["Content-Type"] = nil
					}
					w.Header().Set("Location", "/token")
					w.WriteHeader(max(tt.status, 200))
					_, _ = w.Write([]byte(tt.body))
				}
			})
			cred := stored()
			cred.TokenURL = u.URL + "/token"
			got, err := testClient().refresh(t.Context(), cred)
			if len(u.forms()) != 1 {
				t.Errorf("asked %d times", len(u.forms()))
			}
			if tt.want != "" {
				if err == nil || !strings.Contains(strings.Replace(err.Error(), hostOf(u.URL), "HOST", 1), tt.want) || strings.Contains(err.Error(), "c4n4ry") {
					t.Errorf("error %v, want …%s…", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Credential{}
			if tt.life > 0 {
				want.Expires = epoch.Add(tt.life)
			}
			if got.Access.Reveal() != "new" || !got.Expires.Equal(want.Expires) || got.Refresh.Reveal() != orElse(tt.refresh, "c4n4ry-refresh") ||
				strings.Join(got.Granted, " ") != orElse(tt.granted, "a") {
				t.Errorf("got %v until %v, refresh changed %v", got.Granted, got.Expires, !got.Refresh.Equal(cred.Refresh))
			}
		})
	}
}

func TestNetworkFailuresNameNoAddress(t *testing.T) {
	u := newUnkind(t, nil)
	u.Close()
	cred := stored()
	cred.TokenURL = u.URL + "/token?key=c4n4ry"
	_, err := testClient().refresh(t.Context(), cred)
	var reply *ReplyError
	if !errors.As(err, &reply) || reply.Status != 0 || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("error %v", err)
	}
	cred.TokenURL = "http://provider.example/token"
	if _, err = testClient().refresh(t.Context(), cred); err == nil || !strings.Contains(err.Error(), "is not https") {
		t.Errorf("error %v: a credential must not go over plain http", err)
	}
}

func TestTokenAuth(t *testing.T) {
	for _, tt := range []struct{ auth, inForm, header string }{
		{"", "a&b", ""}, {"post", "a&b", ""}, {"none", "", ""}, {"basic", "", "Basic Y2xpZW50OmElMjZi"},
	} {
		u := newUnkind(t, nil)
		cred := stored()
		cred.TokenURL, cred.TokenAuth, cred.ClientSecret = u.URL+"/token", tt.auth, keystore.NewSecret("a&b")
		if _, err := testClient().refresh(t.Context(), cred); err != nil {
			t.Fatal(err)
		}
		if got := u.forms()[0].Get("client_secret"); got != tt.inForm || u.auths[0] != tt.header {
			t.Errorf("%q: form %q, header %q", tt.auth, got, u.auths[0])
		}
	}
}

func TestRenewAt(t *testing.T) {
	for _, tt := range []struct{ life, lead time.Duration }{{time.Hour, time.Minute}, {4 * time.Minute, time.Minute}, {2 * time.Second, 500 * time.Millisecond}} {
		c := Credential{Access: keystore.NewSecret("x"), Obtained: epoch, Expires: epoch.Add(tt.life)}
		if got := c.Expires.Sub(c.RenewAt()); got != tt.lead {
			t.Errorf("life %s: renewed %s before its end, want %s", tt.life, got, tt.lead)
		}
		if c.FreshAt(epoch.Add(-time.Hour)) || !c.FreshAt(epoch.Add(-time.Second)) {
			t.Errorf("life %s: a clock that was set back decides", tt.life)
		}
		if !c.FreshAt(epoch) || c.FreshAt(c.RenewAt()) {
			t.Errorf("life %s: fresh at the wrong times", tt.life)
		}
	}
}

func TestRevoke(t *testing.T) {
	status, body := 200, ""
	u := newUnkind(t, func(u *unkind) {
		u.extra = func(mux *http.ServeMux) {
			mux.HandleFunc("/odd", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = w.Write([]byte(body)) })
		}
	})
	cred := stored()
	cred.RevokeURL = u.URL + "/odd"
	for _, tt := range []struct {
		status int
		body   string
		fails  bool
	}{
		{200, "", false}, {200, "<html>", false}, {400, `{"error":"invalid_token"}`, false}, {503, "", true}, {400, `{"error":"unsupported_token_type"}`, true},
	} {
		status, body = tt.status, tt.body
		if err := testClient().Revoke(t.Context(), cred); (err != nil) != tt.fails {
			t.Errorf("%d %q: %v", tt.status, tt.body, err)
		}
	}
}
