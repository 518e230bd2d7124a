package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"skald-connectors/fetch/trust"
)

const (
	signatureName = indexName + ".minisig"
	keysName      = "keys.json"
)

// Trust says how far an index is vouched for.
type Trust struct {
	// Signed: its signatures were judged, by keys of the user or of this program. Signers are their numbers.
	Signed  bool
	Signers []string
	// KeysVersion, Seq, Issued and Expires are those of a signed index.
	KeysVersion, Seq int64
	Issued, Expires  time.Time
	// Builtin: it came inside this program, and is vouched for as the program is.
	Builtin bool
	// Bundled: it is from a bundle file.
	Bundled bool
	// Ignored: it calls itself signed, and no key of this marketplace is pinned, so nobody judged that.
	Ignored bool
	// Stale says why a signed index is no longer good; nil: it is. Nothing is installed from a stale one.
	Stale error
	// Expired: it has run out and was taken all the same, from a bundle file, because the user said so.
	Expired bool

	revoked []trust.Revocation
}

// Trust says how far the index is vouched for.
func (ix *Index) Trust() Trust { return ix.trust }

// A guard judges what one signed marketplace sends. It is nil for the others.
type guard struct {
	m     *Marketplace
	state *trust.State
	turn  chan error // the end of rotate
}

// newGuard makes the guard of the marketplace; nil when no key vouches for it and none ever did.
func (m *Marketplace) newGuard() (*guard, error) {
	state, err := m.remembered()
	if err != nil || state == nil {
		return nil, err
	}
	return &guard{m: m, state: state}, nil
}

// remembered reads what is known of the marketplace's keys and of its last index; nil: it is not a signed one.
func (m *Marketplace) remembered() (*trust.State, error) {
	location, name := m.src.id()
	if m.o.TrustDir == "" || location == "builtin" {
		return nil, nil
	}
	stored, err := trust.Load(m.o.TrustDir, name, location)
	if err != nil {
		return nil, err
	}
	var pinned, built *trust.Keys
	if len(m.o.Pinned) > 0 {
		if pinned, err = pinnedKeys(m.o); err != nil {
			return nil, fmt.Errorf("the pinned keys of %s: %w", location, err)
		}
	}
	if m.o.Keys != nil {
		if built, err = trust.ParseKeys(m.o.Keys); err != nil {
			return nil, fmt.Errorf("the keys that this program has of %s: %w", location, err)
		}
	}
	s := trust.Begin(stored, location, pinned, built)
	if _, bundled := m.src.(*tarSource); s != nil && bundled && m.o.AllowExpired {
		s.Forgive()
	}
	return s, nil
}

