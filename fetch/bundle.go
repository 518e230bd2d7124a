package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"skald-connectors/manifest"
)

const manifestName = "connector.json"

// A Bundle is the files of one connector version, each held to its pin. Only Marketplace.Bundle makes one; the zero
// Bundle is empty.
type Bundle struct {
	cache    *cacheDir
	index    *Index
	entry    manifest.Entry
	manifest *manifest.Manifest
	found    []manifest.Diagnostic
	files    []manifest.File
	unpinned []string
}

// Entry is the index entry whose pins were checked. It is newer than the one asked for when the index had to be read
// afresh; whoever showed a plan of the old one compares.
func (b *Bundle) Entry() manifest.Entry { return b.entry }

// Index is the index that Entry was taken from.
func (b *Bundle) Index() *Index { return b.index }

// Manifest is the connector.json of the bundle, parsed from its checked bytes.
func (b *Bundle) Manifest() *manifest.Manifest { return b.manifest }

// Diagnostics are those of the manifest and of its comparison with the entry.
func (b *Bundle) Diagnostics() []manifest.Diagnostic { return slices.Clone(b.found) }

// Files lists the files with their digests and true sizes, sorted by path.
func (b *Bundle) Files() []manifest.File { return slices.Clone(b.files) }

// Unpinned lists the files that the index did not pin: a remote connector's connector.json. Their digests in Files
// are those of what came.
func (b *Bundle) Unpinned() []string { return slices.Clone(b.unpinned) }

