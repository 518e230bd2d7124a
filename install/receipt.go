package install

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// receiptFormat is the format that this program writes and the newest it reads.
const receiptFormat = 1

// receiptLimit bounds a receipt; a version takes about 70 bytes and a connector keeps
// a handful of them.
const receiptLimit = 1 << 20

// A Receipt says which versions of a connector are on disk. It is written after the
// folders are in place and can be rebuilt from them, so it never decides whether
// something may run.
type Receipt struct {
	Connector string
	Versions  []Ref // ascending by version, then digest

	rebuilt  bool                                  // there was none to read
	unknown  map[string]json.RawMessage            // fields of other programs
	versions map[string]map[string]json.RawMessage // the same, by Ref.Dir
}

// A NewerError says that a newer program wrote a file in a format that this one does
// not know. It is never overwritten.
type NewerError struct {
	File   string
	Format int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%q has format %d; this program knows formats up to %d: it was written by a newer version", e.File, e.Format, receiptFormat)
}

// errDamaged marks a receipt that has to be rebuilt from the folders.
var errDamaged = errors.New("damaged")

// parseReceipt reads the file of one connector. Errors: *NewerError without a file
// name, or errDamaged.
func parseReceipt(connector string, src []byte) (Receipt, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	var top map[string]json.RawMessage
	if json.Unmarshal(src, &top) != nil {
		return Receipt{}, errDamaged
	}
	var format int
	if json.Unmarshal(top["format"], &format) != nil || format < 1 {
		return Receipt{}, errDamaged
	}
	if format > receiptFormat {
		return Receipt{}, &NewerError{Format: format}
	}
	var id string
	var versions []map[string]json.RawMessage
	if json.Unmarshal(top["connector"], &id) != nil || id != connector || json.Unmarshal(top["versions"], &versions) != nil {
		return Receipt{}, errDamaged
	}
	r := Receipt{Connector: connector, unknown: top, versions: map[string]map[string]json.RawMessage{}}
	for _, v := range versions {
		ref := Ref{Connector: connector}
		if json.Unmarshal(v["version"], &ref.Version) != nil || json.Unmarshal(v["digest"], &ref.Digest) != nil {
			return Receipt{}, errDamaged
		}
		if _, ok := parseRef(connector, ref.Dir()); !ok {
			return Receipt{}, errDamaged
		}
		r.versions[ref.Dir()] = v
		r.add(ref)
	}
	return r, nil
}

// marshal writes the receipt with the fields that this program does not know.
func (r Receipt) marshal() ([]byte, error) {
	type object = map[string]any
	top, versions := object{}, []object{}
	for k, v := range r.unknown {
		top[k] = v
	}
	for _, ref := range r.Versions {
		v := object{}
		for k, raw := range r.versions[ref.Dir()] {
			v[k] = raw
		}
		v["version"], v["digest"] = ref.Version, ref.Digest
		versions = append(versions, v)
	}
	top["format"], top["connector"], top["versions"] = receiptFormat, r.Connector, versions
	out, err := json.MarshalIndent(top, "", "  ")
	return append(out, '\n'), err
}

// add puts a version in its place.
func (r *Receipt) add(ref Ref) {
	i, found := slices.BinarySearchFunc(r.Versions, ref, compareRefs)
	if !found {
		r.Versions = slices.Insert(r.Versions, i, ref)
	}
}

// keep drops the versions that are not among those.
func (r *Receipt) keep(those []Ref) {
	r.Versions = slices.DeleteFunc(r.Versions, func(ref Ref) bool { return !slices.Contains(those, ref) })
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), strings.Compare(a.Digest, b.Digest))
}

// Receipts lists what is on disk, by connector. A receipt that is missing or damaged
// is rebuilt in memory from the folders; one that names a missing folder is cut.
// Connectors whose receipt cannot be used are left out and named in the error, which
// comes beside the rest: *NewerError, *atomicfile.UnsafeError.
func (s *Store) Receipts() ([]Receipt, error) {
	entries, err := s.entries(connectorsDir)
	if err != nil {
		return nil, err
	}
	var all []Receipt
	var problems []error
	for _, e := range entries {
		if manifest.ValidID(e.Name()) != nil || e.Type().IsRegular() {
			continue
		}
		r, err := s.receipt(e.Name())
		if err != nil {
			problems = append(problems, err)
		} else if len(r.Versions) > 0 {
			all = append(all, r)
		}
	}
	return all, errors.Join(problems...)
}

// receipt reads the receipt of one connector against its folders.
func (s *Store) receipt(connector string) (Receipt, error) {
	here, err := s.versionFolders(connector)
	if err != nil {
		return Receipt{}, fmt.Errorf("reading receipt %q: %w", connector, err)
	}
	r, err := s.readReceipt(connector)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
		return Receipt{Connector: connector, Versions: here, rebuilt: true}, nil
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("reading receipt %q: %w", connector, err)
	}
	r.keep(here)
	return r, nil
}

func (s *Store) readReceipt(connector string) (Receipt, error) {
	dir, err := s.find(receiptsDir) // for its refusal of a link
	if err != nil {
		return Receipt{}, err
	}
	dir.Close()
	path := s.receiptPath(connector)
	src, err := atomicfile.Read(path, receiptLimit)
	if err != nil {
		return Receipt{}, err
	}
	r, err := parseReceipt(connector, src)
	var newer *NewerError
	if errors.As(err, &newer) {
		newer.File = path
	}
	return r, err
}

func (s *Store) receiptPath(connector string) string {
	return filepath.Join(s.home, receiptsDir, connector+".json")
}

// entries lists a folder of the home; one that is not there is empty.
func (s *Store) entries(top string, below ...string) ([]fs.DirEntry, error) {
	root, err := s.find(top, below...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return list(root)
}

// versionFolders lists the committed folders of a connector.
func (s *Store) versionFolders(connector string) ([]Ref, error) {
	entries, err := s.entries(connectorsDir, connector)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, e := range entries {
		if ref, ok := parseRef(connector, e.Name()); ok && e.IsDir() {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	return refs, nil
}

// addReceipt writes that ref is here. The store's lock is held.
func (s *Store) addReceipt(ref Ref, step func(string)) error {
	r, err := s.receipt(ref.Connector)
	if err != nil {
		return err
	}
	r.add(ref)
	return s.writeReceipt(r, step)
}

func (s *Store) writeReceipt(r Receipt, step func(string)) error {
	data, err := r.marshal()
	if err != nil {
		return err
	}
	if _, err := s.top(receiptsDir); err != nil {
		return err
	}
	step("receipt")
	return atomicfile.Write(s.receiptPath(r.Connector), data, filePrivate)
}