func pinnedKeys(o Options) (*trust.Keys, error) {
	keys := make([]trust.Key, len(o.Pinned))
	for i, text := range o.Pinned {
		k, err := trust.ParseKey(text)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	needed := o.PinnedNeeded
	if needed == 0 {
		needed = len(keys)
	}
	return trust.Pin(keys, needed)
}

// here names the marketplace in a refusal.
func (m *Marketplace) here(err error) error {
	var refused *trust.Error
	if errors.As(err, &refused) && refused.Origin == "" {
		refused.Origin = m.Location()
	}
	return err
}

// update changes what is remembered, under the marketplace's lock, starting from what another process may have written
// since. after, if any, runs under the same lock when the change is on the disk.
func (g *guard) update(ctx context.Context, change func(*trust.State) error, after func(*os.Root) error) error {
	return g.m.store.locked(ctx, func(root *os.Root) error {
		now, err := g.m.remembered()
		if err != nil {
			return err
		}
		_, name := g.m.src.id()
		if err := change(now); err != nil {
			return err
		}
		if err := now.Save(g.m.o.TrustDir, name); err != nil {
			return err
		}
		g.state = now
		if after == nil {
			return nil
		}
		return after(root)
	})
}

// still asks whether the floor is the index with this digest; nil for a marketplace that is not signed.
func (g *guard) still(digest string) func() (bool, error) {
	if g == nil {
		return nil
	}
	return func() (bool, error) {
		s, err := g.m.remembered()
		return s != nil && s.Floor != nil && s.Floor.Digest == digest, err
	}
}

// begin starts to look for newer keys, beside the index's own request.
func (g *guard) begin(ctx context.Context) {
	if g == nil {
		return
	}
	g.turn = make(chan error, 1)
	go func() { g.turn <- g.m.here(g.rotate(ctx)) }()
}

// ended waits for what begin started.
func (g *guard) ended() error {
	if g == nil {
		return nil
	}
	return <-g.turn
}

// rotate follows the keys documents to the newest one. Each is kept as soon as it is believed; one that is not ends it.
func (g *guard) rotate(ctx context.Context) error {
	keys, err := g.state.Keys()
	if err != nil {
		return err
	}
	if keys.Version == 0 {
		if keys, err = g.first(ctx, keys); err != nil || keys.Version == 0 {
			return err
		}
	}
	for range trust.MaxRotations {
		next, err := g.document(ctx, keys, fmt.Sprintf("keys/%d.json", keys.Version+1))
		if err != nil || next == nil {
			return err
		}
		keys = next
	}
	return &trust.Error{Kind: trust.Document, Why: fmt.Sprintf("more than %d keys documents at a time", trust.MaxRotations)}
}

// first looks for the first keys document after pinned keys: the newest one where the pinned keys signed it, else the
// first of the history. Without any the pinned keys sign the index.
func (g *guard) first(ctx context.Context, pinned *trust.Keys) (*trust.Keys, error) {
	k, err := g.document(ctx, pinned, keysName)
	var refused *trust.Error
	switch {
	case err != nil && !errors.As(err, &refused):
		return nil, err
	case k != nil:
		return k, nil
	}
	k, again := g.document(ctx, pinned, "keys/1.json")
	switch {
	case k != nil || again != nil && !errors.As(again, &refused):
		return k, again
	case err != nil: // there is one, and it is not for us to believe
		return nil, err
	case again != nil:
		return nil, again
	}
	return pinned, nil
}

// document gets the keys document at name, believes it as the one after keys, and keeps it; nil when there is none.
func (g *guard) document(ctx context.Context, keys *trust.Keys, name string) (*trust.Keys, error) {
	doc, err := g.m.small(ctx, name, trust.MaxKeysBytes)
	if err != nil || doc == nil {
		return nil, err
	}
	signatures, err := g.m.small(ctx, name+".minisig", trust.MaxSignatureBytes)
	if err != nil {
		return nil, err
	}
	if signatures == nil {
		return nil, &trust.Error{Kind: trust.Signature, Why: fmt.Sprintf("%s has no signature beside it", name)}
	}
	next, err := keys.Next(doc, signatures)
	if err != nil {
		return nil, err
	}
	err = g.update(ctx, func(s *trust.State) error {
		if k, err := s.Keys(); err == nil && k.Version >= next.Version {
			return nil
		}
		s.Adopt(next)
		return nil
	}, func(root *os.Root) error {
		_ = g.m.store.addVouchers(root, map[int64]voucher{next.Version: {doc, signatures}}) // a bundle asks for what is not kept
		return nil
	})
	return next, err
}

// small reads a small file of the marketplace; nil when it is not there.
func (m *Marketplace) small(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = m.src.file(ctx, name, Event{File: name}, func(r io.Reader, _ int64, host string) (err error) {
		data, err = io.ReadAll(io.LimitReader(r, limit+1))
		switch {
		case err != nil:
			return err
		case int64(len(data)) > limit:
			return final{&trust.Error{Kind: trust.Document, Origin: m.Location(), Why: fmt.Sprintf("%s has more than %d bytes", name, limit)}}
		case startsMarkup(data):
			return final{&WebPageError{Host: host, What: name}}
		}
		return nil
	})
	if err != nil && (isGone(err) || isHidden(err) && strings.HasPrefix(name, "keys") && strings.HasSuffix(name, ".json")) {
		return nil, nil
	}
	return data, err
}

// isHidden tells how stores of files answer for one that is not there, to whoever may not list them. Of a keys document it says no more
// and no less than 404: whoever has the server can withhold it either way, and an index that needs it is not believed then.
func isHidden(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusForbidden
}

// isGone tells that a file is not there.
func isGone(err error) bool {
	var status *statusError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &status) && (status.code == 404 || status.code == 410)
}

