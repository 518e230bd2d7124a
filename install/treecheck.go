package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/atomicfile"
)

// ErrTreeChanged says that what is in a tree is not what was put there.
var ErrTreeChanged = errors.New("the packages are not the ones that were installed")

// CheckTree holds a tree against the digest that a record names. Like CheckNoted it
// reads nothing while the file system says what it said at the last reading; now is the
// time of this machine's clock. Errors wrap ErrTreeChanged, or fs.ErrNotExist.
func (s *Store) CheckTree(hash, digest string, now time.Time) error {
	if !treeName.MatchString(hash) {
		return fmt.Errorf("checking dependencies: %q does not name a tree", hash)
	}
	root, err := s.find(depsDir, hash)
	if err != nil {
		return fmt.Errorf("checking dependencies %s: %w", short(hash), err)
	}
	defer root.Close()
	states, newest, known := treeStates(root)
	if known && s.treeNoted(hash, digest, states, newest, now) {
		return nil
	}
	s.step("read-tree")
	have, err := digestTree(root)
	if err != nil {
		return fmt.Errorf("checking dependencies %s: %w", short(hash), atomicfile.Cause(err))
	}
	if have != digest {
		return fmt.Errorf("checking dependencies %s: %w", short(hash), ErrTreeChanged)
	}
	after, _, _ := treeStates(root)
	if known && after == states && newest < now.Add(-freshness).UnixNano() {
		s.noteTree(hash, digest, states, now)
	}
	return nil
}

// digestTree is listTree with what is in the files.
func digestTree(root *os.Root) (string, error) {
	h := sha256.New()
	listing, err := listTree(root)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s\n", listing)
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == treeMarker || !d.Type().IsRegular() {
			return err
		}
		f, err := root.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
			return fmt.Errorf("%q was replaced while it was read", p)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %x\n", p, sum.Sum(nil))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// treeStates digests what the file system says of each entry, with the newest of all
// times (ns). known is false where it does not say enough.
func treeStates(root *os.Root) (states string, newest int64, known bool) {
	h, known := sha256.New(), true
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := stateOf(fi)
		known = known && ok
		newest = max(newest, st.mtime, st.ctime)
		fmt.Fprintf(h, "%q %v %d %d %d %d %d\n", p, fi.Mode(), st.size, st.mtime, st.ctime, st.dev, st.ino)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), newest, known && err == nil
}

// The note of a tree is one line in checked/deps@<hash>:
//
//	tree 1 <hash> <time of the reading, ns> <digest> <digest of the states>
const (
	treeNoteVersion = "tree 1"
	treeNoteName    = "deps@"
	treeNoteLimit   = 1 << 10
)

func (s *Store) treeNoted(hash, digest, states string, newest int64, now time.Time) bool {
	dir, err := s.top(notesDir)
	if err != nil {
		return false
	}
	text, err := atomicfile.Read(filepath.Join(dir, treeNoteName+hash), treeNoteLimit)
	if err != nil {
		return false
	}
	taken, ok := bytes.CutPrefix(text, []byte(treeNoteVersion+" "+hash+" "))
	when, rest, _ := strings.Cut(string(taken), " ")
	ns, err := strconv.ParseInt(when, 10, 64)
	return ok && err == nil && rest == digest+" "+states+"\n" && ns <= now.UnixNano() && newest < ns-freshness.Nanoseconds()
}

// noteTree keeps a note. One that cannot be written costs the next start its time.
func (s *Store) noteTree(hash, digest, states string, now time.Time) {
	if dir, err := s.top(notesDir); err == nil {
		_ = atomicfile.Write(filepath.Join(dir, treeNoteName+hash), fmt.Appendf(nil, "%s %s %d %s %s\n", treeNoteVersion, hash, now.UnixNano(), digest, states), filePrivate)
	}
}
