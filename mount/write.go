package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skald-connectors/internal/atomicfile"
)

// fileLimit bounds a client's file. The largest that are known, with the history of
// all projects in them, have a few MiB.
const fileLimit = 32 << 20

// maxLinks bounds a chain of symbolic links; it is the bound of Linux for a path.
const maxLinks = 40

const (
	// writeTries bounds how often a file that others keep changing is read again:
	// some seconds against a writer that leaves us a few milliseconds each time.
	writeTries = 300
	// retryPause bounds the wait before that. It ends early when the file has just been
	// written: then the time until its writer comes again is the longest.
	retryPause = 16 * time.Millisecond
	// retryLook is how often the file is looked at meanwhile.
	retryLook = 500 * time.Microsecond
	// settlePause is the wait before a file that is broken or empty is looked at again:
	// its writer may be in the middle.
	settlePause = 50 * time.Millisecond
	// unsettledFor times of it after its last writing it is looked at again.
	unsettledFor = 40
	// settleFor times of it we wait for another writer's next write before a file that
	// it writes too is checked once more: what it had read before ours, it may write after it.
	settleFor = 5
	// busyWithin tells a file that others write: it had been written that shortly
	// before us.
	busyWithin = 2 * time.Second
)

// resolve follows the links that stand for the file. They may lead anywhere below
// the home folder and the folder of the file.
func (m *Mounter) resolve(t *target, roots ...string) error {
	real, linked, err := follow(t.file)
	if err != nil {
		return refuseFor(Unreadable, t.file, err)
	}
	t.real = real
	if !linked {
		return nil
	}
	for _, root := range append(roots, m.base("~"), filepath.Dir(t.file)) {
		if base, err := filepath.EvalSymlinks(root); err == nil && root != "" && strings.HasPrefix(real, base+string(filepath.Separator)) {
			return nil
		}
	}
	return refusef(Unreadable, t.file, "it is a symbolic link to %q, outside the home folder", real)
}

func follow(path string) (real string, linked bool, err error) {
	for range maxLinks {
		dir, base := filepath.Split(path)
		if whole, err := filepath.EvalSymlinks(dir); err == nil {
			dir = whole
		}
		path = filepath.Join(dir, base)
		link, err := os.Readlink(path)
		if err != nil {
			return path, linked, nil
		}
		linked = true
		if path = link; !filepath.IsAbs(link) {
			path = dir + string(filepath.Separator) + link
		}
	}
	return "", true, fmt.Errorf("more than %d symbolic links", maxLinks)
}

