package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
)

const (
	providerFormat = 1
	// providerLimit bounds HOME/providers/SLUG.json; ours have under 1 KiB.
	providerLimit = 64 << 10
	providerDepth = 8
	// secretHandle is the one handle of a provider's vault.
	secretHandle = "client_secret"
)

// VaultName is the vault of a provider's client secret. No activation can have that name: theirs have no "__".
func VaultName(slug string) string { return "provider__" + slug }

// IsVaultName tells the vaults of providers from those of activations.
func IsVaultName(name string) bool { return strings.HasPrefix(name, "provider__") }

// Providers are those that the person set up: HOME/providers/SLUG.json, and a client secret in the key store.
type Providers struct {
	Dir  string // HOME/providers
	Keys *keystore.Store
}

// providerFile is the file's form. Vault is the generation of the client secret; 0 = the client has none.
type providerFile struct {
	Format      int               `json:"format"`
	Title       string            `json:"title,omitempty"`
	Issuer      string            `json:"issuer,omitempty"`
	AuthURL     string            `json:"auth_url"`
	TokenURL    string            `json:"token_url"`
	DeviceURL   string            `json:"device_url,omitempty"`
	RevokeURL   string            `json:"revoke_url,omitempty"`
	ClientID    string            `json:"client_id"`
	Vault       int64             `json:"client_secret_vault,omitempty"`
	TokenAuth   string            `json:"token_auth,omitempty"`
	Redirect    string            `json:"redirect,omitempty"`
	Extra       map[string]string `json:"extra_params,omitempty"`
	Separator   string            `json:"scope_separator,omitempty"`
	NamesIssuer bool              `json:"names_issuer,omitempty"`
	Rotates     bool              `json:"rotates,omitempty"`
	Console     string            `json:"console,omitempty"`
}

func (f providerFile) provider(slug string) Provider {
	return Provider{Slug: slug, Title: f.Title, Issuer: f.Issuer, AuthURL: f.AuthURL, TokenURL: f.TokenURL, DeviceURL: f.DeviceURL,
		RevokeURL: f.RevokeURL, ClientID: f.ClientID, TokenAuth: f.TokenAuth, Redirect: f.Redirect, Extra: f.Extra,
		Separator: f.Separator, NamesIssuer: f.NamesIssuer, Rotates: f.Rotates, Console: f.Console}
}

func fileOf(p Provider, vault int64) providerFile {
	return providerFile{Format: providerFormat, Title: p.Title, Issuer: p.Issuer, AuthURL: p.AuthURL, TokenURL: p.TokenURL, DeviceURL: p.DeviceURL,
		RevokeURL: p.RevokeURL, ClientID: p.ClientID, Vault: vault, TokenAuth: p.TokenAuth, Redirect: p.Redirect, Extra: p.Extra,
		Separator: p.Separator, NamesIssuer: p.NamesIssuer, Rotates: p.Rotates, Console: p.Console}
}

func (s Providers) path(slug string) string { return filepath.Join(s.Dir, slug+".json") }

// Preset gives what is known of a provider before a client of it is set up; the slug alone where nothing is.
func (s Providers) Preset(slug string) Provider {
	p, ok := preset(slug)
	if !ok {
		p.Slug = slug
	}
	return p
}

// Look gives a provider that is set up, without its client secret; Where there is none, *NoClientError.
func (s Providers) Look(slug string) (Provider, error) {
	p, _, err := s.read(slug)
	return p, err
}

// Get gives a provider with its client secret. Errors: *NoClientError, *keystore.Error.
func (s Providers) Get(ctx context.Context, slug string) (Provider, error) {
	p, vault, err := s.read(slug)
	if err != nil || vault == 0 {
		return p, err
	}
	hs, err := s.Keys.Load(ctx, VaultName(slug), vault)
	if err != nil {
		return Provider{}, err
	}
	for _, h := range hs {
		if h.Name == secretHandle {
			p.ClientSecret = h.Value
		}
	}
	return p, nil
}

func (s Providers) read(slug string) (p Provider, vault int64, err error) {
	known, isKnown := preset(slug)
	missing := &NoClientError{Slug: slug, Title: known.Title, Console: known.Console, Known: isKnown}
	if !validSlug.MatchString(slug) {
		return Provider{}, 0, missing
	}
	data, err := atomicfile.Read(s.path(slug), providerLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Provider{}, 0, missing
	}
	if err != nil {
		return Provider{}, 0, fmt.Errorf("reading provider %q: %w", slug, err)
	}
	f, err := parseProvider(data)
	if err == nil {
		p = f.provider(slug)
		err = p.Check()
	}
	if err != nil {
		return Provider{}, 0, fmt.Errorf("reading provider %q: %w", slug, err)
	}
	return p, f.Vault, nil
}

