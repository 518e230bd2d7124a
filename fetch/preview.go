package fetch

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"skald-connectors/manifest"
)

// A Preview is what is known of a connector before its files are downloaded: its entry and its checked manifest.
type Preview struct {
	Index       *Index // newer than the one asked with, when that one was stale
	Entry       manifest.Entry
	Manifest    *manifest.Manifest
	Diagnostics []manifest.Diagnostic

	bundle *Bundle // of the files that came
}

// Open reads one of the files that were asked for, hashed again as in Bundle.Open. One that the connector does not
// ship is an fs.ErrNotExist.
func (p *Preview) Open(path string) (io.ReadCloser, error) { return p.bundle.Open(path) }

// Preview downloads the manifest of e, an entry of ix, those of the files named in also that the entry pins, and
// nothing else. Its errors and its treatment of a stale index are those of Bundle.
func (m *Marketplace) Preview(ctx context.Context, ix *Index, e manifest.Entry, also ...string) (*Preview, error) {
	p, err := m.preview(ctx, ix, e, also)
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
	return m.preview(ctx, fresh, now, also)
}

func (m *Marketplace) preview(ctx context.Context, ix *Index, e manifest.Entry, also []string) (*Preview, error) {
	if err := checkEntry(e); err != nil {
		return nil, err
	}
	want, pinned := e.Pin(manifestName)
	if !pinned {
		want = manifest.File{Path: manifestName, Size: -1}
	}
	files := []manifest.File{want}
	for _, path := range also {
		if f, pinned := e.Pin(path); pinned {
			files = append(files, f)
		}
	}
	b := &Bundle{cache: m.cache, index: ix, entry: e}
	var err error
	if b.files, err = m.files(ctx, e, files); err != nil {
		return nil, err
	}
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	return &Preview{Index: ix, Entry: e, Manifest: b.manifest, Diagnostics: b.found, bundle: b}, nil
}

// Transport makes a transport with the proxies and certificate authorities that env names, for requests to hosts
// other than the marketplace's.
func Transport(env func(string) string) (http.RoundTripper, error) { return newTransport(env) }
