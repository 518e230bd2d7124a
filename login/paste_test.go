package login

import (
	"net/url"
	"strings"
	"testing"
)

func TestPasted(t *testing.T) {
	const state = "right-state"
	judge := judgement(Provider{Issuer: "https://as.example"})
	for _, tt := range []struct{ in, code, problem string }{
		{"http://127.0.0.1:4711/callback?code=4%2F0Ab&state=right-state", "4/0Ab", ""},
		{"  <http://127.0.0.1:4711/callback?state=right-state&code=4/0Ab>\r\n", "4/0Ab", ""},
		{"http%3A%2F%2F127.0.0.1%3A4711%2Fcallback%3Fcode%3D4%2F0Ab%26state%3Dright-state", "4/0Ab", ""},
		{"https://x.example/oauth/show.html?code=abc&state=right-state#top", "abc", ""},
		{"https://x.example/oauth/show.html#code=abc&state=right-state", "abc", ""},
		{"code=abc&state=right-state", "abc", ""},
		{"/callback?code=abc&state=right-state", "abc", ""},
		{"4/0Ab_-9", "4/0Ab_-9", ""},
		{"4%2F0Ab", "4/0Ab", ""},
		{"abc#right-state", "abc", ""},
		{"abc#other-state", "", "that code belongs to another sign-in; use the link above"},
		{"http://127.0.0.1:4711/callback?code=abc&state=other", "", "that address belongs to another sign-in; use the link above"},
		{"http://127.0.0.1:4711/callback?code=abc", "", "that address belongs to another sign-in; use the link above"},
		{"https://accounts.example/consent?client_id=x", "", "that address has no code in it; it is the one that the browser shows after you agreed"},
		{"https://x.example/%zz?code=%zz&state=right-state", "", "that address cannot be read"},
		{"", "", "that was empty"},
		{"two words", "", "that is neither an address nor a code"},
		{strings.Repeat("x", codeLimit+1), "", "that is neither an address nor a code"},
		{strings.Repeat("x", callbackHead+1), "", "that is too long to be an address or a code"},
	} {
		a, problem := pasted(tt.in, state, judge)
		if a.code != tt.code || problem != tt.problem || a.err != nil {
			t.Errorf("%.60q: code %q, problem %q, error %v; want %q, %q", tt.in, a.code, problem, a.err, tt.code, tt.problem)
		}
	}
	a, _ := pasted("http://127.0.0.1/callback?error=access_denied&state=right-state", state, judge)
	if a.err == nil || a.err.Error() != "signing in: access was denied in the browser" {
		t.Errorf("error %v", a.err)
	}
	if a, _ = pasted("http://127.0.0.1/callback?code=x&state=right-state&iss=https://evil.example", state, judge); a.err == nil {
		t.Error("an answer of another issuer was taken")
	}
}

// Whatever is pasted: a code that comes out can be sent, and an address gives one only with the right state.
func FuzzPasted(f *testing.F) {
	for _, s := range []string{"4/0Ab", "http://127.0.0.1/callback?code=a&state=s3cr3t-st4te", "http%3A%2F%2Fx%3Fcode%3Da", "code=a&state=b", "a#b", "x?y=z", "\u200b%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, problem := pasted(in, "s3cr3t-st4te", judgement(Provider{}))
		if a.code != "" && (!printable(a.code) || problem != "" || a.err != nil) {
			t.Errorf("%q: code %q, problem %q, %v", in, a.code, problem, a.err)
		}
		if plain, err := url.QueryUnescape(in); a.code != "" && strings.Contains(in, "://") && !strings.Contains(in, "s3cr3t-st4te") && (err != nil || !strings.Contains(plain, "s3cr3t-st4te")) {
			t.Errorf("%q: a code without the state", in)
		}
	})
}