// parseProvider reads a file of ours, which a person may have edited.
func parseProvider(data []byte) (f providerFile, err error) {
	_, repeats, err := exactjson.Parse(data, providerDepth)
	if err != nil {
		return f, err
	}
	if len(repeats) > 0 {
		return f, fmt.Errorf("%s stands twice", repeats[0].Path)
	}
	if err := json.Unmarshal(trimBOM(data), &f); err != nil {
		return f, errors.New("it does not have the form of a provider")
	}
	switch {
	case f.Format > providerFormat:
		return f, fmt.Errorf("format %d was written by a newer version", f.Format)
	case f.ClientID == "":
		return f, errors.New("it has no client_id")
	case f.Vault < 0:
		return f, errors.New("client_secret_vault is negative")
	}
	return f, nil
}

func trimBOM(data []byte) []byte {
	return []byte(strings.TrimPrefix(string(data), "\ufeff"))
}

// Put sets a provider up, in place of what was set up under its slug, but not of what a newer program wrote. The file is the commit.
func (s Providers) Put(ctx context.Context, p Provider) error {
	if !validSlug.MatchString(p.Slug) {
		return fmt.Errorf("the provider name %q is not 1 to 32 letters a-z, digits and hyphens", p.Slug)
	}
	if p.ClientID == "" {
		return fmt.Errorf("the provider %q has no client id", p.Slug)
	}
	if err := p.Check(); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.notNewer(p.Slug); err != nil {
		return fmt.Errorf("writing provider %q: %w", p.Slug, err)
	}
	vault, err := s.putSecret(ctx, p)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(fileOf(p, vault), "", "  ")
	if err == nil {
		err = atomicfile.Write(s.path(p.Slug), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing provider %q: %w", p.Slug, err)
	}
	return s.dropVaults(p.Slug, vault)
}

// notNewer refuses a file that a newer program wrote; what is damaged is replaced.
func (s Providers) notNewer(slug string) error {
	var f struct {
		Format int `json:"format"`
	}
	data, err := atomicfile.Read(s.path(slug), providerLimit)
	if err == nil && json.Unmarshal(trimBOM(data), &f) == nil && f.Format > providerFormat {
		return fmt.Errorf("format %d was written by a newer version", f.Format)
	}
	return nil
}

// putSecret writes the client secret as a generation that no file names yet.
func (s Providers) putSecret(ctx context.Context, p Provider) (int64, error) {
	if p.ClientSecret.IsZero() {
		return 0, nil
	}
	gens, err := s.Keys.Generations(VaultName(p.Slug))
	if err != nil {
		return 0, err
	}
	next := int64(1)
	if len(gens) > 0 {
		next = slices.Max(gens) + 1
	}
	return next, s.Keys.Put(ctx, VaultName(p.Slug), next, []keystore.Handle{{Name: secretHandle, Value: p.ClientSecret, Secret: true}})
}

func (s Providers) dropVaults(slug string, keep int64) error {
	if keep == 0 {
		return s.Keys.Remove(VaultName(slug))
	}
	return s.Keys.Remove(VaultName(slug), keep)
}

func (s Providers) lock(ctx context.Context) (func(), error) {
	if err := atomicfile.PrivateDir(s.Dir); err != nil {
		return nil, err
	}
	return atomicfile.Lock(ctx, filepath.Join(s.Dir, ".lock"), nil)
}

// Remove takes a provider away and tells whether it was there.
func (s Providers) Remove(ctx context.Context, slug string) (existed bool, err error) {
	if _, err := os.Lstat(s.Dir); errors.Is(err, fs.ErrNotExist) || !validSlug.MatchString(slug) {
		return false, nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	err = os.Remove(s.path(slug))
	if errors.Is(err, fs.ErrNotExist) {
		return false, s.dropVaults(slug, 0)
	}
	if err != nil {
		return false, fmt.Errorf("removing provider %q: %w", slug, err)
	}
	if err := s.dropVaults(slug, 0); err != nil {
		return true, err
	}
	return true, s.Keys.Forget(ctx)
}

// A ProviderState is one provider in a listing.
type ProviderState struct {
	Provider
	Configured bool  // a client is set up
	HasSecret  bool  // and it has a secret
	Err        error // it is set up and cannot be read
}

// List gives every provider that is known or set up, by slug.
func (s Providers) List() ([]ProviderState, error) {
	slugs := []string{}
	for slug := range presets() {
		slugs = append(slugs, slug)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the providers: %w", err)
	}
	for _, e := range entries {
		if slug, ok := strings.CutSuffix(e.Name(), ".json"); ok && validSlug.MatchString(slug) && !slices.Contains(slugs, slug) {
			slugs = append(slugs, slug)
		}
	}
	slices.Sort(slugs)
	list := make([]ProviderState, 0, len(slugs))
	for _, slug := range slugs {
		p, vault, err := s.read(slug)
		var none *NoClientError
		switch {
		case err == nil:
			list = append(list, ProviderState{Provider: p, Configured: true, HasSecret: vault > 0})
		case errors.As(err, &none):
			list = append(list, ProviderState{Provider: s.Preset(slug)})
		default:
			list = append(list, ProviderState{Provider: s.Preset(slug), Configured: true, Err: err})
		}
	}
	return list, nil
}
