package fetch

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/manifest"
)

// A bundle file is a plain tar, for a machine without a network. This file owns its format, and reads it as what it is:
// something from outside.
//
//	bundle.json          what this is: format, marketplace, connector
//	connectors.json      the index; of a marketplace that is not signed, the connector's entry only
//	connectors.json.minisig, keys.json, keys/N.json, …   what vouches for it
//	files/<path>         the connector's files
//	packages/<path>      downloads of npm and pip, where they were asked for
//
// Every member is a regular file; bundle.json is the first. Nothing is unpacked: members are read where they stand, and
// what they hold is judged like what a web server sends.
const (
	bundleFormat = 1
	bundleName   = "bundle.json"
	filesPrefix  = "files/"
	// PackagesPrefix begins the names of members that npm and pip wrote.
	packagesPrefix = "packages/"

	// bundleHeadLimit bounds bundle.json.
	bundleHeadLimit = 64 << 10
	// packagesLimit bounds the downloads of npm and pip in a bundle; large trees have some hundred megabytes.
	packagesLimit = 2 << 30
	// packageFilesLimit bounds their number; npm keeps two files for each package.
	packageFilesLimit = 100_000
	// tarBlock is the unit of a tar; nothing but zeros follows its end, and no more than a tape's record of them.
	tarBlock, tarTailLimit = 512, 64 << 10
)

// A bundleHead is bundle.json.
type bundleHead struct {
	Format   int       `json:"format"`
	Location string    `json:"location"` // of the marketplace
	ID       string    `json:"id"`
	Version  int64     `json:"version"`
	Made     time.Time `json:"made"`
}

// BundleFileError says that a file is no bundle, or not a whole one. Nothing of it was used.
type BundleFileError struct {
	File, Why string
}

func (e *BundleFileError) Error() string {
	return fmt.Sprintf("reading the bundle %q: %s", path.Base(strings.ReplaceAll(e.File, "\\", "/")), e.Why)
}

// A member is where a member's bytes stand.
type member struct{ at, size int64 }

// A tarFile is an open bundle file.
type tarFile struct {
	file    *os.File
	path    string
	head    bundleHead
	members map[string]member
}

// openTarFile looks through a bundle once and holds every member to the rules. Errors: *BundleFileError.
func openTarFile(name string) (*tarFile, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe would wait for whoever writes, deaf to Ctrl-C
		return nil, &BundleFileError{name, "it is not a regular file"}
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	t := &tarFile{file: f, path: name, members: map[string]member{}}
	if err := t.scan(); err != nil {
		f.Close()
		return nil, &BundleFileError{name, err.Error()}
	}
	return t, nil
}

// counting tells how far a reader is.
type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (t *tarFile) scan() error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	in := &counting{r: t.file}
	r := tar.NewReader(in)
	var sums tarSums
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is not a whole tar file: %w", err)
		}
		if err := sums.allow(h, t.members); err != nil {
			return err
		}
		if in.n+h.Size > info.Size() {
			return errors.New("it is cut off")
		}
		t.members[h.Name] = member{in.n, h.Size}
		if len(t.members) == 1 {
			if err := t.readHead(h.Name); err != nil {
				return err
			}
		}
	}
	if len(t.members) == 0 {
		return errors.New("it is empty")
	}
	if _, ok := t.members[indexName]; !ok {
		return errors.New("it has no index")
	}
	if info.Size()-in.n > tarTailLimit {
		return errors.New("something follows its end")
	}
	rest, err := io.ReadAll(io.LimitReader(t.file, tarTailLimit))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
		return errors.New("something follows its end")
	}
	if info.Size()%tarBlock != 0 {
		return errors.New("it is cut off")
	}
	return nil
}

// tarSums adds up what a bundle holds.
type tarSums struct{ files, packages, fileBytes, packageBytes int64 }

// isTrustMember tells the names of what vouches for an index.
func isTrustMember(name string) bool {
	name = strings.TrimSuffix(name, ".minisig")
	if name == indexName || name == keysName {
		return true
	}
	n, ok := strings.CutPrefix(name, "keys/")
	n, json := strings.CutSuffix(n, ".json")
	return ok && json && regexp.MustCompile(`^[1-9][0-9]{0,15}$`).MatchString(n)
}

