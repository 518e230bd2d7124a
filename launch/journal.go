package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"skald-connectors/internal/atomicfile"
)

// journalKept is how many full files are kept beside the present one: FILE.1 is
// the newest of them.
const journalKept = 2

// Journal is a file of lines that several processes append to: call receipts
// (HOME/calls/NAME.jsonl) or a log (HOME/logs/NAME.log). It is 0600 and is
// renamed to FILE.1 when it is full. Each Write is whole lines. It may be used by
// several goroutines.
type Journal struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	torn bool // the last line has no end: the disk was full, or the power went
}

// OpenJournal opens or creates a journal whose file holds about limit bytes. Its
// folder must be there and be private. What is no regular file is refused.
func OpenJournal(path string, limit int64) (*Journal, error) {
	j := &Journal{path: path, limit: limit}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("opening journal %q: %w", path, err)
	}
	return j, nil
}

func (j *Journal) open() error {
	info, err := os.Lstat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is a link or another special file")
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // nothing is buffered
	}
	j.file = f
	end := []byte{'\n'}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		_, _ = f.ReadAt(end, info.Size()-1)
	}
	j.torn = end[0] != '\n'
	return nil
}

// Write appends lines.
func (j *Journal) Write(lines []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.follow(int64(len(lines))); err != nil {
		return 0, fmt.Errorf("writing journal %q: %w", j.path, err)
	}
	if j.torn {
		if _, err := j.file.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		j.torn = false
	}
	n, err := j.file.Write(lines)
	if n > 0 {
		j.torn = lines[n-1] != '\n'
	}
	return n, err
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}

// follow goes on to the file that has the name now, after making place for
// more bytes. Another process may have renamed the old one.
func (j *Journal) follow(more int64) error {
	full, moved, err := j.look(more)
	if err != nil || !full && !moved {
		return err
	}
	if full {
		unlock, ok, err := atomicfile.TryLock(j.path + ".lock")
		if err != nil {
			return err
		}
		if !ok { // another process makes place; one more write does no harm
			return nil
		}
		defer unlock()
		if full, _, err = j.look(more); err != nil {
			return err
		}
		if full {
			j.rotate()
		}
	}
	return j.open()
}

func (j *Journal) look(more int64) (full, moved bool, err error) {
	mine, err := j.file.Stat()
	if err != nil {
		return false, false, err
	}
	named, err := os.Lstat(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	return named.Size() > 0 && named.Size()+more > j.limit, !os.SameFile(mine, named), nil
}

// rotate renames the full file. On systems where an open file cannot be
// renamed it stays, and grows.
func (j *Journal) rotate() {
	name := func(n int) string {
		if n == 0 {
			return j.path
		}
		return fmt.Sprintf("%s.%d", j.path, n)
	}
	for n := journalKept; n > 0; n-- {
		_ = os.Rename(name(n-1), name(n)) // the older ones may not be there
	}
}
