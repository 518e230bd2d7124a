package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting process looks again. Nobody waits at a prompt
// for less than that, and a lock is held for much longer when it is contended.
const lockPoll = 50 * time.Millisecond

// holderLimit bounds the text of a lock file: one process number.
const holderLimit = 64

// Lock takes the lock that the file at path stands for, waiting until ctx ends. The
// folder must exist; the file is made with mode 0600.
//
// The lock is one of the operating system, so it ends with its holder, also by
// kill -9, and a file left behind means nothing. It excludes other processes and
// other calls in this process alike, and is not re-entrant. waiting, when not nil,
// is called once, before the first wait, with the holder as text for a person
// ("process 4711", or "" when unknown).
//
// unlock may be called more than once. It leaves the file: its holder may remove
// the file before unlock, and whoever waits for it then notices and starts afresh.
// The error wraps ctx.Err() when the wait was given up.
func Lock(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	told := false
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("waiting for the lock %q: %w", path, err)
		}
		unlock, ok, err := TryLock(path)
		if err != nil || ok {
			return unlock, err
		}
		if !told && waiting != nil {
			waiting(holder(path))
		}
		told = true
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	t := time.NewTimer(lockPoll)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// TryLock is Lock without the wait: ok is false, and err nil, when somebody else
// holds it.
func TryLock(path string) (unlock func(), ok bool, err error) {
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, false, fmt.Errorf("locking %q: %w", path, Cause(err))
	}
	if !got {
		return nil, false, nil
	}
	current, err := stillNamed(l, path)
	if err != nil || !current {
		l.Unlock()
		if err != nil {
			return nil, false, fmt.Errorf("locking %q: %w", path, Cause(err))
		}
		return nil, false, nil // removed by its last holder while we opened it
	}
	forget := noteHolder(path)
	return sync.OnceFunc(func() {
		forget()
		l.Unlock()
	}), true, nil
}

// stillNamed says whether the locked file is the one that path names, with a usable
// mode. A lock on a file that has been removed excludes nobody.
func stillNamed(l *flock.Flock, path string) (bool, error) {
	held, err := l.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !os.SameFile(held, named) {
		return false, err
	}
	if held.Mode().Perm()&0o600 != 0o600 { // a umask would lock us all out for ever
		err = os.Chmod(path, 0o600)
	}
	return true, err
}

// noteHolder writes our process number for the messages of others. The first byte
// stays blank: Windows locks that one against readers. A full disk only costs the
// message, so errors are dropped.
func noteHolder(path string) (forget func()) {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow, 0)
	if err != nil {
		return func() {}
	}
	f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 1)
	return func() {
		f.Truncate(0)
		f.Close()
	}
}

func holder(path string) string {
	f, err := openNoFollow(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, holderLimit)
	n, _ := f.ReadAt(text, 1)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || pid <= 0 {
		return ""
	}
	return fmt.Sprintf("process %d", pid)
}
