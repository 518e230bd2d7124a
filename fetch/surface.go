package fetch

import (
	"context"
	"errors"
	"io"
	"time"

	"skald-connectors/manifest"
)

var errTodo = errors.New("not written yet")

type source interface {
	name() string
	location() string
}
type store struct{}

func newStore(Options, string) *store                 { return nil }
func openSource(Options, func(Event)) (source, error) { return nil, errTodo }
func serialised(f func(Event)) func(Event)            { return f }

// Index reads the index. A network that cannot be reached falls back to the cached one; Index.Err says why.
func (m *Marketplace) Index(ctx context.Context, mode Freshness) (*Index, error) { return nil, errTodo }

// An Index is one state of a marketplace's index; it does not change.
type Index struct{}

// Location is the marketplace's address without credentials.
func (ix *Index) Location() string { return "" }

// Digest is the lower-case hex SHA-256 of the index's bytes.
func (ix *Index) Digest() string { return "" }

// Fetched is when these bytes were last confirmed by the marketplace.
func (ix *Index) Fetched() time.Time { return time.Time{} }

// FromCache tells that the network was not asked or could not be reached.
func (ix *Index) FromCache() bool { return false }

// Err says why the network could not be used; nil when it was not needed or worked.
func (ix *Index) Err() error { return nil }

// Len is the number of entries, broken ones included.
func (ix *Index) Len() int { return 0 }

// Lookup reads one entry; *NotFoundError, *BrokenError.
func (ix *Index) Lookup(id string) (manifest.Entry, error) { return manifest.Entry{}, errTodo }

// Search gives the matching entries, best first. Broken entries are among them, with their reason.
func (ix *Index) Search(q Query) ([]manifest.Entry, error) { return nil, errTodo }

// Versions gives the versions of those ids that the index has; others are absent.
func (ix *Index) Versions(ids []string) (map[string]manifest.Version, error) { return nil, errTodo }

// Diagnostics parses the whole index and gives what is wrong with it.
func (ix *Index) Diagnostics() ([]manifest.Diagnostic, error) { return nil, errTodo }

// Bundle downloads what e pins.
func (m *Marketplace) Bundle(ctx context.Context, ix *Index, e manifest.Entry) (*Bundle, error) {
	return nil, errTodo
}

// A Bundle is the bytes of one connector version, all checked against their pins.
type Bundle struct{}

// Entry is the index entry whose pins were checked; newer than the one asked for when the index was read afresh.
func (b *Bundle) Entry() manifest.Entry { return manifest.Entry{} }

// Index is the index that Entry was taken from.
func (b *Bundle) Index() *Index { return nil }

// Manifest is the parsed connector.json of the bundle.
func (b *Bundle) Manifest() *manifest.Manifest { return nil }

// Diagnostics are those of the manifest and of its comparison with the index entry.
func (b *Bundle) Diagnostics() []manifest.Diagnostic { return nil }

// Files lists the files with their digests and true sizes, sorted by path.
func (b *Bundle) Files() []manifest.File { return nil }

// Unpinned lists the paths that the index did not pin (a remote connector's connector.json and legacy files).
func (b *Bundle) Unpinned() []string { return nil }

// Open reads a file, hashing it again; a change shows as an error in place of io.EOF.
func (b *Bundle) Open(path string) (io.ReadCloser, error) { return nil, errTodo }
