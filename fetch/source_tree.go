package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// A treeSource is a tree of files: a local folder behind a root handle, or the built-in one.
type treeSource struct {
	where string
	dir   string // of a folder
	fsys  fs.FS  // of the built-in tree; nil for a folder until it is opened
	once  sync.Once
	root  *os.Root
	err   error
	now   func() time.Time
}

func newDirSource(dir string, now func() time.Time) (*treeSource, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &treeSource{where: abs, dir: abs, now: now}, nil
}

func (s *treeSource) id() (location, name string) {
	if s.dir == "" {
		return s.where, s.where
	}
	return s.where, "folder-" + shortHash(s.where)
}

func (s *treeSource) local() bool { return true }

// open gives a regular file of the tree.
func (s *treeSource) open(name string) (fs.File, fs.FileInfo, error) {
	if s.dir == "" {
		return openIn(s.fsys, name)
	}
	s.once.Do(func() { s.root, s.err = os.OpenRoot(s.dir) })
	if s.err != nil {
		return nil, nil, s.err
	}
	f, _, err := openRegular(s.root, filepath.FromSlash(name))
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func openIn(fsys fs.FS, name string) (fs.File, fs.FileInfo, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// racy is how long a file must have been left alone before its time of change says that it is unchanged.
const racy = 2 * time.Second

func (s *treeSource) index(ctx context.Context, known validators, take func(io.Reader, int64) error) (now validators, unchanged bool, err error) {
	f, info, err := s.open(indexName)
	if err != nil {
		return now, false, fmt.Errorf("reading the index of %q: %w", s.where, bareNotFound(err))
	}
	defer f.Close()
	if s.dir != "" && s.now().Sub(info.ModTime()) > racy {
		now.ETag = fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
		if now == known {
			return now, true, nil
		}
	}
	if err := take(withContext{ctx, f}, info.Size()); err != nil {
		return now, false, unmark(err)
	}
	return now, false, nil
}

func (s *treeSource) file(ctx context.Context, name string, _ Event, take func(io.Reader, int64, string) error) error {
	f, info, err := s.open(name)
	if err != nil {
		return bareNotFound(err)
	}
	defer f.Close()
	return unmark(take(withContext{ctx, f}, info.Size(), s.where))
}

// unmark takes the mark off an error that no retry will see.
func unmark(err error) error {
	var f final
	if errors.As(err, &f) {
		return f.error
	}
	return err
}

func bareNotFound(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path.Clean(filepath.ToSlash(pe.Path)), pe.Err)
	}
	return err
}

// withContext makes reading a slow local disk interruptible between two reads.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (w withContext) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.r.Read(p)
}
