package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"skald-connectors/manifest"
)

// A transfer gets the files of one connector, side by side.
type transfer struct {
	m      *Marketplace
	entry  manifest.Entry
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	state Event
	err   error // the first real one
}

// files gets the files below the entry's folder into the cache and returns them with true digests and sizes. Files
// with an empty SHA256 are unpinned. The first error ends all transfers; every one of them is over on return.
func (m *Marketplace) files(ctx context.Context, e manifest.Entry, list []manifest.File) ([]manifest.File, error) {
	t := &transfer{m: m, entry: e, state: Event{Connector: e.ID, TotalFiles: len(list)}}
	for _, f := range list {
		t.state.TotalBytes += max(f.Size, 0)
	}
	if len(list) == 1 { // waits for nothing when it is in the cache
		f, err := t.one(ctx, list[0])
		return []manifest.File{f}, err
	}
	ctx, t.cancel = context.WithCancelCause(ctx)
	defer t.cancel(nil)
	got := make([]manifest.File, len(list))
	jobs := make(chan int, len(list))
	for i := range list {
		jobs <- i
	}
	close(jobs)
	var wg sync.WaitGroup
	for range min(parallelFiles, len(list)) {
		wg.Go(func() {
			for i := range jobs {
				if ctx.Err() != nil {
					return
				}
				var err error
				if got[i], err = t.one(ctx, list[i]); err != nil {
					t.fail(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.err == nil && ctx.Err() != nil {
		t.err = context.Cause(ctx)
	}
	return got, t.err
}

func (t *transfer) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
		t.cancel(err)
	}
}

// one gets one file.
func (t *transfer) one(ctx context.Context, f manifest.File) (manifest.File, error) {
	if f.SHA256 != "" {
		if n, ok := t.m.cache.has(f.SHA256, f.Size); ok {
			return t.done(f, f.SHA256, n, n, true)
		}
	}
	select {
	case t.m.slots <- struct{}{}:
		defer func() { <-t.m.slots }()
	case <-ctx.Done():
		return f, context.Cause(ctx)
	}
	job := t.m.cache.newJob(f.SHA256)
	defer job.end()
	var digest string
	var n int64
	about := Event{Connector: t.entry.ID, File: f.Path}
	err := t.m.src.file(ctx, t.entry.Folder+"/"+f.Path, about, func(r io.Reader, size int64, _ string) (err error) {
		t.add(f.Path, -n) // an earlier try that broke off
		n = 0
		digest, err = t.receive(f, job, r, size, &n)
		return err
	})
	var pin *PinError
	switch {
	case errors.As(err, &pin):
		t.add(f.Path, -n)
		return f, pin
	case err != nil:
		t.add(f.Path, -n)
		return f, fmt.Errorf("getting %q of connector %q: %w", f.Path, t.entry.ID, err)
	}
	return t.done(f, digest, n, 0, false)
}

// receive takes one file in, counting into n. All its errors but those of r are final.
func (t *transfer) receive(f manifest.File, job *job, r io.Reader, size int64, n *int64) (digest string, err error) {
	limit := int64(manifest.MaxFileBytes)
	if f.Size >= 0 {
		limit = f.Size
	}
	if f.SHA256 == "" {
		limit = manifest.MaxManifestBytes
	}
	if size >= 0 && (f.Size >= 0 && size != f.Size || size > limit) {
		io.CopyN(io.Discard, r, pageHead) // a web page is told from a wrong file by its first bytes
		return "", final{t.mismatch(f, bytesText(size), limit)}
	}
	tmp, err := job.file()
	if err != nil {
		return "", err
	}
	_, tooMuch, err := copyLimited(tmp, counted{r, t, f.Path, n}, limit)
	switch {
	case err != nil:
		return "", err
	case tooMuch:
		return "", final{t.mismatch(f, "more", limit)}
	case f.Size >= 0 && tmp.n != f.Size:
		return "", final{t.mismatch(f, bytesText(tmp.n), limit)}
	}
	digest = tmp.digest()
	if f.SHA256 != "" && digest != f.SHA256 {
		return "", final{&PinError{t.entry.ID, f.Path, "sha256 " + f.SHA256, "sha256 " + digest}}
	}
	return digest, job.keep()
}

// mismatch names a wrong size.
func (t *transfer) mismatch(f manifest.File, got string, limit int64) *PinError {
	want := bytesText(f.Size)
	if f.Size < 0 {
		want = "at most " + bytesText(limit)
	}
	return &PinError{t.entry.ID, f.Path, want, got}
}

// counted tells the progress of a transfer.
type counted struct {
	io.Reader
	t    *transfer
	path string
	n    *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	c.t.add(c.path, int64(n))
	return n, err
}

func (t *transfer) add(path string, n int64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	t.state.Bytes += n
	e := t.state
	t.mu.Unlock()
	e.File = path
	t.m.note(e)
}

// done counts a file that is complete. more are bytes that add has not seen.
func (t *transfer) done(f manifest.File, digest string, size, more int64, cached bool) (manifest.File, error) {
	t.mu.Lock()
	t.state.Files++
	t.state.Bytes += more
	if f.Size < 0 {
		t.state.TotalBytes += size
	}
	e := t.state
	t.mu.Unlock()
	if e.TotalBytes > manifest.MaxBundleBytes {
		return f, &BrokenError{ID: t.entry.ID, Reason: fmt.Sprintf("its files have more than %d bytes", manifest.MaxBundleBytes)}
	}
	e.File, e.FromCache = f.Path, cached
	t.m.note(e)
	return manifest.File{Path: f.Path, SHA256: digest, Size: size}, nil
}
