package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"skald-connectors/manifest"
)

// copyBytes is the buffer of one hashing worker: a shipped file of the usual size is read in one call.
const copyBytes = 64 << 10

// sourceFiles are never shipped: they are what the index is compiled from, or belong to the author's tools.
var sourceFiles = map[string]bool{fragmentName: true, indexName: true, listName: true,
	"compile.sh": true, "compile.py": true, "update_hashes.py": true, ".DS_Store": true}

// sourceDirs are never shipped, wherever they stand.
var sourceDirs = map[string]bool{"scripts": true, "__pycache__": true, ".git": true}

// madeDirs are made where a connector runs. The author's own copies are left out, at the top of the folder only.
var madeDirs = map[string]bool{"node_modules": true, ".pydeps": true, "auth": true}

// file is one shipped file.
type file struct {
	pin  manifest.File
	data []byte // kept for connector.json: what is judged is what is pinned
	err  error
}

// scanAndHash fills the files of each connector. Files are hashed in parallel while folders are still being scanned.
func (b *build) scanAndHash(ctx context.Context) error {
	jobs := b.o.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	work := make(chan job, 4*jobs)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() { hashAll(ctx, work) })
	}
	var roots []*os.Root
	for _, c := range b.connectors {
		if !c.found || ctx.Err() != nil {
			continue
		}
		if root := b.scan(ctx, c, work); root != nil {
			roots = append(roots, root)
		}
	}
	close(work)
	workers.Wait()
	for _, r := range roots {
		r.Close()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, c := range b.connectors {
		if err := c.settle(); err != nil {
			return err
		}
	}
	return nil
}

// scan lists the connector's folder and sends its files to be hashed.
func (b *build) scan(ctx context.Context, c *connector, work chan<- job) *os.Root {
	root, err := b.openFolder(c.folder)
	if err != nil {
		c.add(manifest.Error, "", "folder-unreadable", "%v", plain(err))
		return nil
	}
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if p == "." {
			return nil
		}
		ship, err := c.judge(p, d)
		if err == nil && ship {
			f := &file{pin: manifest.File{Path: p}}
			c.files = append(c.files, f)
			if len(c.files) > manifest.MaxFiles {
				c.add(manifest.Error, "", "files-too-many", "more than %d files", manifest.MaxFiles)
				return fs.SkipAll
			}
			work <- job{root, f}
		}
		return err
	})
	if err != nil {
		c.add(manifest.Error, "", "folder-unreadable", "%v", err)
	}
	return root
}

// openFolder opens a folder below the root; no segment of it may be a link.
func (b *build) openFolder(folder string) (*os.Root, error) {
	for dir := folder; dir != "."; dir = path.Dir(dir) {
		switch fi, err := b.root.Lstat(dir); {
		case err != nil:
			return nil, err
		case !fi.IsDir():
			return nil, errors.New("not a folder")
		}
	}
	return b.root.OpenRoot(folder)
}

// judge decides what happens to one thing in a folder: shipped, left out, or refused with a finding.
func (c *connector) judge(p string, d fs.DirEntry) (ship bool, err error) {
	name, top := d.Name(), path.Base(p) == p
	switch {
	case d.IsDir() && top && madeDirs[name]:
		c.add(manifest.Warning, p, "left-out", "this folder is made where the connector runs; it is not shipped")
		return false, fs.SkipDir
	case d.IsDir() && sourceDirs[name]:
		if name == "scripts" {
			c.add(manifest.Info, p, "left-out", "folders of this name are not shipped")
		}
		return false, fs.SkipDir
	case d.IsDir():
		return false, nil
	case sourceFiles[name] && d.Type().IsRegular():
		if !top {
			c.add(manifest.Info, p, "left-out", "files of this name are not shipped")
		}
		return false, nil
	case !d.Type().IsRegular():
		c.add(manifest.Error, p, "not-a-regular-file", "%s; only regular files can be shipped", kind(d.Type()))
		return false, nil
	}
	if err := manifest.ValidPath(p); err != nil {
		c.add(manifest.Error, p, "file-path", "%v", err)
		return false, nil
	}
	return true, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// settle turns what the workers found into findings, and holds the set of files against its limits.
func (c *connector) settle() error {
	var total int64
	pins := make([]manifest.File, 0, len(c.files))
	good := c.files[:0]
	for _, f := range c.files {
		switch {
		case f.err == nil:
			total += f.pin.Size
			pins, good = append(pins, f.pin), append(good, f)
		case errors.As(f.err, new(*tooLargeError)):
			c.add(manifest.Error, f.pin.Path, "file-size", "%v", f.err)
		case aboutTree(f.err) || errors.Is(f.err, fs.ErrPermission):
			c.add(manifest.Error, f.pin.Path, "file-unreadable", "%v", plain(f.err))
		default:
			return fmt.Errorf("reading %q: %w", path.Join(c.folder, f.pin.Path), f.err)
		}
	}
	c.files = good
	slices.SortFunc(c.files, func(a, b *file) int { return strings.Compare(a.pin.Path, b.pin.Path) })
	if total > manifest.MaxBundleBytes {
		c.add(manifest.Error, "", "connector-too-large", "its files have %d bytes together, more than %d", total, int64(manifest.MaxBundleBytes))
	}
	if err := manifest.ValidPaths(pins); err != nil {
		c.add(manifest.Error, "", "files-conflict", "%v", err)
	}
	return nil
}

// job is one file to hash below its connector's folder.
type job struct {
	root *os.Root
	file *file
}

// hashAll is one worker.
func hashAll(ctx context.Context, work <-chan job) {
	h, buf := sha256.New(), make([]byte, copyBytes)
	for j := range work {
		if ctx.Err() == nil {
			j.file.err = j.hash(h, buf)
		}
	}
}

// hash reads the file once and fills its pin.
func (j job) hash(h hash.Hash, buf []byte) error {
	if j.file.pin.Path == manifestName {
		return j.keep(h)
	}
	f, err := j.root.Open(j.file.pin.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Reset()
	size, err := pump(h, f, buf, manifest.MaxFileBytes)
	if err != nil {
		return err
	}
	j.file.pin.Size, j.file.pin.SHA256 = size, hex.EncodeToString(h.Sum(nil))
	return nil
}

// pump copies up to limit bytes through buf; io.Copy would make a buffer for each file.
func pump(w io.Writer, r io.Reader, buf []byte, limit int64) (size int64, err error) {
	for {
		n, err := r.Read(buf)
		if size += int64(n); size > limit {
			return size, &tooLargeError{limit}
		}
		w.Write(buf[:n]) // a hash never fails
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// keep hashes connector.json and keeps its bytes.
func (j job) keep(h hash.Hash) error {
	data, err := readFile(j.root, j.file.pin.Path, manifest.MaxManifestBytes)
	if err != nil {
		return err
	}
	h.Reset()
	h.Write(data)
	j.file.data = data
	j.file.pin.Size, j.file.pin.SHA256 = int64(len(data)), hex.EncodeToString(h.Sum(nil))
	return nil
}
