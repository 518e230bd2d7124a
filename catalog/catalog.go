// Package catalog is the publisher's side of a marketplace. Its one job here is to turn an author's folder tree
// (index.json, and for each connector a folder with fragment.json, connector.json and what is shipped) into the
// compiled index connectors.json, the same bytes for the same tree, and to say what is wrong or stale
// (format.md, sections 1, 2 and 9).
//
// It has no opinion of its own on documents and paths: what is an error there is decided by package manifest. What it
// adds needs the tree: whether a file that is named is there, and whether a changed connector has a new version.
//
// It never follows a link, never reads outside the tree, never changes a file other than connectors.json, and writes
// that one only when nothing was found to be an error.
package catalog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// The names of the files that a marketplace's tree has besides what its connectors ship.
const (
	indexName    = "connectors.json" // written by Compile
	listName     = "index.json"      // the ids, in the order of the index
	fragmentName = "fragment.json"   // an entry of the index without files[]
	manifestName = "connector.json"
)

// Options say how to work.
type Options struct {
	// Jobs is how many files are hashed at a time; 0 means one for each processor.
	Jobs int
	// CacheDir is a private folder for what package fetch keeps while Verify opens the compiled tree as a user's
	// machine does. Empty leaves that last step out. Compile does not use it.
	CacheDir string
	// Against is the index that is published, which versions are compared with; nil: the one in the tree.
	Against []byte
	// Now is the clock that package fetch is given; needed with CacheDir.
	Now func() time.Time
}

// Finding is one thing to know about a connector, or about the tree when Connector is empty. File is relative to the
// root of the marketplace, "/"-separated.
type Finding struct {
	Connector string
	manifest.Diagnostic
}

// Report is what one run found and did. Findings are in the order of index.json, the same for the same tree.
type Report struct {
	Connectors int   // in the index
	Files      int   // pinned
	Bytes      int64 // their sum
	Findings   []Finding
	// Written tells that connectors.json has new bytes; false also when the tree compiles to the bytes that it has.
	Written bool
}

// RefusedError means that a tree has findings of severity Error; they are in the Report. Nothing was written.
type RefusedError struct {
	Dir    string
	Errors int
}

func (e *RefusedError) Error() string {
	noun := "errors"
	if e.Errors == 1 {
		noun = "error"
	}
	return fmt.Sprintf("marketplace %q: %d %s", e.Dir, e.Errors, noun)
}

// Compile reads the tree at dir and writes dir/connectors.json whole, when its bytes change. Members of the top level
// of the previous connectors.json that it does not know are kept. The error is a *RefusedError when the tree has errors.
func Compile(ctx context.Context, dir string, o Options) (Report, error) {
	b, err := read(ctx, dir, o)
	if err != nil {
		return Report{}, fmt.Errorf("compiling %q: %w", dir, err)
	}
	defer b.root.Close()
	if err := b.refused(); err != nil || bytes.Equal(b.compiled, b.previousBytes) {
		return b.report(), err
	}
	if err := atomicfile.Write(filepath.Join(dir, indexName), b.compiled, 0o644); err != nil {
		return b.report(), fmt.Errorf("compiling %q: %w", dir, err)
	}
	r := b.report()
	r.Written = true
	return r, nil
}

// Verify changes nothing in the tree. It reports, as findings of severity Error, all that Compile refuses and each
// connector and file for which dir/connectors.json is stale; the error is then a *RefusedError. A tree that is current
// is opened once more through package fetch, the way a user's machine reads it.
func Verify(ctx context.Context, dir string, o Options) (Report, error) {
	b, err := read(ctx, dir, o)
	if err != nil {
		return Report{}, fmt.Errorf("verifying %q: %w", dir, err)
	}
	defer b.root.Close()
	if !bytes.Equal(b.compiled, b.previousBytes) {
		b.explainStale()
	} else if o.CacheDir != "" && b.refused() == nil {
		if err := b.openAsUser(ctx); err != nil {
			return b.report(), fmt.Errorf("verifying %q: %w", dir, err)
		}
	}
	return b.report(), b.refused()
}

// build is one run over a tree.
type build struct {
	dir        string
	root       *os.Root
	o          Options
	connectors []*connector // in the order of index.json
	findings   []Finding    // those of no connector

	previousBytes []byte
	previous      *manifest.Index // nil when there is no readable one
	published     *manifest.Index // what versions are compared with; nil when there is none
	compiled      []byte          // nil when a connector could not be written at all
}

// read does everything but writing: its error is about the machine, what is wrong with the tree becomes findings.
func read(ctx context.Context, dir string, o Options) (*build, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	b := &build{dir: dir, root: root, o: o}
	if err := b.readAll(ctx); err != nil {
		root.Close()
		return nil, err
	}
	return b, nil
}

func (b *build) readAll(ctx context.Context) error {
	if err := b.readPrevious(); err != nil {
		return err
	}
	if err := b.readPublished(); err != nil {
		return err
	}
	if err := b.readList(); err != nil {
		return err
	}
	for _, c := range b.connectors {
		b.readFragment(c)
	}
	b.findUnlisted()
	if err := b.scanAndHash(ctx); err != nil {
		return err
	}
	for _, c := range b.connectors {
		b.check(c)
	}
	return b.compile()
}

func (b *build) report() Report {
	r := Report{Connectors: len(b.connectors), Findings: b.findings}
	for _, c := range b.connectors {
		r.Findings = append(r.Findings, c.findings...)
		r.Files += len(c.files)
		for _, f := range c.files {
			r.Bytes += f.pin.Size
		}
	}
	return r
}

func (b *build) refused() error {
	n := 0
	for _, f := range b.report().Findings {
		if f.Severity == manifest.Error {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &RefusedError{Dir: b.dir, Errors: n}
}

// add records a finding of the tree itself.
func (b *build) add(file, rule, format string, args ...any) {
	b.findings = append(b.findings, Finding{Diagnostic: manifest.Diagnostic{File: file, Severity: manifest.Error, Rule: rule, Message: fmt.Sprintf(format, args...)}})
}
