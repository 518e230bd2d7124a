package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"skald-connectors/manifest"
)

// An Index is one state of a marketplace's index; it does not change. It reads only what it is asked for: a lookup
// costs a few pages, however many entries there are. It is safe for concurrent use.
type Index struct {
	location, digest string
	size             int64
	fetched          time.Time
	fromCache        bool
	err              error
	trust            Trust
	body             io.ReaderAt
	drop             func() // forgets the cached index when it turns out to be damaged

	mu   sync.Mutex
	side *side
	last manifest.Entry // the one that was looked up last: who shows or fetches it asks again
}

// Location is the marketplace's address without credentials.
func (ix *Index) Location() string { return ix.location }

// Digest is the SHA-256 of the index's bytes in lower-case hex.
func (ix *Index) Digest() string { return ix.digest }

// Fetched is when the marketplace last confirmed these bytes.
func (ix *Index) Fetched() time.Time { return ix.fetched }

// FromCache tells that the marketplace was not asked for this index just now, or could not be: then Err says why.
func (ix *Index) FromCache() bool { return ix.fromCache }

// Err says why the marketplace could not be asked; nil when it was, or when that was not wanted.
func (ix *Index) Err() error { return ix.err }

// Len is the number of entries, broken ones included.
func (ix *Index) Len() int { return ix.current().count }

// Lookup reads the entry of an id. Errors: *NotFoundError with similar ids; *BrokenError for an entry that must not be
// installed, which is returned too, with its reason, so that it can be shown.
func (ix *Index) Lookup(id string) (e manifest.Entry, err error) {
	ix.mu.Lock()
	e = ix.last
	ix.mu.Unlock()
	if e.ID == id && id != "" {
		return e, nil
	}
	err = ix.mending(func(s *side) error {
		e, err = ix.lookup(s, id)
		return err
	})
	if err == nil {
		ix.mu.Lock()
		ix.last = e
		ix.mu.Unlock()
	}
	return e, err
}

func (ix *Index) lookup(s *side, id string) (manifest.Entry, error) {
	key := fold(id)
	lo, hi, err := s.find(key)
	switch {
	case err != nil:
		return manifest.Entry{}, err
	case lo == hi || id == "":
		return manifest.Entry{}, &NotFoundError{ID: id, Near: s.near(key)}
	}
	p, err := s.place(make([]byte, 2*pageSize), lo)
	if err != nil {
		return manifest.Entry{}, err
	}
	e, err := ix.entry(p, hi-lo)
	switch {
	case err != nil:
		return manifest.Entry{}, err
	case e.Broken != "":
		return e, &BrokenError{ID: id, Reason: e.Broken}
	case e.ID != id:
		return manifest.Entry{}, &NotFoundError{ID: id, Near: []string{e.ID}}
	}
	return e, nil
}

// entry reads the entry of a record, whose id stands same times in the index.
func (ix *Index) entry(p place, same int) (manifest.Entry, error) {
	raw := make([]byte, p.len)
	if _, err := ix.body.ReadAt(raw, p.off); err != nil && err != io.EOF {
		return manifest.Entry{}, fmt.Errorf("reading the cached index: %w", err)
	}
	if sum := sha256.Sum256(raw); !bytes.Equal(sum[:sumSize], p.sum[:]) {
		return manifest.Entry{}, errDamaged
	}
	e, _ := manifest.ParseEntry(raw)
	if same > 1 && e.Broken == "" {
		e.Broken = fmt.Sprintf("%d entries have this id", same)
	}
	return e, nil
}

// Search gives the matching entries, best first. Broken entries are among them, with their reason.
func (ix *Index) Search(q Query) (found []manifest.Entry, err error) {
	err = ix.mending(func(s *side) error {
		found, err = ix.search(s, newMatcher(q), q.Limit)
		return err
	})
	return found, err
}

func (ix *Index) search(s *side, m *matcher, limit int) ([]manifest.Entry, error) {
	hits, err := s.hits(m, limit)
	if err != nil {
		return nil, err
	}
	found := make([]manifest.Entry, len(hits))
	workers := min(runtime.GOMAXPROCS(0), len(hits)/fewHits+1)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := len(hits)*w/workers, len(hits)*(w+1)/workers
		wg.Go(func() { errs[w] = ix.entries(s, hits[lo:hi], found[lo:hi]) })
	}
	wg.Wait()
	return found, errors.Join(errs...)
}

// fewHits are read sooner than another goroutine is started.
const fewHits = 16

// entries reads the entry of each hit.
func (ix *Index) entries(s *side, hits []hit, found []manifest.Entry) error {
	buf := make([]byte, 4*pageSize)
	for n, h := range hits {
		i, p, err := s.at(buf, h.textOff)
		if err != nil {
			return err
		}
		same, err := s.twins(buf, i)
		if err != nil {
			return err
		}
		if found[n], err = ix.entry(p, same); err != nil {
			return err
		}
	}
	return nil
}

// Versions gives the versions of those ids that the index has in a state to be installed. Others are absent.
func (ix *Index) Versions(ids []string) (map[string]manifest.Version, error) {
	versions := make(map[string]manifest.Version, len(ids))
	for _, id := range ids {
		e, err := ix.Lookup(id)
		var missing *NotFoundError
		var broken *BrokenError
		switch {
		case errors.As(err, &missing), errors.As(err, &broken):
			continue
		case err != nil:
			return nil, err
		}
		versions[id] = e.Version
	}
	return versions, nil
}

// Diagnostics parses the whole index and gives all that deviates from the format. The error is that of
// manifest.ParseIndex, or says that the cached bytes cannot be read.
func (ix *Index) Diagnostics() ([]manifest.Diagnostic, error) {
	body, err := readAll(ix.body, ix.size, ix.digest)
	if err != nil {
		return nil, ix.damaged(err)
	}
	_, found, err := manifest.ParseIndex(body, false)
	return found, err
}

func (ix *Index) current() *side {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.side
}

// mending does something with the side file, and once more with a new one when that was damaged.
func (ix *Index) mending(do func(*side) error) error {
	s := ix.current()
	err := do(s)
	if !errors.Is(err, errDamaged) {
		return err
	}
	if _, err := ix.build(); err != nil {
		return ix.damaged(err)
	}
	if err = do(ix.current()); errors.Is(err, errDamaged) {
		return ix.damaged(err)
	}
	return err
}

// build makes the side file anew from the index's bytes, which must match their digest, and uses it.
func (ix *Index) build() (*sideFile, error) {
	digest, err := hex.DecodeString(ix.digest)
	if err != nil || len(digest) != sha256.Size {
		return nil, errDamaged
	}
	built, _, err := buildSide(io.NewSectionReader(ix.body, 0, ix.size), ix.size, [sha256.Size]byte(digest), false)
	if err != nil {
		return nil, err
	}
	s, err := built.open()
	if err != nil {
		return nil, err
	}
	ix.mu.Lock()
	ix.side = s
	ix.mu.Unlock()
	return built, nil
}

// damaged forgets the cached index, so that the next reading fetches it.
func (ix *Index) damaged(err error) error {
	if errors.Is(err, errDamaged) {
		ix.drop()
	}
	return fmt.Errorf("reading the cached index of %s: %w", ix.location, err)
}
