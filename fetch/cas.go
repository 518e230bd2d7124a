package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"

	"skald-connectors/manifest"
)

// The content-addressed cache holds files of connectors below cache/sha256/ab/<digest>. Nothing in it is believed:
// whoever reads a file hashes it again.

const filesDir = "sha256"

func filePath(digest string) string { return path.Join(filesDir, digest[:2], digest) }

// has tells whether the cache holds a file with this digest and (unless -1) size. One that is damaged is removed.
func (c *cacheDir) has(digest string, size int64) (int64, bool) {
	root, err := c.root(false)
	if err != nil {
		return 0, false
	}
	f, have, err := openRegular(root, filePath(digest))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	if size >= 0 && have != size || have > manifest.MaxFileBytes {
		return 0, false // the digest cannot match; the download replaces it
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err == nil && n == have && hex.EncodeToString(sum.Sum(nil)) == digest {
		return have, true
	}
	root.Remove(filePath(digest))
	return 0, false
}

// keepFile renames a checked temporary file to its place.
func (c *cacheDir) keepFile(t *temp) error {
	digest := t.digest()
	if err := t.root.MkdirAll(path.Dir(filePath(digest)), 0o700); err != nil {
		return final{fmt.Errorf("writing the cache: %w", bare(err))}
	}
	if err := t.keep(filePath(digest)); err != nil {
		if _, ok := c.has(digest, t.n); ok { // another process has it open, where that hinders a rename
			return nil
		}
		return final{err}
	}
	return nil
}

// A checkedFile reads a cached file and hashes it again. In place of io.EOF it gives a *PinError when the bytes are
// not those that were pinned.
type checkedFile struct {
	f         io.ReadCloser
	connector string
	want      manifest.File
	sum       hash.Hash
	n         int64
}

// openFile opens a file of the cache.
func (c *cacheDir) openFile(connector string, want manifest.File) (io.ReadCloser, error) {
	root, err := c.root(false)
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", bare(err))
	}
	f, size, err := openRegular(root, filePath(want.SHA256))
	if err != nil {
		return nil, fmt.Errorf("reading %q of connector %q from the cache: %w", want.Path, connector, bare(err))
	}
	if size != want.Size {
		f.Close()
		return nil, &PinError{connector, want.Path, bytesText(want.Size), bytesText(size)}
	}
	return &checkedFile{f: f, connector: connector, want: want, sum: sha256.New()}, nil
}

func (c *checkedFile) Read(p []byte) (int, error) {
	n, err := c.f.Read(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	if c.n > c.want.Size {
		return 0, &PinError{c.connector, c.want.Path, bytesText(c.want.Size), "more"}
	}
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.want.SHA256 {
			return 0, &PinError{c.connector, c.want.Path, "sha256 " + c.want.SHA256, "sha256 " + got}
		}
	}
	return n, err
}

func (c *checkedFile) Close() error { return c.f.Close() }

func bytesText(n int64) string { return fmt.Sprintf("%d bytes", n) }
