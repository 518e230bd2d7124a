package fetch

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A tarSource is a bundle file. It stands for the marketplace that it was made from: what is remembered of that one, and
// the keys that are pinned for it, are asked as if its server had answered.
type tarSource struct {
	tar            *tarFile
	location, name string // of the marketplace
}

// newTarSource opens a bundle file.
func newTarSource(o Options, note func(Event)) (*tarSource, error) {
	t, err := openTarFile(o.BundleFile)
	if err != nil {
		return nil, err
	}
	o.Location = t.head.Location
	// The location is somebody else's text: it only names a marketplace, and is never asked.
	origin, err := openSource(o, note)
	if err != nil {
		t.file.Close()
		return nil, &BundleFileError{o.BundleFile, "the marketplace that it names: " + err.Error()}
	}
	s := &tarSource{tar: t}
	s.location, s.name = origin.id()
	return s, nil
}

func (s *tarSource) id() (location, name string) { return s.location, s.name }

func (s *tarSource) local() bool { return true }

func (s *tarSource) index(ctx context.Context, _ validators, take func(io.Reader, int64) error) (now validators, unchanged bool, err error) {
	r, err := s.tar.open(indexName)
	if err != nil {
		return now, false, &BundleFileError{s.tar.path, "it has no index"}
	}
	return now, false, unmark(take(withContext{ctx, r}, r.Size()))
}

// file reads what the marketplace would have at name: what vouches for the index at its top, and the connector's files.
func (s *tarSource) file(ctx context.Context, name string, about Event, take func(io.Reader, int64, string) error) error {
	in := filesPrefix + about.File
	if about.Connector == "" && isTrustMember(name) {
		in = name
	}
	r, err := s.tar.open(in)
	if err != nil && in != name { // cut, not elsewhere: no server has it
		return &BundleFileError{s.tar.path, fmt.Sprintf("it lacks %q of connector %q, which its index names", about.File, about.Connector)}
	}
	if err != nil {
		return bareNotFound(err)
	}
	return unmark(take(withContext{ctx, r}, r.Size(), filepath.Base(s.tar.path)))
}

// Bundled says which connector a bundle file holds; "" when the marketplace is none.
func (m *Marketplace) Bundled() (id string) {
	if t, ok := m.src.(*tarSource); ok {
		return t.tar.head.ID
	}
	return ""
}

// Close gives the bundle file free. Marketplaces of other kinds hold nothing.
func (m *Marketplace) Close() error {
	if t, ok := m.src.(*tarSource); ok {
		return t.tar.file.Close()
	}
	return nil
}

// UnpackPackages writes the downloads of npm and pip that the bundle brings into dir, an empty folder, and tells whether
// there were any. They are held to their digests by npm and pip, like those of a registry.
func (m *Marketplace) UnpackPackages(dir string) (any bool, err error) {
	t, ok := m.src.(*tarSource)
	if !ok {
		return false, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(t.tar.members)) {
		rest, ok := strings.CutPrefix(name, packagesPrefix)
		if !ok {
			continue
		}
		if err := t.unpack(root, name, filepath.FromSlash(rest)); err != nil {
			return true, &BundleFileError{t.tar.path, err.Error()}
		}
		any = true
	}
	return any, nil
}

func (s *tarSource) unpack(root *os.Root, name, to string) error {
	r, err := s.tar.open(name)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// walkRegular visits the regular files below dir, sorted; links and what else there may be are passed over.
func walkRegular(dir string, visit func(name string, size int64) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return visit(p, info.Size())
	})
}
