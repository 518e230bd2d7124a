package login

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSignIn(t *testing.T) {
	u := newUnkind(t, nil)
	var link, page string
	cred, err := signIn(t, testClient(), SignIn{Provider: u.provider(), Scopes: []string{"mail.read", "mail.send"}, Resource: "https://mcp.example/x"}, func(l string) {
		link = l
		_, page, _ = visit(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if cred.Access.Reveal() != "access-1" || cred.Refresh.Reveal() != "refresh-1" || !cred.Expires.Equal(epoch.Add(time.Hour)) || !slices.Equal(cred.Granted, []string{"mail.read", "mail.send"}) {
		t.Errorf("credential %+v", cred)
	}
	if strings.ContainsAny(link, " \n\t") {
		t.Errorf("the link is not one unbroken line: %q", link)
	}
	if !strings.Contains(page, "You have signed in with Unkind") {
		t.Errorf("page: %s", page)
	}
	q := query(t, link)
	form := u.forms()[0]
	digest := sha256.Sum256([]byte(form.Get("code_verifier")))
	if q.Get("code_challenge_method") != "S256" || base64.RawURLEncoding.EncodeToString(digest[:]) != q.Get("code_challenge") {
		t.Error("the verifier is not the one of the challenge")
	}
	if !strings.HasPrefix(q.Get("redirect_uri"), "http://127.0.0.1:") || form.Get("redirect_uri") != q.Get("redirect_uri") {
		t.Errorf("redirect %q, then %q", q.Get("redirect_uri"), form.Get("redirect_uri"))
	}
	if len(q.Get("state")) != 43 || q.Get("resource") != "https://mcp.example/x" || form.Get("resource") != "https://mcp.example/x" {
		t.Errorf("state %q, resource %q and %q", q.Get("state"), q.Get("resource"), form.Get("resource"))
	}
	if form.Get("client_secret") != canaryClient || strings.Contains(link, canaryClient) {
		t.Error("the client secret belongs into the exchange and nowhere else")
	}
	if _, _, err := visit(q.Get("redirect_uri")); err == nil {
		t.Error("it still listens")
	}
}

func query(t *testing.T, link string) url.Values {
	t.Helper()
	l, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return l.Query()
}

// What comes to the listener besides the one right answer changes nothing.
func TestStrayRequests(t *testing.T) {
	u := newUnkind(t, nil)
	cred, err := signIn(t, testClient(), SignIn{Provider: u.provider()}, func(link string) {
		q := query(t, link)
		at, state := q.Get("redirect_uri"), q.Get("state")
		for _, stray := range []struct {
			address, host, method string
			want                  int
		}{
			{at, "", "GET", 400},
			{at + "?code=evil", "", "GET", 400},
			{at + "?code=evil&state=wrong", "", "GET", 400},
			{at + "?code=evil&state=" + state + "&state=" + state, "", "GET", 400},
			{at + "?error=access_denied&state=wrong", "", "GET", 400},
			{at + "?code=evil&state=" + state, "", "POST", 405},
			{at + "?code=evil&state=" + state, "evil.example", "GET", 421},
			{at + "?code=evil&state=" + state, "127.0.0.1:1", "GET", 421},
			{strings.TrimSuffix(at, "/callback") + "/favicon.ico", "", "GET", 404},
			{strings.TrimSuffix(at, "/callback") + "/callback/?code=evil&state=" + state, "", "GET", 404},
		} {
			req, _ := http.NewRequest(stray.method, stray.address, nil)
			if stray.host != "" {
				req.Host = stray.host
			}
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				t.Errorf("%s: %v", stray.address, err)
				continue
			}
			body := readAll(resp)
			resp.Body.Close()
			if resp.StatusCode != stray.want || strings.Contains(body, "signed in") {
				t.Errorf("%s %s (host %q): %d, want %d", stray.method, stray.address, stray.host, resp.StatusCode, stray.want)
			}
		}
		visit(link)
	})
	if err != nil || cred.Access.Reveal() != "access-1" {
		t.Fatalf("%v %v", cred, err)
	}
	if n := len(u.forms()); n != 1 {
		t.Errorf("%d questions to the token endpoint, want 1", n)
	}
}

// The first right answer decides; the same page loaded again shows the same, and a denial that comes late does nothing.
func TestSecondCallback(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	u := newUnkind(t, func(u *unkind) {
		u.token = func(w http.ResponseWriter, _ url.Values) {
			close(asked)
			<-goOn
			reply(w, 200, map[string]any{"access_token": "access-1"})
		}
	})
	var pages [3]string
	cred, err := signIn(t, testClient(), SignIn{Provider: u.provider()}, func(link string) {
		q := query(t, link)
		at := q.Get("redirect_uri") + "?state=" + q.Get("state")
		done := make(chan int)
		for i, more := range []string{"&code=first", "&code=second", "&error=access_denied"} {
			if i == 1 {
				<-asked
			}
			go func() { _, pages[i], _ = visit(at + more); done <- i }()
		}
		visit(strings.TrimSuffix(q.Get("redirect_uri"), "/callback") + "/x") // the two are under way by now, or come too late
		close(goOn)
		for range pages {
			<-done
		}
	})
	if err != nil || cred.Access.Reveal() != "access-1" {
		t.Fatalf("%v %v", cred, err)
	}
	if forms := u.forms(); len(forms) != 1 || forms[0].Get("code") != "first" {
		t.Errorf("exchanged %v", forms)
	}
	for i, p := range pages {
		if p != "" && !strings.Contains(p, "You have signed in") {
			t.Errorf("page %d: %s", i, p)
		}
	}
}

func TestAnswersThatEndASignIn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(q url.Values) url.Values
		names  bool // the provider names its issuer
		want   string
	}{
		{"denied", func(q url.Values) url.Values { return url.Values{"error": {"access_denied"}} }, false, "access was denied in the browser"},
		{"error with text", func(q url.Values) url.Values {
			return url.Values{"error": {"server_error"}, "error_description": {"<script>\x1b]52;c;x\x07"}}
		}, false, `the provider refused ("server_error"): "<script>\x1b]52;c;x\a"`},
		{"nothing", func(q url.Values) url.Values { return url.Values{} }, false, "neither a code nor a reason"},
		{"two codes", func(q url.Values) url.Values { return url.Values{"code": {"a", "b"}} }, false, "a parameter twice"},
		{"bad code", func(q url.Values) url.Values { return url.Values{"code": {"a b\n"}} }, false, "is not one"},
		{"wrong issuer", func(q url.Values) url.Values { return url.Values{"code": {"a"}, "iss": {"https://evil.example"}} }, false, `is of "https://evil.example"`},
		{"issuer with a slash", func(q url.Values) url.Values { return url.Values{"code": {"a"}, "iss": {"SELF/"}} }, false, "is of"},
		{"two issuers", func(q url.Values) url.Values { return url.Values{"code": {"a"}, "iss": {"SELF", "SELF"}} }, false, "two issuers"},
		{"no issuer", func(q url.Values) url.Values { return url.Values{"code": {"a"}} }, true, "names no issuer"},
		{"denied by another issuer", func(q url.Values) url.Values {
			return url.Values{"error": {"access_denied"}, "iss": {"https://evil.example"}}
		}, true, "is of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u *unkind
			u = newUnkind(t, func(n *unkind) {
				n.authorize = func(q url.Values) url.Values {
					out := tt.answer(q)
					for i, iss := range out["iss"] {
						out["iss"][i] = strings.Replace(iss, "SELF", u.URL, 1)
					}
					out.Set("state", q.Get("state"))
					return out
				}
			})
			p := u.provider()
			p.NamesIssuer = tt.names
			var page string
			_, err := signIn(t, testClient(), SignIn{Provider: p}, func(link string) { _, page, _ = visit(link) })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want …%s…", err, tt.want)
			}
			if !strings.Contains(page, "Not signed in") || strings.Contains(page, "<script>") {
				t.Errorf("page: %s", page)
			}
			if n := len(u.forms()); n != 0 {
				t.Errorf("%d questions to the token endpoint, want none", n)
			}
		})
	}
}