// admit judges a new index, all of it, and puts it into the cache when it is believed. The order is that of security.md
// 2.3: signatures over the bytes, then strict parsing, then numbers and dates. The floor is flushed before the cache
// points at the new bytes: a kill in between leaves bytes that the floor names, which known finds.
func (g *guard) admit(ctx context.Context, p *pointer, d *download) (side *sideFile, err error) {
	signatures, err := g.m.small(ctx, signatureName, trust.MaxSignatureBytes)
	if err != nil {
		return nil, err
	}
	if signatures == nil {
		return nil, g.m.here(&trust.Error{Kind: trust.Signature, Why: "the marketplace is a signed one, and its index came without a signature"})
	}
	err = g.update(ctx, func(s *trust.State) error {
		keys, err := s.Keys()
		if err != nil {
			return err
		}
		by, err := keys.Signers(d.said, signatures)
		if err != nil {
			return err
		}
		var raw []byte
		if side, raw, err = d.side(true); err != nil {
			return err
		}
		head, err := trust.ParseHead(raw)
		if err != nil {
			return err
		}
		if f := s.Floor; f == nil || f.Digest != p.Digest || f.KeysVersion != keys.Version { // else it was believed, and may have run out since
			err = s.Admit(head, p.Digest, p.Size, by, g.m.o.Now())
		}
		if err != nil || d.tmp == nil {
			return err
		}
		if err := g.m.store.putSignatures(p.Digest, signatures); err != nil {
			return g.m.written(err)
		}
		return g.m.written(g.m.store.put(p, d, side))
	}, func(root *os.Root) error {
		if d.tmp == nil {
			return nil
		}
		return g.m.written(g.m.store.point(root, p))
	})
	return side, g.m.here(err)
}

// known brings the cached index of a signed marketplace in line with its floor: bytes that were never believed are not
// used, and the bytes that were believed last are found also where the pointer is gone.
func (g *guard) known(p *pointer, ix *Index) (*pointer, *Index) {
	f := g.state.Floor
	if f == nil {
		return nil, nil
	}
	if p == nil || p.Digest != f.Digest {
		p = &pointer{Format: pointerFormat, Location: g.m.Location(), Digest: f.Digest, Size: f.Size}
		ix = g.m.store.open(p)
	}
	if ix == nil {
		return nil, nil
	}
	g.vouch(ix)
	return p, ix
}

// vouch notes on an index what its signatures say. It must be the one of the floor.
func (g *guard) vouch(ix *Index) {
	f := g.state.Floor
	ix.trust = Trust{Signed: true, Signers: slices.Clone(f.Signers), KeysVersion: f.KeysVersion, Seq: f.Seq, Issued: f.Issued, Expires: f.Expires,
		Stale: g.m.here(g.state.Current(g.m.o.Now())), Expired: g.state.Forgiven(g.m.o.Now()), revoked: f.Revoked}
}

// confirm judges an index that the marketplace still has: new keys want a new index, and an old one stays old.
func (g *guard) confirm() error {
	keys, err := g.state.Keys()
	if err != nil {
		return err
	}
	if f := g.state.Floor; f == nil || f.KeysVersion != keys.Version {
		return g.m.here(&trust.Error{Kind: trust.Signature, Why: fmt.Sprintf("it is not signed under the newest keys, version %d", keys.Version)})
	}
	return nil
}