// Open reads a file of the bundle. It is hashed again while it is read: a change shows as a *PinError in place of
// io.EOF. A path that the bundle does not have is an fs.ErrNotExist.
func (b *Bundle) Open(path string) (io.ReadCloser, error) {
	for _, f := range b.files {
		if f.Path == path {
			return b.cache.openFile(b.entry.ID, f)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// Bundle downloads the files that e, an entry of ix, pins. When they do not match, or one is gone, the index is read
// once afresh and its entry is tried if it is another one. Errors: *PinError, *BrokenError, *NotFoundError,
// *UnreachableError, *WebPageError, *manifest.DisagreeError, *manifest.RefusedError. Nothing of a refused file is kept.
func (m *Marketplace) Bundle(ctx context.Context, ix *Index, e manifest.Entry) (*Bundle, error) {
	return withFreshIndex(ctx, m, ix, e, m.bundle)
}

// withFreshIndex does something with an entry, and once more with that of a newly read index when the error may come
// from an index that is older than the files.
func withFreshIndex[T any](ctx context.Context, m *Marketplace, ix *Index, e manifest.Entry, do func(context.Context, *Index, manifest.Entry) (T, error)) (T, error) {
	result, err := do(ctx, ix, e)
	if _, bundled := m.src.(*tarSource); err == nil || bundled || !mayBeStale(err) {
		return result, err
	}
	m.note(Event{Connector: e.ID, IndexReread: true})
	fresh, again := m.afresh(ctx)
	if again != nil {
		return result, err
	}
	now, again := fresh.Lookup(e.ID)
	if again != nil || bytes.Equal(now.Raw, e.Raw) {
		return result, err
	}
	return do(ctx, fresh, now)
}

// mayBeStale tells whether a newer index may explain the error.
func mayBeStale(err error) bool {
	var pin *PinError
	var status *statusError
	return errors.As(err, &pin) || errors.Is(err, fs.ErrNotExist) ||
		errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusGone)
}

func (m *Marketplace) bundle(ctx context.Context, ix *Index, e manifest.Entry) (*Bundle, error) {
	if ix.trust.Stale != nil {
		return nil, ix.trust.Stale
	}
	b, err := m.newBundle(ix, e)
	if err != nil {
		return nil, err
	}
	if _, pinned := b.entry.Pin(manifestName); pinned {
		err = m.pinned(ctx, b)
	} else {
		err = m.unpinned(ctx, b)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(b.files, func(x, y manifest.File) int { return cmp.Compare(x.Path, y.Path) })
	return b, nil
}

// newBundle makes an empty bundle of an entry that is the index's own and keeps the rules.
func (m *Marketplace) newBundle(ix *Index, e manifest.Entry) (*Bundle, error) {
	own, err := ix.Lookup(e.ID)
	if err != nil {
		return nil, err
	}
	if reason, revoked := ix.Revoked(own); revoked {
		return nil, &RevokedError{ID: own.ID, Version: own.Version, Reason: reason}
	}
	if !bytes.Equal(own.Raw, e.Raw) {
		return nil, &BrokenError{ID: e.ID, Reason: "the entry asked for is not the one in the index"}
	}
	if err := checkEntry(own); err != nil {
		return nil, err
	}
	return &Bundle{cache: m.cache, index: ix, entry: own}, nil
}

// pinned gets everything side by side, then reads the manifest.
func (m *Marketplace) pinned(ctx context.Context, b *Bundle) (err error) {
	if b.files, err = m.files(ctx, b.entry, b.entry.Files); err != nil {
		return err
	}
	return b.readManifest()
}

// unpinned gets the manifest of a remote connector first: its legacy list names the other files.
func (m *Marketplace) unpinned(ctx context.Context, b *Bundle) (err error) {
	b.unpinned = []string{manifestName}
	if b.files, err = m.files(ctx, b.entry, []manifest.File{{Path: manifestName, Size: -1}}); err != nil {
		return err
	}
	if err = b.readManifest(); err != nil {
		return err
	}
	rest := b.entry.Files
	if len(rest) == 0 {
		rest = slices.DeleteFunc(slices.Clone(b.manifest.LegacyFiles), func(f manifest.File) bool { return f.Path == manifestName })
	}
	if err = checkFiles(b.entry.ID, append(slices.Clone(b.files), rest...)); err != nil {
		return err
	}
	more, err := m.files(ctx, b.entry, rest)
	b.files = append(b.files, more...)
	return err
}

// readManifest parses the checked bytes and holds them against the entry.
func (b *Bundle) readManifest() error {
	r, err := b.Open(manifestName)
	if err != nil {
		return err
	}
	defer r.Close()
	src, err := io.ReadAll(io.LimitReader(r, manifest.MaxManifestBytes+1))
	if err != nil {
		return err
	}
	if len(src) > manifest.MaxManifestBytes {
		return &BrokenError{ID: b.entry.ID, Reason: fmt.Sprintf("its %s is larger than %d bytes", manifestName, manifest.MaxManifestBytes)}
	}
	man, found, err := manifest.ParseManifest(src, manifestName)
	if err != nil {
		return fmt.Errorf("reading the manifest of connector %q: %w", b.entry.ID, err)
	}
	b.manifest, b.found = man, found
	found, err = manifest.Agree(b.entry, man)
	b.found = append(b.found, found...)
	return err
}

// checkEntry holds an entry to the rules again, whoever made it: what follows makes paths and addresses of it.
func checkEntry(e manifest.Entry) error {
	broken := func(reason string) error { return &BrokenError{ID: e.ID, Reason: reason} }
	if err := manifest.ValidID(e.ID); err != nil {
		return broken(err.Error())
	}
	if err := manifest.ValidPath(e.Folder); err != nil || strings.Count(e.Folder, "/") > 2 {
		return broken(fmt.Sprintf("folder %q is not a path of up to three plain segments", e.Folder))
	}
	if _, pinned := e.Pin(manifestName); !pinned && !e.Remote() {
		return broken("the index does not pin its " + manifestName + ", which decides what runs here")
	}
	return checkFiles(e.ID, e.Files)
}

// checkFiles holds a whole list of files to the limits.
func checkFiles(id string, files []manifest.File) error {
	broken := func(format string, args ...any) error {
		return &BrokenError{ID: id, Reason: fmt.Sprintf(format, args...)}
	}
	if len(files) > manifest.MaxFiles {
		return broken("it has %d files, more than %d", len(files), manifest.MaxFiles)
	}
	if err := manifest.ValidPaths(files); err != nil {
		return broken("%v", err)
	}
	total := int64(0)
	for _, f := range files {
		switch {
		case !isDigest(f.SHA256):
			return broken("the pin of %q is not a SHA-256", f.Path)
		case f.Size > manifest.MaxFileBytes:
			return broken("%q has %d bytes, more than %d", f.Path, f.Size, manifest.MaxFileBytes)
		}
		total += max(f.Size, 0)
	}
	if total > manifest.MaxBundleBytes {
		return broken("its files have %d bytes, more than %d", total, manifest.MaxBundleBytes)
	}
	return nil
}
