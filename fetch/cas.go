package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"

	"skald-connectors/manifest"
)

// The content-addressed cache holds files of connectors below cache/sha256/ab/<digest>. Nothing in it is believed:
// whoever reads a file hashes it again.

const filesDir = "sha256"

func filePath(digest string) string { return path.Join(filesDir, digest[:2], digest) }

// shard opens the folder of the files whose digests begin alike. The caller closes it.
func (c *cacheDir) shard(digest string, create bool) (*os.Root, error) {
	files, err := c.sub(filesDir, create)
	if err != nil {
		return nil, err
	}
	return openDir(files, digest[:2], create)
}

// has tells whether the cache holds a file with this digest and (unless -1) size, and its size. One that is damaged is
// removed.
func (c *cacheDir) has(digest string, size int64) (int64, bool) {
	root, err := c.shard(digest, false)
	if err != nil {
		return 0, false
	}
	defer root.Close()
	return hasFile(root, digest, size)
}

func hasFile(root *os.Root, digest string, size int64) (int64, bool) {
	f, have, err := openRegular(root, digest)
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
	root.Remove(digest)
	return 0, false
}

// A job is a file of the cache that is being downloaded. Its temporary file is made while the request is on its way:
// making files costs more than filling them.
type job struct {
	digest string // empty for an unpinned file
	made   chan struct{}
	root   *os.Root // the shard; for an unpinned file the folder of the shards
	tmp    *temp
	err    error
}

func (c *cacheDir) newJob(digest string) *job {
	j := &job{digest: digest, made: make(chan struct{})}
	go func() {
		defer close(j.made)
		if digest == "" {
			j.root, j.err = c.sub(filesDir, true)
		} else {
			j.root, j.err = c.shard(digest, true)
		}
		if j.err == nil {
			j.tmp, j.err = newTemp(j.root)
			sweep(j.root, c.now(), func(fs.DirEntry) bool { return false }) // what a killed process left here
		}
	}()
	return j
}

// file gives the temporary file, empty again when an earlier try had filled it.
func (j *job) file() (*temp, error) {
	<-j.made
	if j.err == nil && j.tmp.n > 0 {
		j.err = j.tmp.reset()
	}
	if j.err != nil {
		return nil, final{fmt.Errorf("writing the cache: %w", bare(j.err))}
	}
	return j.tmp, nil
}

// keep renames the file, which has been checked, to its place.
func (j *job) keep() error {
	name := j.tmp.digest()
	if j.digest == "" {
		shard, err := openDir(j.root, name[:2], true)
		if err != nil {
			return final{fmt.Errorf("writing the cache: %w", bare(err))}
		}
		shard.Close()
		name = name[:2] + "/" + name
	}
	if err := j.tmp.keep(name); err != nil {
		if _, ok := hasFile(j.root, name, j.tmp.n); ok { // another process has it open, where that hinders a rename
			return nil
		}
		return final{err}
	}
	return nil
}

// end removes what was not kept.
func (j *job) end() {
	<-j.made
	if j.tmp != nil {
		j.tmp.drop()
	}
	if j.digest != "" && j.root != nil {
		j.root.Close()
	}
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
	root, err := c.shard(want.SHA256, false)
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", bare(err))
	}
	defer root.Close()
	f, size, err := openRegular(root, want.SHA256)
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
