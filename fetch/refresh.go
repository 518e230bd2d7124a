package fetch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// smallIndex is up to which size the index of a local marketplace is read each time and kept nowhere.
const smallIndex = 1 << 20

// Index reads the index. With Cached and Refresh a marketplace that cannot be asked falls back to the cached index, and
// Index.Err says why; *UnreachableError when there is none. An index that contradicts itself is a *BrokenError and
// never falls back; nor does Refresh after a *RedirectError. Local marketplaces are read each time.
//
// An index of a signed marketplace is judged before anything else sees it: *trust.Error when it is not believed. One that
// was believed and has run out since is given to Cached and Offline, and Trust says so; Refresh refuses it.
func (m *Marketplace) Index(ctx context.Context, mode Freshness) (*Index, error) {
	ix, err := m.read(ctx, mode)
	if err == nil && mode == Refresh && ix.trust.Stale != nil {
		return nil, ix.trust.Stale
	}
	return ix, err
}

func (m *Marketplace) read(ctx context.Context, mode Freshness) (*Index, error) {
	g, err := m.newGuard()
	if err != nil {
		return nil, err
	}
	p, cached, err := m.cached(g)
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
	ix, err := m.refresh(ctx, g, p, cached)
	if err == nil || cached == nil || ctx.Err() != nil || m.src.local() || !mayFallBack(err, mode) {
		return ix, err
	}
	cached.fromCache, cached.err = true, err
	return cached, nil
}

// cached gives what the cache has, as far as it may be used.
func (m *Marketplace) cached(g *guard) (*pointer, *Index, error) {
	p, ix, err := m.store.cached()
	if err != nil {
		return nil, nil, err
	}
	if g != nil {
		p, ix = g.known(p, ix)
	} else if ix != nil {
		ix.trust = m.unsigned(p.Says)
	}
	return p, ix, nil
}

// unsigned is what is known of an index that no signature vouches for. Without a folder to remember in, nobody asks.
func (m *Marketplace) unsigned(says bool) Trust {
	builtin := m.Location() == "builtin"
	_, bundled := m.src.(*tarSource)
	return Trust{Builtin: builtin && !bundled, Bundled: bundled, Ignored: says && !builtin && m.o.TrustDir != ""}
}

// isFresh tells whether the cached index needs no question. One from the future is not: a clock was wrong.
func (m *Marketplace) isFresh(p *pointer) bool {
	age := m.o.Now().Sub(p.Fetched)
	return age >= 0 && age <= freshFor
}

// mayFallBack: whatever keeps a new index from us leaves the old one good, except an index that cannot be trusted and, for what
// changes the machine, a server that leads away from https.
func mayFallBack(err error, mode Freshness) bool {
	var (
		broken  *BrokenError
		refused *trust.Error
		damaged *trust.DamagedError
		away    *RedirectError
	)
	return !errors.As(err, &broken) && !errors.As(err, &refused) && !errors.As(err, &damaged) && (mode != Refresh || !errors.As(err, &away))
}

// afresh reads the index without trusting any cache.
func (m *Marketplace) afresh(ctx context.Context) (*Index, error) {
	g, err := m.newGuard()
	if err != nil {
		return nil, err
	}
	return m.refresh(ctx, g, nil, nil)
}

