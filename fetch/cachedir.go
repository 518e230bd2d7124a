package fetch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"skald-connectors/internal/atomicfile"
)

const (
	tempPrefix = ".tmp-"
	// tempAge is when a temporary file counts as left behind: no transfer keeps above the rate floor for longer.
	tempAge = 48 * time.Hour
	// copyBuffer is the size of the pieces in which bytes travel.
	copyBuffer = 32 << 10
)

// A cacheDir is the cache folder behind root handles, opened and made when they are first needed.
type cacheDir struct {
	path string
	now  func() time.Time
	mu   sync.Mutex
	subs map[string]*os.Root
}

// sub opens one of the folders directly below the cache folder; the handle stays open. With create it is made, private
// to this user; else a missing one is an fs.ErrNotExist.
func (c *cacheDir) sub(name string, create bool) (*os.Root, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.subs[name]; r != nil {
		return r, nil
	}
	if create {
		if err := atomicfile.PrivateDir(c.path); err != nil {
			return nil, err
		}
	}
	top, err := os.OpenRoot(c.path)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	r, err := openDir(top, name, create)
	if err != nil {
		return nil, err
	}
	if c.subs == nil {
		c.subs = map[string]*os.Root{}
	}
	c.subs[name] = r
	return r, nil
}

// openDir opens a folder of root, made if wanted.
func openDir(root *os.Root, name string, create bool) (*os.Root, error) {
	r, err := root.OpenRoot(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		r, err = root.OpenRoot(name)
	}
	return r, err
}

// A temp is a file beside its target that is being written and hashed. It ends with keep or drop.
type temp struct {
	root *os.Root // of its folder
	name string
	f    *os.File
	sum  hash.Hash
	n    int64
}

// newTemp makes a temporary file in a folder.
func newTemp(root *os.Root) (*temp, error) {
	name := tempPrefix + rand.Text()
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &temp{root: root, name: name, f: f, sum: sha256.New()}, nil
}

// Write implements io.Writer. Its errors are final: a full disk does not mend itself by downloading again.
func (t *temp) Write(p []byte) (int, error) {
	n, err := t.f.Write(p)
	t.sum.Write(p[:n])
	t.n += int64(n)
	if err != nil {
		return n, final{bare(err)}
	}
	return n, nil
}

// bare takes the temporary file's name, which means nothing to anybody, out of an error.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// reset empties the file for another try.
func (t *temp) reset() error {
	t.sum.Reset()
	t.n = 0
	err := t.f.Truncate(0)
	if err == nil {
		_, err = t.f.Seek(0, io.SeekStart)
	}
	return err
}

func (t *temp) digest() string { return hex.EncodeToString(t.sum.Sum(nil)) }

// keep renames the file to its place. Nothing is flushed to the disk first: whoever reads it checks its digest, so a
// file that a power cut emptied is fetched again.
func (t *temp) keep(name string) error {
	err := t.f.Close()
	if err == nil {
		err = t.root.Rename(t.name, name)
	}
	if err != nil {
		t.root.Remove(t.name)
		return fmt.Errorf("writing cache file %q: %w", name, err)
	}
	return nil
}

// drop removes the file. It does nothing after keep.
func (t *temp) drop() {
	if t.f.Close() == nil {
		t.root.Remove(t.name)
	}
}

// putFile writes a small file whole.
func putFile(root *os.Root, name string, data []byte) error {
	return putWith(root, name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// putWith writes a file whole, as write gives it.
func putWith(root *os.Root, name string, write func(io.Writer) error) error {
	t, err := newTemp(root)
	if err != nil {
		return fmt.Errorf("writing cache file %q: %w", name, err)
	}
	defer t.drop()
	if err := write(t); err != nil {
		return fmt.Errorf("writing cache file %q: %w", name, err)
	}
	return t.keep(name)
}

// sweep removes files of a folder for which dead says so, and temporary files that were left behind.
func sweep(root *os.Root, now time.Time, dead func(fs.DirEntry) bool) {
	d, err := root.Open(".")
	if err != nil {
		return
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if dead(e) || strings.HasPrefix(e.Name(), tempPrefix) && isOlder(e, now, tempAge) {
				root.Remove(e.Name())
			}
		}
		if err != nil || len(entries) == 0 {
			return
		}
	}
}

func isOlder(e fs.DirEntry, now time.Time, age time.Duration) bool {
	info, err := e.Info()
	return err == nil && now.Sub(info.ModTime()) > age
}

// openRegular opens a file for reading and refuses everything that is not a regular file, links included.
func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return f, info.Size(), nil
}

// copyLimited copies at most limit bytes and reports one more as tooMuch. Errors of w are returned as they are.
func copyLimited(w io.Writer, r io.Reader, limit int64) (n int64, tooMuch bool, err error) {
	n, err = io.CopyBuffer(onlyWriter{w}, io.LimitReader(r, limit+1), make([]byte, min(copyBuffer, limit+1)))
	return n, n > limit, err
}

// onlyWriter hides ReadFrom, which would go around the hash.
type onlyWriter struct{ io.Writer }