// read gives the bytes of a client's file, nil when there is none.
func (t *target) read() ([]byte, fs.FileInfo, error) {
	fi, err := os.Stat(t.real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err == nil && !fi.Mode().IsRegular() {
		return nil, nil, refusef(Unreadable, t.file, "it is not a regular file")
	}
	if err != nil {
		return nil, nil, refuseFor(Unreadable, t.file, cause(err))
	}
	f, err := os.Open(t.real)
	if err != nil {
		return nil, nil, refuseFor(Unreadable, t.file, cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	switch {
	case err != nil:
		return nil, nil, refuseFor(Unreadable, t.file, cause(err))
	case len(data) > fileLimit:
		return nil, nil, refusef(Unreadable, t.file, "it is larger than %d MiB", fileLimit>>20)
	}
	return data, fi, nil
}

func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// change is the one way in which a file is written: under our lock, planned from
// what it holds, replaced only while it still holds that.
func (m *Mounter) change(ctx context.Context, t *target, r Request, plan planner) (Result, error) {
	if r.DryRun {
		return m.attempt(ctx, t, r, plan)
	}
	unlock, err := m.locked(ctx, t)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	return m.attempt(ctx, t, r, plan)
}

func (m *Mounter) locked(ctx context.Context, t *target) (unlock func(), err error) {
	if err := atomicfile.PrivateDir(m.o.State); err != nil {
		return nil, refuseFor(WriteFailed, t.file, err)
	}
	if t.strict {
		if err := os.MkdirAll(filepath.Dir(t.lock), 0o700); err != nil {
			return nil, refuseFor(WriteFailed, t.file, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, m.o.LockWait)
	defer cancel()
	who := ""
	unlock, err = atomicfile.Lock(limited, t.lock, func(holder string) { who = holder })
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		if who == "" {
			who = "another process"
		}
		return nil, refusef(Locked, t.file, "%s keeps it locked", who)
	default:
		return nil, refuseFor(WriteFailed, t.file, err)
	}
	if !t.mkdir {
		return unlock, nil
	}
	release, ours := clientLock(ctx, t.real+".lock", t.settle), unlock
	return func() { release(); ours() }, nil
}

// clientLock makes the folder that the client takes for a lock on its file, waiting
// about two seconds for it. A lock that stays does not stop us: nothing of the client's is
// lost without it.
func clientLock(ctx context.Context, dir string, wait time.Duration) (release func()) {
	for range 40 {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			return func() { os.Remove(dir) }
		}
		if !errors.Is(err, fs.ErrExist) || pause(ctx, wait) != nil {
			break
		}
	}
	return func() {}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// attempt plans and writes until the file is as planned.
func (m *Mounter) attempt(ctx context.Context, t *target, r Request, plan planner) (Result, error) {
	res := Result{Client: t.client, File: t.file, Restart: t.restart}
	if t.real != t.file {
		if _, linked, _ := follow(t.file); linked {
			res.Target = t.real
		}
	}
	busy := false
	for range m.tries {
		cur, before, err := t.steady(ctx)
		if err != nil {
			return Result{}, err
		}
		st := m.load(t)
		n, err := plan(cur, st, r)
		if err != nil {
			return Result{}, err
		}
		res.Digest = n.digest
		if !n.changed {
			return res, nil
		}
		res.Diff = unifiedDiff(t.file, cur, n.data, n.remove)
		if res.Changed = true; r.DryRun {
			return res, nil
		}
		backup, err := m.put(t, cur, n)
		switch {
		case errors.Is(err, atomicfile.ErrChanged):
			busy = true
			if err := t.written(ctx, retryPause); err != nil {
				return Result{}, refuseFor(WriteFailed, t.file, err)
			}
			continue
		case err != nil:
			return Result{}, refuseFor(WriteFailed, t.file, err)
		}
		res.Backup, res.Deleted = backup, n.remove
		if !busy && (st.left(cur) || !t.recent(before)) {
			return res, nil
		}
		busy = true
		if t.written(ctx, settleFor*t.settle) != nil {
			return res, nil
		}
	}
	return Result{}, refusef(ChangedDuringWrite, t.file, "another program keeps changing it")
}

// steady reads the file. What is empty or cannot be parsed may be in the middle of
// being written: it is taken for what it is only when it has stayed the same, and has not
// just been written.
func (t *target) steady(ctx context.Context) ([]byte, fs.FileInfo, error) {
	data, fi, err := t.read()
	for range writeTries {
		if err != nil || data == nil {
			break
		}
		if _, _, bad := t.edit(data); bad == nil && len(data) > 0 {
			break
		}
		if err := pause(ctx, t.settle); err != nil {
			return nil, nil, refuseFor(Unreadable, t.file, err)
		}
		again, later, err := t.read()
		same := bytes.Equal(again, data) && again != nil
		if err != nil || same && time.Since(later.ModTime()) > unsettledFor*t.settle {
			return again, later, err
		}
		data, fi = again, later
	}
	return data, fi, err
}

// put writes backup, file and note.
func (m *Mounter) put(t *target, cur []byte, n next) (backup string, err error) {
	if backup, err = m.keep(t, n); err != nil {
		return "", err
	}
	if n.remove {
		if now, _, err := t.read(); err != nil || !bytes.Equal(now, cur) {
			return "", atomicfile.ErrChanged
		}
		err = os.Remove(t.real)
	} else {
		if err := os.MkdirAll(filepath.Dir(t.real), 0o700); err != nil {
			return "", err
		}
		perm := fs.FileMode(0o600)
		if cur != nil {
			perm = 0o777 // the mode that it has is kept
		}
		err = atomicfile.WriteIf(t.real, cur, n.data, perm)
	}
	if err == nil {
		m.note(t, n)
	}
	return backup, err
}

// written waits until the file has been written again, at most that long.
func (t *target) written(ctx context.Context, most time.Duration) error {
	was, _ := os.Stat(t.real)
	for range most / retryLook {
		if err := pause(ctx, retryLook); err != nil {
			return err
		}
		now, err := os.Stat(t.real)
		if err == nil && was != nil && (!os.SameFile(was, now) || !now.ModTime().Equal(was.ModTime()) || now.Size() != was.Size()) {
			return nil
		}
	}
	return nil
}

// recent tells whether somebody wrote the file shortly before we did.
func (t *target) recent(before fs.FileInfo) bool {
	after, err := os.Stat(t.real)
	return before != nil && err == nil && after.ModTime().Sub(before.ModTime()) < busyWithin
}