// refresh asks the marketplace. p and cached are what the cache has, or nil.
func (m *Marketplace) refresh(ctx context.Context, g *guard, p *pointer, cached *Index) (*Index, error) {
	var known validators
	if p != nil {
		known = p.validators()
	}
	var d *download
	g.begin(ctx)
	now, unchanged, err := m.src.index(ctx, known, func(r io.Reader, size int64) (err error) {
		if d != nil {
			d.drop()
		}
		d, err = m.receive(g, r, size)
		return err
	})
	if d != nil {
		defer d.drop()
	}
	if turned := g.ended(); err == nil {
		err = turned
	}
	if err != nil {
		return nil, err
	}
	location, _ := m.src.id()
	fresh := &pointer{Format: pointerFormat, Location: location, ETag: now.ETag, Modified: now.LastModified, Fetched: m.o.Now().UTC().Truncate(time.Second)}
	if unchanged || cached != nil && d.tmp != nil && hex.EncodeToString(d.digest[:]) == cached.digest {
		fresh.Digest, fresh.Size = cached.digest, cached.size
		cached.fetched = fresh.Fetched
		if g != nil {
			if err := g.confirm(); err != nil {
				return nil, err
			}
			g.vouch(cached)
		}
		fresh.Says = cached.trust.Ignored
		err := m.store.confirm(ctx, fresh, g.still(fresh.Digest))
		if atomicfile.Unwritable(err) {
			err = nil // the next one asks again
		}
		return cached, m.written(err)
	}
	fresh.Digest, fresh.Size = hex.EncodeToString(d.digest[:]), d.size
	if g != nil {
		return m.acceptSigned(ctx, g, fresh, d)
	}
	return m.accept(ctx, fresh, d)
}

// acceptSigned puts a new index into the cache when its guard believes it.
func (m *Marketplace) acceptSigned(ctx context.Context, g *guard, p *pointer, d *download) (*Index, error) {
	side, err := g.admit(ctx, p, d)
	if err != nil {
		if _, refused := errors.AsType[*trust.Error](err); refused { // it names the marketplace itself
			return nil, err
		}
		return nil, fmt.Errorf("reading the index of %s: %w", p.Location, err)
	}
	ix, err := m.opened(p, d, side)
	if err != nil {
		return nil, err
	}
	g.vouch(ix)
	if d.tmp != nil {
		g.gather(ctx)
	}
	return ix, nil
}

// opened opens an index that has just been taken in.
func (m *Marketplace) opened(p *pointer, d *download, side *sideFile) (*Index, error) {
	if d.tmp == nil {
		return memoryIndex(p.Location, d, side, p.Fetched)
	}
	ix := m.store.open(p)
	if ix == nil {
		return nil, fmt.Errorf("reading the cached index of %s: %w", p.Location, errDamaged)
	}
	return ix, nil
}

// receive reads an index as it comes in. Its errors other than those of r are final.
func (m *Marketplace) receive(g *guard, r io.Reader, size int64) (*download, error) {
	if size > manifest.MaxIndexBytes {
		return nil, final{fmt.Errorf("the index has %d bytes, more than %d", size, manifest.MaxIndexBytes)}
	}
	keep := !m.src.local() || size > smallIndex
	if t, bundled := m.src.(*tarSource); bundled {
		// What a bundle says of a marketplace that is not signed is nobody's word but the bundle's: it never gets into
		// the cache of that marketplace.
		if keep = g != nil; !keep && size > smallIndex {
			return nil, final{&BundleFileError{t.tar.path, fmt.Sprintf("its index has %d bytes, more than %d, and is not signed", size, smallIndex)}}
		}
	}
	var said *trust.Message
	if g != nil { // the bytes that signatures are held against are those that come in, not those that are read again
		said = trust.NewMessage(r)
		r = said
	}
	d, err := m.store.take(r, keep, g == nil) // what was seen of a signed one has to be written down
	if err != nil {
		return nil, err
	}
	d.said = said
	if d.size == 0 {
		d.drop()
		return nil, final{fmt.Errorf("reading the index of %s: it is empty", m.Location())}
	}
	return d, nil
}

// accept puts a new index of a marketplace that is not signed into the cache.
func (m *Marketplace) accept(ctx context.Context, p *pointer, d *download) (*Index, error) {
	side, head, err := d.side(false)
	if err != nil {
		return nil, fmt.Errorf("reading the index of %s: %w", p.Location, err)
	}
	p.Says = trust.Announces(head)
	if d.tmp != nil {
		if err := m.written(m.store.commit(ctx, p, d, side)); err != nil {
			return nil, err
		}
	}
	ix, err := m.opened(p, d, side)
	if err == nil {
		ix.trust = m.unsigned(p.Says)
	}
	return ix, err
}

func (m *Marketplace) written(err error) error {
	if err != nil {
		return fmt.Errorf("keeping the index of %s: %w", m.Location(), err)
	}
	return nil
}
