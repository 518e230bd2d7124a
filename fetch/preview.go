package fetch

import (
	"context"
	"io"
	"net/http"

	"skald-connectors/manifest"
)

// A Preview is what is known of a connector before its files are downloaded: its entry and its manifest.
type Preview struct {
	Index       *Index // newer than the one asked with, when that one was stale
	Entry       manifest.Entry
	Manifest    *manifest.Manifest
	Diagnostics []manifest.Diagnostic
	Unpinned    bool // the index does not pin the manifest (a remote connector's)
	// ManifestDigest is the SHA-256 of the manifest's bytes: whoever shows a plan of it holds the bundle against it.
	ManifestDigest string

	bundle *Bundle // of the files that came
}

// Open reads one of the files that were asked for, hashed again as in Bundle.Open. One that the connector does not
// ship is an fs.ErrNotExist.
func (p *Preview) Open(path string) (io.ReadCloser, error) { return p.bundle.Open(path) }

// Preview downloads the manifest of e, an entry of ix, those of the files named in also that the entry pins, and
// nothing else. Its errors and its treatment of a stale index are those of Bundle.
func (m *Marketplace) Preview(ctx context.Context, ix *Index, e manifest.Entry, also ...string) (*Preview, error) {
	return withFreshIndex(ctx, m, ix, e, func(ctx context.Context, ix *Index, e manifest.Entry) (*Preview, error) {
		return m.preview(ctx, ix, e, also)
	})
}

func (m *Marketplace) preview(ctx context.Context, ix *Index, e manifest.Entry, also []string) (*Preview, error) {
	b, err := m.newBundle(ix, e)
	if err != nil {
		return nil, err
	}
	want, pinned := b.entry.Pin(manifestName)
	if !pinned {
		want = manifest.File{Path: manifestName, Size: -1}
	}
	files := []manifest.File{want}
	for _, path := range also {
		if f, pinned := b.entry.Pin(path); pinned {
			files = append(files, f)
		}
	}
	if b.files, err = m.files(ctx, b.entry, files); err != nil {
		return nil, err
	}
	if err := b.readManifest(); err != nil {
		return nil, err
	}
	p := &Preview{Index: ix, Entry: b.entry, Manifest: b.manifest, Diagnostics: b.found, Unpinned: !pinned, bundle: b}
	for _, f := range b.files {
		if f.Path == manifestName {
			p.ManifestDigest = f.SHA256
		}
	}
	return p, nil
}

// Transport makes a transport with the proxies and certificate authorities that env names, for requests to hosts
// other than the marketplace's. It reads them when the first request needs them.
func Transport(env func(string) string) http.RoundTripper { return newOwnTransport(env, answerLimit) }