// allow holds one member to the rules.
func (s *tarSums) allow(h *tar.Header, seen map[string]member) error {
	_, twice := seen[h.Name]
	limit := int64(trust.MaxKeysBytes)
	rest, isFile := strings.CutPrefix(h.Name, filesPrefix)
	pack, isPackage := strings.CutPrefix(h.Name, packagesPrefix)
	switch {
	case len(h.Name) > 1024:
		return errors.New("it has a member with a name of more than 1024 bytes")
	case h.Typeflag != tar.TypeReg || h.Linkname != "" || sparse(h):
		return fmt.Errorf("its member %q is not a regular file", h.Name)
	case twice:
		return fmt.Errorf("it has the member %q twice", h.Name)
	case len(seen) == 0 && h.Name != bundleName:
		return fmt.Errorf("it begins with %q and not with %s", h.Name, bundleName)
	case h.Name == indexName:
		limit = manifest.MaxIndexBytes
	case h.Name == bundleName || isTrustMember(h.Name):
	case isFile:
		if err := manifest.ValidPath(rest); err != nil {
			return fmt.Errorf("its member %q: %w", h.Name, err)
		}
		limit = manifest.MaxFileBytes
		s.files++
		s.fileBytes += h.Size
	case isPackage:
		if !safePackagePath(pack) {
			return fmt.Errorf("its member %q is not a plain path", h.Name)
		}
		limit = packagesLimit
		s.packages++
		s.packageBytes += h.Size
	default:
		return fmt.Errorf("its member %q has no place in a bundle", h.Name)
	}
	switch {
	case h.Size < 0 || h.Size > limit:
		return fmt.Errorf("its member %q has %d bytes, more than %d", h.Name, h.Size, limit)
	case s.files > manifest.MaxFiles || s.fileBytes > manifest.MaxBundleBytes:
		return errors.New("it has more files, or larger ones, than a connector may have")
	case s.packages > packageFilesLimit || s.packageBytes > packagesLimit:
		return errors.New("its packages are too many, or too large")
	case len(seen) > manifest.MaxFiles+packageFilesLimit+4*trust.MaxRotations:
		return errors.New("it has too many members")
	}
	return nil
}

// sparse tells a member whose bytes are not all in the file.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse") {
			return true
		}
	}
	return false
}

// safePackagePath tells paths that stay where they are put, on every system. What npm and pip write has no others.
func safePackagePath(p string) bool {
	if p == "" || len(p) > 512 || path.Clean(p) != p || strings.HasPrefix(p, "/") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if !regexp.MustCompile(`^[A-Za-z0-9_@+=~-][A-Za-z0-9._@+=~!-]*$`).MatchString(part) || strings.HasSuffix(part, ".") {
			return false
		}
	}
	return true
}

func (t *tarFile) readHead(name string) error {
	src, err := t.read(name, bundleHeadLimit)
	if err != nil {
		return err
	}
	if json.Unmarshal(src, &t.head) != nil {
		return fmt.Errorf("its %s cannot be read", bundleName)
	}
	switch {
	case t.head.Format > bundleFormat:
		return fmt.Errorf("it has format %d and this program knows %d: it was written by a newer version", t.head.Format, bundleFormat)
	case t.head.Format != bundleFormat || t.head.Location == "" || manifest.ValidID(t.head.ID) != nil:
		return fmt.Errorf("its %s does not say what it is", bundleName)
	}
	return nil
}

// open gives a member; an fs.ErrNotExist when there is none.
func (t *tarFile) open(name string) (*io.SectionReader, error) {
	m, ok := t.members[name]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return io.NewSectionReader(t.file, m.at, m.size), nil
}

func (t *tarFile) read(name string, limit int64) ([]byte, error) {
	r, err := t.open(name)
	if err != nil {
		return nil, err
	}
	if r.Size() > limit {
		return nil, fmt.Errorf("its %s has more than %d bytes", name, limit)
	}
	return io.ReadAll(io.LimitReader(r, limit))
}
