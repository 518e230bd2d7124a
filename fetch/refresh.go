package fetch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"skald-connectors/manifest"
)

// smallIndex is up to which size the index of a local marketplace is read each time and kept nowhere.
const smallIndex = 1 << 20

// Index reads the index. With Cached and Refresh a marketplace that cannot be asked falls back to the cached index, and
// Index.Err says why; *UnreachableError when there is none. An index that contradicts itself is a *BrokenError and
// never falls back. Local marketplaces are read each time.
func (m *Marketplace) Index(ctx context.Context, mode Freshness) (*Index, error) {
	p, cached, err := m.store.cached()
	if err != nil {
		return nil, err
	}
	if cached != nil && !m.src.local() && (mode == Offline || mode == Cached && m.isFresh(p)) {
		cached.fromCache = true
		return cached, nil
	}
	if mode == Offline && !m.src.local() {
		return nil, &UnreachableError{Host: m.host(), Err: errNoCache}
	}
	ix, err := m.refresh(ctx, p, cached)
	if err == nil || cached == nil || ctx.Err() != nil || m.src.local() || !mayFallBack(err) {
		return ix, err
	}
	cached.fromCache, cached.err = true, err
	return cached, nil
}

// isFresh tells whether the cached index needs no question. One from the future is not: a clock was wrong.
func (m *Marketplace) isFresh(p *pointer) bool {
	age := m.o.Now().Sub(p.Fetched)
	return age >= 0 && age <= freshFor
}

// mayFallBack: whatever keeps a new index from us leaves the old one good, except an index that cannot be trusted.
func mayFallBack(err error) bool {
	var broken *BrokenError
	return !errors.As(err, &broken)
}

// afresh reads the index without trusting any cache.
func (m *Marketplace) afresh(ctx context.Context) (*Index, error) { return m.refresh(ctx, nil, nil) }

// refresh asks the marketplace. p and cached are what the cache has, or nil.
func (m *Marketplace) refresh(ctx context.Context, p *pointer, cached *Index) (*Index, error) {
	var known validators
	if p != nil {
		known = p.validators()
	}
	var d *download
	now, unchanged, err := m.src.index(ctx, known, func(r io.Reader, size int64) (err error) {
		if d != nil {
			d.drop()
		}
		d, err = m.receive(r, size)
		return err
	})
	if d != nil {
		defer d.drop()
	}
	if err != nil {
		return nil, err
	}
	location, _ := m.src.id()
	fresh := &pointer{Format: pointerFormat, Location: location, ETag: now.ETag, Modified: now.LastModified, Fetched: m.o.Now().UTC().Truncate(time.Second)}
	if unchanged || cached != nil && d.tmp != nil && hex.EncodeToString(d.digest[:]) == cached.digest {
		fresh.Digest, fresh.Size = cached.digest, cached.size
		cached.fetched = fresh.Fetched
		return cached, m.written(m.store.confirm(ctx, fresh))
	}
	return m.accept(ctx, fresh, d)
}

// receive reads an index as it comes in. Its errors other than those of r are final.
func (m *Marketplace) receive(r io.Reader, size int64) (*download, error) {
	if size > manifest.MaxIndexBytes {
		return nil, final{fmt.Errorf("the index has %d bytes, more than %d", size, manifest.MaxIndexBytes)}
	}
	d, err := m.store.take(r, !m.src.local() || size > smallIndex)
	if err != nil {
		return nil, err
	}
	if d.size == 0 {
		d.drop()
		return nil, final{fmt.Errorf("reading the index of %s: it is empty", m.Location())}
	}
	return d, nil
}

// accept judges a new index and puts it into the cache. (The signature is judged here, before anything is kept.)
func (m *Marketplace) accept(ctx context.Context, p *pointer, d *download) (*Index, error) {
	body, err := d.bytes()
	if err != nil {
		return nil, fmt.Errorf("reading the index of %s: %w", p.Location, err)
	}
	built, err := buildSide(body, d.digest)
	if err != nil {
		return nil, fmt.Errorf("reading the index of %s: %w", p.Location, err)
	}
	p.Digest, p.Size = hex.EncodeToString(d.digest[:]), d.size
	if d.tmp == nil {
		return memoryIndex(p.Location, d, built, p.Fetched)
	}
	if err := m.written(m.store.commit(ctx, p, d, built)); err != nil {
		return nil, err
	}
	ix := m.store.open(p)
	if ix == nil {
		return nil, fmt.Errorf("reading the cached index of %s: %w", p.Location, errDamaged)
	}
	return ix, nil
}

func (m *Marketplace) written(err error) error {
	if err != nil {
		return fmt.Errorf("keeping the index of %s: %w", m.Location(), err)
	}
	return nil
}
