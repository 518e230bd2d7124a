package login

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a provider without a network, for tests whose clock is not real.
type answers func(path string, form url.Values) (status int, body string, err error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	form := url.Values{}
	if r.Body != nil {
		data, _ := io.ReadAll(r.Body)
		form, _ = url.ParseQuery(string(data))
	}
	status, body, err := a(r.URL.Path, form)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

const deviceReplyText = `{"device_code":"dev","user_code":"ABCD-EFGH","verification_uri":"https://as.example/device","expires_in":300,"interval":2}`

func TestDeviceFlow(t *testing.T) {
	pending, slow, token := `{"error":"authorization_pending"}`, `{"error":"slow_down"}`, `{"access_token":"new","expires_in":60}`
	for _, tt := range []struct {
		name    string
		replies []string // of the token endpoint; "net" is a broken network, "500" one that is down
		after   []time.Duration
		want    string
	}{
		{"at once", []string{token}, []time.Duration{2}, ""},
		{"waits", []string{pending, pending, token}, []time.Duration{2, 4, 6}, ""},
		{"slows down", []string{slow, pending, slow, token}, []time.Duration{2, 9, 16, 28}, ""},
		{"bad network", []string{"net", "500", pending, token}, []time.Duration{2, 6, 14, 22}, ""},
		{"denied", []string{pending, `{"error":"access_denied"}`}, []time.Duration{2, 4}, "access was denied in the browser"},
		{"expired", []string{`{"error":"expired_token"}`}, []time.Duration{2}, "nothing came back from the browser within 5m0s"},
		{"other", []string{`{"error":"invalid_client"}`}, []time.Duration{2}, `"invalid_client"`},
		{"nobody comes", nil, nil, "nothing came back from the browser within 5m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var asked []time.Duration
				c := &Client{Now: time.Now, HTTP: &http.Client{Transport: answers(func(path string, form url.Values) (int, string, error) {
					if path == "/device" {
						return 200, deviceReplyText, nil
					}
					if form.Get("device_code") != "dev" || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" {
						t.Errorf("asked %v", form)
					}
					asked = append(asked, time.Since(began)/time.Second)
					if tt.replies == nil {
						return 400, pending, nil
					}
					r := tt.replies[len(asked)-1]
					switch {
					case r == "net":
						return 0, "", errors.New("no route")
					case r == "500":
						return 500, "", nil
					case strings.Contains(r, "access_token"):
						return 200, r, nil
					}
					return 400, r, nil
				})}}
				var shown DeviceCode
				cred, err := c.SignInDevice(t.Context(), SignIn{Provider: Provider{Slug: "x", ClientID: "c", TokenURL: "https://as.example/token", DeviceURL: "https://as.example/device"},
					Scopes: []string{"a"}, Code: func(d DeviceCode) { shown = d }})
				if shown.Code != "ABCD-EFGH" || shown.Life != 5*time.Minute {
					t.Errorf("shown %+v", shown)
				}
				if tt.want == "" && (err != nil || cred.Access.Reveal() != "new") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				for i, at := range tt.after {
					if i >= len(asked) || asked[i] != at {
						t.Errorf("asked after %v, want %v", asked, tt.after)
						break
					}
				}
			})
		})
	}
}

func TestOddDeviceReplies(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"device_code":"d","user_code":"A\u001b[2J","verification_uri":"https://as.example"}`, `{"device_code":"d","user_code":"A"}`,
		`{"device_code":"d","user_code":"A","verification_uri":"javascript:alert(1)"}`, `{"device_code":"d","user_code":"A","verification_uri":"http://as.example/"}`,
		`{"device_code":"","user_code":"A","verification_uri":"https://as.example"}`, `{"error":"unauthorized_client"}`,
	} {
		c := &Client{Now: func() time.Time { return epoch }, HTTP: &http.Client{Transport: answers(func(string, url.Values) (int, string, error) { return 200, body, nil })}}
		_, err := c.SignInDevice(t.Context(), SignIn{Provider: Provider{DeviceURL: "https://as.example/device", TokenURL: "https://as.example/token"}, Code: func(DeviceCode) { t.Errorf("%s: shown", body) }})
		if err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}
