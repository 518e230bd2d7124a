package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

const (
	// recordLimit bounds a record read from disk: 500 files at about 400 bytes
	// and 64 tools a hundred times over stay far below it.
	recordLimit = 4 << 20
	// recordDepth is far above the nesting of any record that we write.
	recordDepth = 32
)

// NotInstalledError says that no activation has the name.
type NotInstalledError struct{ Name string }

func (e *NotInstalledError) Error() string { return fmt.Sprintf("%q is not installed", e.Name) }

// DamagedError says that a record or tools file is there and cannot be used.
// It is never treated as an absent one.
type DamagedError struct {
	What, Path string
	Err        error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("reading %s: %v", e.What, e.Err) }
func (e *DamagedError) Unwrap() error { return e.Err }

// NewerError says that a file was written by a newer version of the program.
type NewerError struct {
	What         string
	Schema, Have int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("reading %s: it has schema %d and this program knows %d: it was written by a newer version", e.What, e.Schema, e.Have)
}

// Store is the folder HOME/activations.
type Store struct{ dir string }

// Listed is one activation as List finds it: Err is set where the record is
// there and cannot be read.
type Listed struct {
	Name   string
	Record *Record
	Err    error
}

// Open gives access to the records of a home. It does no I/O.
func Open(home string) Store { return Store{dir: filepath.Join(home, "activations")} }

// Path is where the record of an activation is.
func (s Store) Path(name string) string { return filepath.Join(s.dir, name+".json") }

// Read returns the record of one activation. Errors: *NotInstalledError,
// *DamagedError, *NewerError.
func (s Store) Read(name string) (*Record, error) {
	if err := manifest.ValidID(name); err != nil {
		return nil, &NotInstalledError{Name: name}
	}
	what := fmt.Sprintf("record %q", name)
	data, err := atomicfile.Read(s.Path(name), recordLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotInstalledError{Name: name}
	}
	if err != nil {
		return nil, &DamagedError{What: what, Path: s.Path(name), Err: err}
	}
	rec, err := parse(name, data)
	var newer *NewerError
	if err != nil && !errors.As(err, &newer) {
		return nil, &DamagedError{What: what, Path: s.Path(name), Err: err}
	}
	return rec, err
}

// parse reads a record's bytes exactly: a repeated key or a case twin is
// damage, since two readers could take it for two different records.
func parse(name string, data []byte) (*Record, error) {
	doc, err := parseExact(data, recordDepth)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(doc, fmt.Sprintf("record %q", name), recordSchema); err != nil {
		return nil, err
	}
	var rec Record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, err
	}
	return &rec, rec.check(name)
}

// parseExact parses one of our own files and refuses what no program of ours
// writes: repeated keys, and anything but an object.
func parseExact(data []byte, depth int) (exactjson.Value, error) {
	doc, repeats, err := exactjson.Parse(data, depth)
	switch {
	case err != nil:
		return doc, err
	case len(repeats) > 0:
		return doc, fmt.Errorf("the key %q occurs twice", repeats[0].Path)
	case doc.Kind != exactjson.Object:
		return doc, errors.New("it is not a JSON object")
	}
	return doc, nil
}

// checkSchema refuses a file of a newer format, whatever else is in it.
func checkSchema(doc exactjson.Value, what string, have int) error {
	v, _ := doc.Get("schema")
	var schema int
	if v.Kind != exactjson.Number || json.Unmarshal([]byte(v.Str), &schema) != nil || schema < 1 {
		return errors.New("it has no schema number")
	}
	if schema > have {
		return &NewerError{What: what, Schema: schema, Have: have}
	}
	return nil
}

// List returns every activation by name. A record that cannot be read is
// listed with its error and hides no other.
func (s Store) List() ([]Listed, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the activations: %w", err)
	}
	var out []Listed
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || manifest.ValidID(name) != nil {
			continue // a temporary file of an interrupted write, or not ours
		}
		rec, err := s.Read(name)
		var gone *NotInstalledError
		if errors.As(err, &gone) {
			continue // removed between the listing and the reading
		}
		out = append(out, Listed{Name: name, Record: rec, Err: err})
	}
	return out, nil
}

// Taken tells whether a record file of that name is there, readable or not.
func (s Store) Taken(name string) bool {
	_, err := os.Lstat(s.Path(name))
	return err == nil
}

// Write renames the record into place: the commit point of every flow.
func (s Store) Write(rec *Record) error {
	rec.Schema = recordSchema
	compact, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("writing record %q: %w", rec.Name, err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, compact, "", "  "); err != nil {
		return fmt.Errorf("writing record %q: %w", rec.Name, err)
	}
	pretty.WriteByte('\n')
	if err := atomicfile.PrivateDir(s.dir); err != nil {
		return fmt.Errorf("writing record %q: %w", rec.Name, err)
	}
	if err := atomicfile.Write(s.Path(rec.Name), pretty.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing record %q: %w", rec.Name, err)
	}
	return nil
}

// Remove takes the record away: the commit point of uninstall.
func (s Store) Remove(name string) error {
	if err := os.Remove(s.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing record %q: %w", name, err)
	}
	return nil
}
