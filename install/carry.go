package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// What a connector keeps in its own folder is a session, a cache, a small database.
// More than this is not carried over silently: it is an error, and nothing is lost.
const (
	carryFiles = 20_000
	carryBytes = 1 << 30
)

// errTooMuch is the error for a folder above those limits.
var errTooMuch = fmt.Errorf("the connector keeps more than %d files or %d bytes in its own folder", carryFiles, carryBytes)

// codeNames and codeEnds are files that an interpreter or an installer of
// dependencies would take up by themselves. A connector's data does not look so, and
// one that was made to write them must not outlive its version by them.
var (
	codeNames = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "requirements.txt", "pyproject.toml", "setup.cfg", "pyvenv.cfg"}
	codeEnds  = []string{".py", ".pyc", ".pyd", ".pth", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".node", ".wasm",
		".so", ".dylib", ".dll", ".exe", ".bat", ".cmd", ".ps1", ".sh"}
)

// carry copies the files that an older version did not ship from its work folder src
// to the work folder dst of a newer one (DESIGN.md, decision 3). oldShipped and
// newShipped are the files of the two versions. It never overwrites a shipped file,
// and replaces another one only by a younger one, so it can be repeated.
//
// Only regular files are taken, with mode 0600 and their time. Left behind, and named
// in left with the reason: what the new version ships itself, links and other special
// files, names that section 2 of the format reserves, and what looks like code.
// Dependencies, caches of compiled code and the durable links are not mentioned: they
// are made anew.
func carry(dst, src *os.Root, oldShipped, newShipped []manifest.File, step func(string)) (left []string, err error) {
	rules := newRules(oldShipped, newShipped)
	c := copier{dst: dst, src: src, step: step}
	err = fs.WalkDir(src.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return unlessGone(err) // the folder may belong to a running session
		}
		if passed(p, d) {
			return skip(d)
		}
		if d.IsDir() || rules.old[p] {
			return nil
		}
		if why := rules.keepsOut(p, d); why != "" {
			left = append(left, fmt.Sprintf("%q: %s", p, why))
			return nil
		}
		return c.copy(p)
	})
	if err != nil {
		return left, fmt.Errorf("copying the connector's own files: %w", err)
	}
	return left, nil
}

// copyAll copies every regular file of a tree, younger ones over older ones.
func copyAll(dst, src *os.Root, step func(string)) error {
	c := copier{dst: dst, src: src, step: step}
	return fs.WalkDir(src.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || unfinished(d.Name()) {
			return unlessGone(err)
		}
		return c.copy(p)
	})
}

// passed says what is passed over without a word.
func passed(p string, d fs.DirEntry) bool {
	switch p {
	case "node_modules", ".pydeps":
		return true
	case "auth", "state":
		return true // a link; a real folder there is adopted
	}
	return d.Name() == "__pycache__" || unfinished(d.Name())
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// rules are the sets that carry decides by. Paths of the new version are folded:
// where case does not count, "Data" is "data".
type rules struct {
	old       map[string]bool // as shipped
	new, dirs map[string]bool // files of the new version, and folders that it needs
}

func newRules(oldShipped, newShipped []manifest.File) rules {
	r := rules{old: map[string]bool{}, new: map[string]bool{}, dirs: map[string]bool{}}
	for _, f := range oldShipped {
		r.old[f.Path] = true
	}
	for _, f := range newShipped {
		folded := strings.ToLower(f.Path)
		r.new[folded] = true
		for d := path.Dir(folded); d != "."; d = path.Dir(d) {
			r.dirs[d] = true
		}
	}
	return r
}

// keepsOut says why a file is not carried over, or "".
func (r rules) keepsOut(p string, d fs.DirEntry) string {
	folded := strings.ToLower(p)
	if r.new[folded] || r.dirs[folded] {
		return "the new version has its own"
	}
	for dir := path.Dir(folded); dir != "."; dir = path.Dir(dir) {
		if r.new[dir] {
			return "the new version has a file in place of its folder"
		}
	}
	base := path.Base(folded)
	switch {
	case !d.Type().IsRegular():
		return "it is not a regular file"
	case plainName(p) && manifest.ValidPath(p) != nil:
		return "its name is reserved"
	case slices.Contains(codeNames, base) || slices.ContainsFunc(codeEnds, func(end string) bool { return strings.HasSuffix(base, end) }):
		return "it looks like code"
	}
	return ""
}

// plainName says that a path could be one of the reserved names, which are plain
// ASCII. Session files may be called "id:1@host.json" and lie deep; that is not
// forbidden to a connector, only to a publisher.
func plainName(p string) bool {
	return strings.Count(p, "/") < 8 && len(p) < 200 && strings.Trim(strings.ToLower(p), "abcdefghijklmnopqrstuvwxyz0123456789._-/") == ""
}

// A copier copies single files between two trees and counts them.
type copier struct {
	dst, src *os.Root
	step     func(string)
	files    int
	bytes    int64
}

// copy copies src's file p unless dst's is as young.
func (c *copier) copy(p string) error {
	in, err := openRegular(c.src, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a running session removed it
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", p, atomicfile.Cause(err))
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return fmt.Errorf("reading %q: %w", p, atomicfile.Cause(err))
	}
	c.files++
	if c.bytes += fi.Size(); c.files > carryFiles || c.bytes > carryBytes {
		return errTooMuch
	}
	local := filepath.FromSlash(p)
	if have, err := c.dst.Lstat(local); err == nil && (!have.Mode().IsRegular() || !fi.ModTime().After(have.ModTime())) {
		return nil
	}
	c.step("carry " + p)
	if err := c.write(p, in, fi.ModTime()); err != nil {
		return fmt.Errorf("writing %q: %w", p, atomicfile.Cause(err))
	}
	return nil
}

func (c *copier) write(p string, in *os.File, modified time.Time) error {
	if err := makeParents(c.dst, p); err != nil {
		return err
	}
	return place(c.dst, p, c.step, func(out *os.File) error {
		if _, err := copyBytes(out, in, carryBytes); err != nil {
			return err
		}
		return c.dst.Chtimes(filepath.Base(out.Name()), modified, modified)
	})
}
