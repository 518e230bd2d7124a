package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// syncers is how many files are synced side by side; a journal then commits many of
// them at once.
const syncers = 8

// opener gives the bytes of a shipped file.
type opener func(p string) (io.ReadCloser, error)

// copyFiles writes the shipped files into an empty folder, each one hashed against
// its pin while it is copied, and makes them durable with mode perm. step is told
// "<what>-file <path>" before each one.
func copyFiles(ctx context.Context, dst *os.Root, files []manifest.File, from opener, perm fs.FileMode, what string, step func(string)) error {
	s := newSyncer()
	defer s.wait()
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		step(what + "-file " + f.Path)
		if err := makeParents(dst, f.Path); err != nil {
			return err
		}
		out, err := dst.OpenFile(filepath.FromSlash(f.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePrivate)
		if err == nil {
			err = fill(out, f, from, perm)
		}
		if err != nil {
			return fmt.Errorf("writing %q: %w", f.Path, atomicfile.Cause(err))
		}
		s.sync(out)
	}
	step(what + "-sync")
	if err := s.wait(); err != nil {
		return fmt.Errorf("writing the files: %w", atomicfile.Cause(err))
	}
	return nil
}

// fill copies one file into out; it closes out only on an error.
func fill(out *os.File, f manifest.File, from opener, perm fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	in, err := from(f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(in, manifest.MaxFileBytes+1))
	if err != nil {
		return err
	}
	if why := differs(f, n, h.Sum(nil)); why != "" {
		return errors.New(why)
	}
	return out.Chmod(perm)
}

// differs compares what was read with the pin, and says what is wrong or "".
func differs(f manifest.File, size int64, sum []byte) string {
	if f.Size >= 0 && size != f.Size {
		return fmt.Sprintf("it has %d bytes, not %d", size, f.Size)
	}
	if size > manifest.MaxFileBytes {
		return fmt.Sprintf("it is larger than %d bytes", manifest.MaxFileBytes)
	}
	if hex.EncodeToString(sum) != f.SHA256 {
		return "its content differs"
	}
	return ""
}

// A syncer syncs and closes files in the background.
type syncer struct {
	queue chan *os.File
	done  sync.WaitGroup
	close func()
	mu    sync.Mutex
	err   error
}

func newSyncer() *syncer {
	s := &syncer{queue: make(chan *os.File, syncers)}
	s.close = sync.OnceFunc(func() { close(s.queue) })
	for range syncers {
		s.done.Go(func() {
			for f := range s.queue {
				err := errors.Join(f.Sync(), f.Close())
				s.mu.Lock()
				s.err = errors.Join(s.err, err)
				s.mu.Unlock()
			}
		})
	}
	return s
}

func (s *syncer) sync(f *os.File) { s.queue <- f }

// wait ends the syncer and gives its first errors. It may be called twice.
func (s *syncer) wait() error {
	s.close()
	s.done.Wait()
	return s.err
}

// fromRoot opens the files of a folder on disk.
func fromRoot(root *os.Root) opener {
	return func(p string) (io.ReadCloser, error) { return openRegular(root, p) }
}

// openRegular opens a file that must be a regular file itself.
func openRegular(root *os.Root, p string) (*os.File, error) {
	p = filepath.FromSlash(p)
	seen, err := root.Lstat(p)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := root.Open(p)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(seen, now) {
		f.Close()
		return nil, errors.New("it was exchanged while it was opened")
	}
	return f, nil
}

// checkFile hashes one file and says why it is not the pinned one, or "". state is
// what the file system said of it before and after, the zero state where it did
// not say the same. err is set when nothing could be found out.
func checkFile(root *os.Root, f manifest.File) (why string, state fileState, err error) {
	in, err := openRegular(root, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is missing", state, nil
	case errors.Is(err, fs.ErrPermission):
		return "", state, atomicfile.Cause(err)
	case err != nil:
		return atomicfile.Cause(err).Error(), state, nil
	}
	defer in.Close()
	before := stateOfOpen(in)
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(in, manifest.MaxFileBytes+1))
	if err != nil {
		return "", state, atomicfile.Cause(err)
	}
	if stateOfOpen(in) == before {
		state = before
	}
	return differs(f, n, h.Sum(nil)), state, nil
}

// hashed is the check of one file that reads it.
func hashed(root *os.Root) func(manifest.File) (string, error) {
	return func(f manifest.File) (string, error) {
		why, _, err := checkFile(root, f)
		return why, err
	}
}

// checkFiles looks at each shipped file.
func checkFiles(ref Ref, files []manifest.File, look func(manifest.File) (why string, err error)) error {
	for _, f := range files {
		why, err := look(f)
		if err != nil {
			return fmt.Errorf("checking %q %s: reading %q: %w", ref.Connector, ref.Dir(), f.Path, err)
		}
		if why != "" {
			return &ChangedError{Ref: ref, File: f.Path, Why: why}
		}
	}
	return nil
}

// checkVersion checks a version folder: the shipped files, and nothing beside them.
// An interpreter would load a file that somebody added.
func checkVersion(root *os.Root, ref Ref, files []manifest.File, look func(manifest.File) (why string, err error)) error {
	folder := map[string]bool{".": true} // every path that belongs here; false = a file
	for _, f := range files {
		folder[f.Path] = false
		for d := path.Dir(f.Path); d != "."; d = path.Dir(d) {
			folder[d] = true
		}
	}
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch want, known := folder[p]; {
		case !known:
			return &ChangedError{Ref: ref, File: p, Why: "it was added"}
		case want && !d.IsDir():
			return &ChangedError{Ref: ref, File: p, Why: "it is not a folder"}
		}
		return nil
	})
	var changed *ChangedError
	if errors.As(err, &changed) {
		return err
	}
	if err != nil {
		return fmt.Errorf("checking %q %s: %w", ref.Connector, ref.Dir(), err)
	}
	return checkFiles(ref, files, look)
}

// Check hashes every file of a committed version folder against its pin, and looks
// for files that were added. files are those of the record; they must give ref.
// Errors: *ChangedError, also when the folder is missing.
func (s *Store) Check(ref Ref, files []manifest.File) error {
	root, err := s.checked(ref, files, connectorsDir, ref.Connector)
	if err != nil {
		return err
	}
	defer root.Close()
	return checkVersion(root, ref, files, hashed(root))
}

// CheckWork hashes the shipped files of a work folder against their pins: these
// copies are what runs, and the connector can write to them. Other files there are
// the connector's own and are not looked at. Errors: as Check.
func (s *Store) CheckWork(name string, ref Ref, files []manifest.File) error {
	if err := manifest.ValidID(name); err != nil {
		return fmt.Errorf("checking %q: %w", name, err)
	}
	root, err := s.checked(ref, files, workDir, name)
	if err != nil {
		return err
	}
	defer root.Close()
	return checkFiles(ref, files, hashed(root))
}

// checked opens the folder of ref below top/below after a look at its arguments.
func (s *Store) checked(ref Ref, files []manifest.File, top, below string) (*os.Root, error) {
	if err := ref.valid(); err != nil {
		return nil, fmt.Errorf("checking %q: %w", ref.Connector, err)
	}
	if newRef(ref.Connector, ref.Version, files) != ref {
		return nil, &ChangedError{Ref: ref, Why: "the list of its files is another one"}
	}
	root, err := s.find(top, below, ref.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ChangedError{Ref: ref, Why: "it is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("checking %q %s: %w", ref.Connector, ref.Dir(), err)
	}
	return root, nil
}
