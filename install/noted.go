package install

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// A note says which files of a version folder were hashed, what the file system
// said of each then, and what came out. A start that finds the same again need
// not read them: whatever is written to a file changes its ctime, which only the
// kernel sets.
//
// A note is no pin. What a file has to be is what the record says; the note only
// says what it was, and one that is missing, odd or in doubt costs a reading.
// Whoever can write below the home could write a false note, and could as well
// write the record (docs/threat-model.md).
//
// There are none for work folders: a connector can write there, and what is
// written through a mapping of a file may leave its ctime as it was.
//
// Format, a line for each file:
//
//	checked 1 <ref> <time of the reading, ns>
//	<sha256> <size> <mtime ns> <ctime ns> <device> <inode> <path>
type note struct {
	taken time.Time // before the first file was read
	files map[string]notedFile
}

type notedFile struct {
	sum   string
	state fileState
}

// fileState is what the file system says of a file, without what reading it
// changes.
type fileState struct {
	size, mtime, ctime int64 // ns
	dev, ino           uint64
}

const (
	notesDir    = "checked"
	noteVersion = "checked 1 "
	// noteLimit bounds a note: the most files of a bundle, each with the longest
	// path, come to less.
	noteLimit = 16 << 20
	// freshness is the age that a file's times must have had when it was read: on
	// file systems with coarse times (FAT: 2 s) a later change of a younger one
	// may not show.
	freshness = 2 * time.Second
)

// CheckNoted is Check, for the starts of clients: files that are noted as they are
// now are not read again. now is the time of this machine's clock.
func (s *Store) CheckNoted(ref Ref, files []manifest.File, now time.Time) error {
	root, err := s.checked(ref, files, connectorsDir, ref.Connector)
	if err != nil {
		return err
	}
	defer root.Close()
	old := s.readNote(ref)
	if now.Before(old.taken) {
		old = note{} // the clock was set back: times say nothing
	}
	next, again := note{taken: now, files: map[string]notedFile{}}, false
	err = checkVersion(root, ref, files, func(f manifest.File) (string, error) {
		if fi, err := root.Lstat(filepath.FromSlash(f.Path)); err == nil && old.vouches(f, fi) {
			next.files[f.Path] = old.files[f.Path]
			return "", nil
		}
		s.step("read-file " + f.Path)
		again = true
		why, state, err := checkFile(root, f)
		if state.steady(now) {
			next.files[f.Path] = notedFile{f.SHA256, state}
		}
		return why, err
	})
	if err == nil && again && len(next.files) > 0 {
		s.writeNote(ref, next)
	}
	return err
}

// vouches tells whether f was read as it is now and was the pinned one.
func (n note) vouches(f manifest.File, fi fs.FileInfo) bool {
	noted, has := n.files[f.Path]
	state, known := stateOf(fi)
	return has && known && fi.Mode().IsRegular() && noted.sum == f.SHA256 && noted.state == state && (f.Size < 0 || state.size == f.Size) && state.steady(n.taken)
}

// steady tells whether the file had been left alone for long enough when it was
// read at a time.
func (st fileState) steady(read time.Time) bool {
	limit := read.Add(-freshness).UnixNano()
	return st != fileState{} && st.mtime < limit && st.ctime < limit
}

func (s *Store) notePath(ref Ref) (string, error) {
	dir, err := s.top(notesDir)
	return filepath.Join(dir, noteName(ref)), err
}

func noteName(ref Ref) string { return ref.Connector + "@" + ref.Dir() }

// readNote gives what is noted, or nothing.
func (s *Store) readNote(ref Ref) note {
	path, err := s.notePath(ref)
	if err != nil {
		return note{}
	}
	data, err := atomicfile.Read(path, noteLimit)
	if err != nil {
		return note{}
	}
	return parseNote(data, ref)
}

// writeNote keeps a note. One that cannot be written costs the next start its
// time, and nothing else.
func (s *Store) writeNote(ref Ref, n note) {
	if path, err := s.notePath(ref); err == nil {
		_ = atomicfile.Write(path, n.text(ref), filePrivate)
	}
}

func (n note) text(ref Ref) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s %d\n", noteVersion, noteName(ref), n.taken.UnixNano())
	for path, f := range n.files {
		fmt.Fprintf(&out, "%s %d %d %d %d %d %s\n", f.sum, f.state.size, f.state.mtime, f.state.ctime, f.state.dev, f.state.ino, path)
	}
	return out.Bytes()
}

// parseNote gives nothing for what text does not write.
func parseNote(data []byte, ref Ref) note {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	taken, ok := strings.CutPrefix(string(head), noteVersion+noteName(ref)+" ")
	ns, err := strconv.ParseInt(taken, 10, 64)
	if !ok || err != nil || len(rest) > 0 && rest[len(rest)-1] != '\n' {
		return note{}
	}
	n := note{taken: time.Unix(0, ns), files: map[string]notedFile{}}
	for line := range bytes.Lines(rest) {
		path, f, ok := parseNoted(strings.TrimSuffix(string(line), "\n"))
		if _, twice := n.files[path]; !ok || twice {
			return note{}
		}
		n.files[path] = f
	}
	return n
}

func parseNoted(line string) (path string, f notedFile, ok bool) {
	words := strings.SplitN(line, " ", 7)
	if len(words) != 7 || len(words[0]) != sha256.Size*2 {
		return "", f, false
	}
	numbers := [3]*int64{&f.state.size, &f.state.mtime, &f.state.ctime}
	ids := [2]*uint64{&f.state.dev, &f.state.ino}
	var err, all error
	for i, to := range numbers {
		*to, err = strconv.ParseInt(words[1+i], 10, 64)
		all = errors.Join(all, err)
	}
	for i, to := range ids {
		*to, err = strconv.ParseUint(words[4+i], 10, 64)
		all = errors.Join(all, err)
	}
	f.sum = words[0]
	return words[6], f, all == nil && words[6] != ""
}

// notes removes those of version folders that are gone.
func (w *sweep) notes() {
	root, entries := w.open(notesDir)
	if root == nil {
		return
	}
	defer root.Close()
	for _, e := range entries {
		id, dir, _ := strings.Cut(e.Name(), "@")
		if treeName.MatchString(dir) && e.Name() == treeNoteName+dir {
			if _, err := os.Lstat(w.store.TreeDir(dir)); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if ref, ok := parseRef(id, dir); ok && manifest.ValidID(id) == nil {
			if _, err := os.Lstat(w.store.VersionDir(ref)); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		w.remove(root, notesDir, e.Name())
	}
}

// stateOfOpen is the state of an open file, or the zero state.
func stateOfOpen(f *os.File) fileState {
	fi, err := f.Stat()
	if err != nil {
		return fileState{}
	}
	st, _ := stateOf(fi)
	return st
}
