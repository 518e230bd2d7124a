package fetch

import (
	"context"
	"strings"

	"skald-connectors/fetch/trust"
	"skald-connectors/manifest"
)

// What is remembered of a marketplace answers these questions: none of them asks the network for an index.

// Revoked tells whether the marketplace took a version back, and why; manifest is the SHA-256 of its connector.json. It
// looks at what is remembered only: no network, no index.
func (m *Marketplace) Revoked(id string, version int64, manifest string) (reason string, revoked bool, err error) {
	location, name := m.src.id()
	if m.o.TrustDir == "" || location == "builtin" {
		return "", false, nil
	}
	s, err := trust.Load(m.o.TrustDir, name, location)
	if err != nil || s == nil || s.Floor == nil {
		return "", false, err
	}
	reason, revoked = revocation(s.Floor.Revoked, id, version, manifest)
	return reason, revoked, nil
}

// Signed tells whether the marketplace is a signed one here: by keys of the user or of this program, or by what was seen of it. It
// looks at what is remembered only.
func (m *Marketplace) Signed() (bool, error) {
	s, err := m.remembered()
	return s != nil, err
}

// RunOut says why the last index of a signed marketplace is no longer good; nil: it is, or it is not a signed one. It
// looks at what is remembered only.
func (m *Marketplace) RunOut() error {
	s, err := m.remembered()
	if err != nil || s == nil || s.Floor == nil {
		return err
	}
	return m.here(s.Current(m.o.Now()))
}

// Revoked tells whether the index takes the version of an entry back, and why.
func (ix *Index) Revoked(e manifest.Entry) (reason string, revoked bool) {
	pin, _ := e.Pin(manifestName)
	return revocation(ix.trust.revoked, e.ID, int64(e.Version), pin.SHA256)
}

func revocation(list []trust.Revocation, id string, version int64, manifest string) (reason string, revoked bool) {
	for _, r := range list {
		if r.Covers(id, version, strings.ToLower(manifest)) {
			if r.Reason == "" {
				return "no reason is given", true
			}
			return r.Reason, true
		}
	}
	return "", false
}

// OfferedKeys reads the keys document that the marketplace shows, unjudged: for a person who compares it with what they
// know from elsewhere. nil: it shows none.
func (m *Marketplace) OfferedKeys(ctx context.Context) (*trust.Keys, error) {
	doc, err := m.small(ctx, keysName, trust.MaxKeysBytes)
	if err != nil || doc == nil {
		return nil, err
	}
	return trust.ParseKeys(doc)
}
