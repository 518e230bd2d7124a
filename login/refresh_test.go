package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// memory is a vault without a disk.
type memory struct {
	mu     sync.Mutex
	hs     []keystore.Handle
	writes int
	fail   func(write int) error // nil = takes all
	onLoad func(m *memory, load int)
	loads  int
}

func (m *memory) Load(context.Context) ([]keystore.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads++
	if m.onLoad != nil {
		m.onLoad(m, m.loads)
	}
	return slices.Clone(m.hs), nil
}

func (m *memory) Update(_ context.Context, change func([]keystore.Handle) ([]keystore.Handle, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.fail != nil {
		if err := m.fail(m.writes); err != nil {
			return err
		}
	}
	hs, err := change(slices.Clone(m.hs))
	if err == nil {
		m.hs = hs
	}
	return err
}

func (m *memory) put(t *testing.T, c Credential) {
	t.Helper()
	hs, err := c.Merge(m.hs)
	if err != nil {
		t.Fatal(err)
	}
	m.hs = hs
}

func (m *memory) cred() Credential {
	c, _, _ := Find(m.hs)
	return c
}

func TestFresh(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	status, body := 200, `{"access_token":"new","expires_in":3600,"refresh_token":"next"}`
	u := newUnkind(t, func(u *unkind) {
		u.token = func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	})
	fresh := func(m *memory, refused string) (Credential, error) {
		return testClient().Fresh(t.Context(), lock, m, keystore.NewSecret(refused))
	}
	given := func(change func(*Credential)) *memory {
		c := stored()
		c.TokenURL = u.URL + "/token"
		change(&c)
		m := &memory{hs: []keystore.Handle{{Name: "OTHER", Value: keystore.NewSecret("kept")}}}
		m.put(t, c)
		return m
	}
	asked := func() int { n := len(u.forms()); u.asked = nil; return n }

	m := given(func(c *Credential) { c.Expires = epoch.Add(time.Hour) })
	if c, err := fresh(m, ""); err != nil || c.Access.Reveal() != "old-access" || asked() != 0 {
		t.Errorf("a good token was not used: %v", err)
	}
	if c, err := fresh(m, "another"); err != nil || c.Access.Reveal() != "old-access" || asked() != 0 {
		t.Errorf("a token that was not the refused one was renewed: %v", err)
	}
	if c, err := fresh(m, "old-access"); err != nil || c.Access.Reveal() != "new" || asked() != 1 {
		t.Errorf("a refused token was not renewed: %v", err)
	}

	m = given(func(*Credential) {})
	c, err := fresh(m, "")
	if err != nil || c.Access.Reveal() != "new" || c.Refresh.Reveal() != "next" || asked() != 1 || m.cred().Refresh.Reveal() != "next" || !m.cred().Renewing.IsZero() {
		t.Errorf("ended token: %v, stored %+v", err, m.cred())
	}
	if !c.Rotates || m.hs[0].Name != "OTHER" {
		t.Errorf("rotation was not noticed, or another handle went: %v", m.hs)
	}

	// A token without a known end is used until it is refused: no renewing at every look.
	m = given(func(c *Credential) { c.Expires = time.Time{} })
	for range 50 {
		if _, err := fresh(m, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked(); n != 0 {
		t.Errorf("asked %d times for a token without an end", n)
	}

	// The provider is down: nothing changes, and the refresh token is kept.
	status, body = 503, ""
	m = given(func(*Credential) {})
	var reply *ReplyError
	if _, err := fresh(m, ""); !errors.As(err, &reply) || m.cred().Refresh.Reveal() != "c4n4ry-refresh" || asked() != 1 {
		t.Errorf("error %v, stored %+v", err, m.cred())
	}

	// Revoked: only what was refused is deleted, and the next look does not ask again.
	status, body = 400, `{"error":"invalid_grant"}`
	var expired *ExpiredError
	if _, err := fresh(m, ""); !errors.As(err, &expired) || !strings.Contains(err.Error(), "an earlier refresh was interrupted") || !m.cred().Refresh.IsZero() || asked() != 1 {
		t.Errorf("error %v, stored %+v", err, m.cred())
	}
	if _, err := fresh(m, ""); !errors.As(err, &expired) || asked() != 0 {
		t.Errorf("error %v", err)
	}
	if m.hs[0].Name != "OTHER" {
		t.Errorf("another handle went: %v", m.hs)
	}

	// Near its end without a refresh token: used to its end, then expired.
	m = given(func(c *Credential) { c.Refresh, c.Expires = keystore.Secret{}, epoch.Add(time.Second) })
	if c, err := fresh(m, ""); err != nil || c.Access.Reveal() != "old-access" {
		t.Errorf("error %v", err)
	}
}

// What was refused is not deleted when somebody has put another one in its place.
func TestFreshReadsAgainAfterARefusal(t *testing.T) {
	u := newUnkind(t, func(u *unkind) {
		u.token = func(w http.ResponseWriter, form url.Values) {
			if form.Get("refresh_token") == "c4n4ry-refresh" {
				reply(w, 400, map[string]any{"error": "invalid_grant"})
				return
			}
			reply(w, 200, map[string]any{"access_token": "of-" + form.Get("refresh_token")})
		}
	})
	c := stored()
	c.TokenURL = u.URL + "/token"
	m := &memory{}
	m.put(t, c)
	m.onLoad = func(m *memory, load int) {
		if load == 3 {
			c.Refresh = keystore.NewSecret("rolled-back")
			m.hs, _ = c.Merge(m.hs)
		}
	}
	got, err := testClient().Fresh(t.Context(), filepath.Join(t.TempDir(), "lock"), m, keystore.Secret{})
	if err != nil || got.Access.Reveal() != "of-rolled-back" || m.cred().Refresh.Reveal() != "rolled-back" {
		t.Errorf("%v, stored %+v", err, m.cred())
	}
}

// A store that takes nothing is noticed before the token is spent; one that fails for a moment is tried again.
func TestFreshAndAFullDisk(t *testing.T) {
	u := newUnkind(t, nil)
	full := errors.New("no space left")
	c := stored()
	c.TokenURL = u.URL + "/token"
	m := &memory{fail: func(int) error { return full }}
	m.put(t, c)
	lock := filepath.Join(t.TempDir(), "lock")
	if _, err := testClient().Fresh(t.Context(), lock, m, keystore.Secret{}); !errors.Is(err, full) || len(u.forms()) != 0 {
		t.Errorf("error %v, asked %d times", err, len(u.forms()))
	}
	m.writes, m.fail = 0, func(write int) error {
		if write == 2 || write == 3 {
			return full
		}
		return nil
	}
	if got, err := testClient().Fresh(t.Context(), lock, m, keystore.Secret{}); err != nil || !m.cred().Access.Equal(got.Access) {
		t.Errorf("error %v", err)
	}
}

// Leaving during a refresh loses nothing.
func TestFreshIsNotGivenUpHalfWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u := newUnkind(t, func(u *unkind) {
		u.token = func(w http.ResponseWriter, _ url.Values) {
			cancel()
			reply(w, 200, map[string]any{"access_token": "new", "refresh_token": "next"})
		}
	})
	c := stored()
	c.TokenURL = u.URL + "/token"
	m := &memory{}
	m.put(t, c)
	if _, err := testClient().Fresh(ctx, filepath.Join(t.TempDir(), "lock"), m, keystore.Secret{}); err != nil || m.cred().Refresh.Reveal() != "next" {
		t.Errorf("error %v, stored %+v", err, m.cred())
	}
}

func TestCredentialHandles(t *testing.T) {
	c := stored()
	c.TokenURL, c.Resource, c.Registered, c.Redirect = "https://as.example/token", "https://mcp.example", true, "http://127.0.0.1:1/callback"
	other := keystore.Handle{Name: "KEY", Value: keystore.NewSecret("x"), Secret: true}
	hs, err := c.Merge([]keystore.Handle{other})
	if err != nil {
		t.Fatal(err)
	}
	hs, err = c.Merge(hs) // in its own place
	if err != nil || len(hs) != 5 {
		t.Fatalf("%v %v", hs, err)
	}
	for _, h := range hs {
		if strings.Contains(h.Value.Reveal(), "c4n4ry") && !h.Secret {
			t.Errorf("handle %q has a secret in it", h.Name)
		}
	}
	got, ok, err := Find(hs)
	if !ok || err != nil || got.Resource != c.Resource || !got.Expires.Equal(c.Expires) || !got.Refresh.Equal(c.Refresh) || !got.Registered {
		t.Errorf("%+v %v %v", got, ok, err)
	}
	if missing := got.Missing(); !slices.Equal(missing, []string{"b"}) {
		t.Errorf("missing %v", missing)
	}
	if hs, err = (Credential{}).Merge(hs); err != nil || len(hs) != 1 || hs[0].Name != "KEY" {
		t.Errorf("taken out: %v %v", hs, err)
	}
	for _, bad := range []string{"{", `{"format":2,"token_url":"x"}`} {
		if _, ok, err := Find([]keystore.Handle{{Name: handleGrant, Value: keystore.NewSecret(bad)}}); ok || err == nil {
			t.Errorf("%s: taken", bad)
		}
	}
}

func TestDeliver(t *testing.T) {
	c := stored()
	c.TokenURL = "https://oauth2.googleapis.com/token"
	got, err := c.Deliver("google_authorized_user")
	want := `{"type":"authorized_user","client_id":"client","client_secret":"c4n4ry-client-secret","refresh_token":"c4n4ry-refresh","token_uri":"https://oauth2.googleapis.com/token",` +
		`"scopes":["a"],"token":"old-access","expiry":"2026-12-01T09:59:00Z"}`
	if err != nil || got.Reveal() != want {
		t.Errorf("%s\nwant %s (%v)", got.Reveal(), want, err)
	}
	for format, want := range map[string]string{"access_token": "old-access", "refresh_token": "c4n4ry-refresh"} {
		if got, err := c.Deliver(format); err != nil || got.Reveal() != want {
			t.Errorf("%s: %v", format, err)
		}
	}
	if _, err := c.Deliver("other"); err == nil {
		t.Error("an unknown format was delivered")
	}
	c.Refresh = keystore.Secret{}
	if _, err := c.Deliver("google_authorized_user"); err == nil {
		t.Error("a credential without a refresh token was delivered")
	}
}