func TestSignInThatNobodyFinishes(t *testing.T) {
	u := newUnkind(t, nil)
	var late *TimeoutError
	if _, err := signIn(t, testClient(), SignIn{Provider: u.provider(), Limit: time.Nanosecond}, func(string) {}); !errors.As(err, &late) {
		t.Errorf("error %v, want a time-out", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the person left")
	_, err := testClient().SignIn(ctx, SignIn{Provider: u.provider(), Link: func(string) { cancel(why) }})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}

// Whoever leaves while the code is exchanged gets what came, to give it back.
func TestLeavingDuringTheExchange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u := newUnkind(t, func(u *unkind) {
		u.token = func(w http.ResponseWriter, _ url.Values) {
			cancel()
			reply(w, 200, map[string]any{"access_token": "access-1", "refresh_token": "refresh-1"})
		}
	})
	cred, err := testClient().SignIn(ctx, SignIn{Provider: u.provider(), Link: func(link string) { go visit(link) }})
	if !errors.Is(err, context.Canceled) || cred.Refresh.Reveal() != "refresh-1" || len(u.revoked) > 0 {
		t.Errorf("error %v, refresh token %q, revoked %v", err, cred.Refresh.Reveal(), u.revoked)
	}
}

func TestSignInByPaste(t *testing.T) {
	u := newUnkind(t, nil)
	for _, redirect := range []string{"", "https://connectors.example/oauth/show.html"} {
		p := u.provider()
		p.Redirect = redirect
		var link string
		var problems []string
		answers := []func(q url.Values) string{
			func(q url.Values) string { return "  " },
			func(q url.Values) string { return q.Get("redirect_uri") + "?code=x&state=other" },
			func(q url.Values) string { return q.Get("redirect_uri") + "?code=x%2Fy&state=" + q.Get("state") + "\n" },
		}
		cred, err := testClient().SignIn(t.Context(), SignIn{Provider: p, Link: func(l string) { link = l }, Paste: func(_ context.Context, problem string) (string, error) {
			problems = append(problems, problem)
			return answers[len(problems)-1](query(t, link)), nil
		}})
		if err != nil || cred.Access.IsZero() {
			t.Fatal(err)
		}
		if fmt.Sprint(problems) != "[ that was empty that address belongs to another sign-in; use the link above]" {
			t.Errorf("problems %q", problems)
		}
		if got := u.forms()[len(u.forms())-1].Get("code"); got != "x/y" {
			t.Errorf("code %q", got)
		}
	}
}

// The prompt for the paste is given up when the browser was faster.
func TestBrowserIsFasterThanThePaste(t *testing.T) {
	u := newUnkind(t, nil)
	left := false
	cred, err := signIn(t, testClient(), SignIn{Provider: u.provider(), Paste: func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		left = true
		return "", ctx.Err()
	}}, func(link string) { visit(link) })
	if err != nil || cred.Access.IsZero() || !left {
		t.Errorf("%v, left %v", err, left)
	}
}
