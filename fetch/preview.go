package fetch

import (
	"bytes"
	"context"
	"net/http"

	"skald-connectors/manifest"
)

// A Preview is what is known of a connector before its files are downloaded: its entry and its checked manifest.
type Preview struct {
	Index       *Index // newer than the one asked with, when that one was stale
	Entry       manifest.Entry
	Manifest    *manifest.Manifest
	Diagnostics []manifest.Diagnostic
}

// Preview downloads the manifest of e, an entry of ix, and nothing else. Its errors and its treatment of a stale
// index are those of Bundle.
func (m *Marketplace) Preview(ctx context.Context, ix *Index, e manifest.Entry) (*Preview, error) {
	p, err := m.preview(ctx, ix, e)
	if err == nil || !mayBeStale(err) {
		return p, err
	}
	fresh, again := m.afresh(ctx)
	if again != nil {
		return nil, err
	}
	now, again := fresh.Lookup(e.ID)
	if again != nil || bytes.Equal(now.Raw, e.Raw) {
		return nil, err
	}
	return m.preview(ctx, fresh, now)
}

func (m *Marketplace) preview(ctx context.Context, ix *Index, e manifest.Entry) (*Preview, error) {
	if err := checkEntry(e); err != nil {
		return nil, err
	}
	want, pinned := e.Pin(manifestName)
	if !pinned {
		want = manifest.File{Path: manifestName, Size: -1}
	}
	b := &Bundle{cache: m.cache, index: ix, entry: e}
	var err error
	if b.files, err = m.files(ctx, e, []manifest.File{want}); err != nil {
		return nil, err
	}
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	return &Preview{Index: ix, Entry: e, Manifest: b.manifest, Diagnostics: b.found}, nil
}

// Transport makes a transport with the proxies and certificate authorities that env names, for requests to hosts
// other than the marketplace's.
func Transport(env func(string) string) (http.RoundTripper, error) { return newTransport(env) }
