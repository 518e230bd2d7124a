package login

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skald-connectors/keystore"
)

func testProviders(t *testing.T) Providers {
	home := t.TempDir()
	return Providers{Dir: filepath.Join(home, "providers"), Keys: keystore.Open(keystore.Options{Dir: filepath.Join(home, "keystore"), Want: keystore.BackendKeyfile})}
}

func TestProviders(t *testing.T) {
	s := testProviders(t)
	var none *NoClientError
	if _, err := s.Get(t.Context(), "google"); !errors.As(err, &none) || !none.Known || none.Console == "" || err.Error() != "signing in with Google: no client of it is set up here" {
		t.Errorf("error %v", err)
	}
	if _, err := s.Get(t.Context(), "../x"); !errors.As(err, &none) || none.Known {
		t.Errorf("error %v", err)
	}
	p := s.Preset("google")
	p.ClientID, p.ClientSecret = "id-1", keystore.NewSecret(canaryClient)
	for range 2 { // the second replaces the first
		if err := s.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Get(t.Context(), "google")
	if err != nil || got.ClientID != "id-1" || got.ClientSecret.Reveal() != canaryClient || got.RevokeURL != p.RevokeURL || got.Extra["access_type"] != "offline" {
		t.Errorf("%+v %v", got, err)
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, "google.json"))
	if err != nil || strings.Contains(string(data), canaryClient) {
		t.Errorf("the secret is in the file (%v)", err)
	}
	if gens, err := s.Keys.Generations(VaultName("google")); err != nil || len(gens) != 1 || gens[0] != 2 {
		t.Errorf("vaults %v %v", gens, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 8 || list[2].Slug != "google" || !list[2].Configured || !list[2].HasSecret || list[1].Configured {
		t.Errorf("%+v %v", list, err)
	}
	if existed, err := s.Remove(t.Context(), "google"); !existed || err != nil {
		t.Errorf("removed %v %v", existed, err)
	}
	if existed, err := s.Remove(t.Context(), "google"); existed || err != nil {
		t.Errorf("removed again %v %v", existed, err)
	}
	if d, err := s.Keys.Describe(); err != nil || d.Vaults != 0 || d.Backend != "" {
		t.Errorf("left %+v %v", d, err)
	}
}

func TestProvidersThatCannotBeRead(t *testing.T) {
	s := testProviders(t)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                             "reading provider \"mine\"",
		`{"format":1,"client_id":"a"}`: `auth_url of the provider "mine": "" is no address`,
		`{"format":2,"client_id":"a"}`: "written by a newer version",
		`{"format":1,"client_id":"a","client_id":"b"}`: "stands twice",
		`{"format":1,"client_id":7}`:                   "does not have the form",
		`{"format":1,"client_id":"a","auth_url":"http://as.example/a","token_url":"https://as.example/t"}`:                               "is not https",
		`{"format":1,"client_id":"a","auth_url":"https://as.example/a","token_url":"https://as.example/t","redirect":"ftp://x"}`:         "is neither",
		`{"format":1,"client_id":"a","auth_url":"https://as.example/a","token_url":"https://as.example/t","extra_params":{"state":"x"}}`: "is ours to say",
		`{"format":1,"client_id":"a","auth_url":"https://as.example/a","token_url":"https://as.example/t","token_auth":"mtls"}`:          "is not post, basic or none",
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, "mine.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", text, err, want)
		}
		if list, err := s.List(); err != nil || len(list) != 9 {
			t.Errorf("%s: the others are not listed: %v", text, err)
		}
	}
}

func TestPresetsAreSound(t *testing.T) {
	for slug, p := range presets() {
		p.Slug = slug
		if err := p.Check(); err != nil || p.Title == "" || p.Console == "" {
			t.Errorf("%s: %v", slug, err)
		}
	}
}

func TestParseClientFile(t *testing.T) {
	const installed = `{"installed":{"client_id":"id.apps.googleusercontent.com","project_id":"p","auth_uri":"https://accounts.google.com/o/oauth2/auth",` +
		`"token_uri":"https://oauth2.googleapis.com/token","client_secret":"GOCSPX-c4n4ry","redirect_uris":["http://localhost"]}}`
	g, _ := preset("google")
	p, err := ParseClientFile([]byte(installed), g)
	if err != nil || p.ClientID != "id.apps.googleusercontent.com" || p.ClientSecret.Reveal() != "GOCSPX-c4n4ry" || p.AuthURL != g.AuthURL {
		t.Errorf("%+v %v", p, err)
	}
	for text, want := range map[string]string{
		`{"web":{"client_id":"x"}}`: `"Desktop app" is needed`, `{"type":"service_account","client_email":"x"}`: "it is a credential",
		`{"installed":{}}`: "it has no client_id", `[]`: "it has no client_id", `{`: "reading the client file", `{"installed":{},"installed":{}}`: "stands twice",
	} {
		if _, err := ParseClientFile([]byte(text), g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", text, err, want)
		}
	}
}

func FuzzParseProvider(f *testing.F) {
	f.Add([]byte(`{"format":1,"client_id":"a","auth_url":"https://as.example/a","token_url":"https://as.example/t","extra_params":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := parseProvider(data); err == nil {
			_ = file.provider("x").Check()
		}
		_, _ = ParseClientFile(data, Provider{})
	})
}
