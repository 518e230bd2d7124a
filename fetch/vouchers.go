package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
)

// What vouches for the cached index of a signed marketplace is kept beside it, so that a bundle file needs no network:
//
//	<name>@<digest>.minisig   the signatures over that index
//	<name>.keys               the keys documents with theirs; this file owns its format
//
// Nobody believes what stands there: it is judged again when it is used.

const (
	vouchersFormat = 1
	// vouchersLimit bounds <name>.keys: far more documents than a chain of rotations has in practice. A file above it is begun anew.
	vouchersLimit = 4 << 20
)

// A voucher is a keys document with its signatures.
type voucher struct {
	Document   []byte `json:"document"`
	Signatures []byte `json:"signatures"`
}

// vouchers are the keys documents that are kept, by their versions.
type vouchers struct {
	Format    int               `json:"format"`
	Documents map[int64]voucher `json:"documents"`
}

func (s *store) vouchersFile() string { return s.name + ".keys" }

// vouchers reads what is kept; what cannot be read counts as nothing. newer tells that a newer program wrote it.
func (s *store) vouchers() (v vouchers, newer bool) {
	data, err := atomicfile.Read(filepath.Join(s.dir.path, indexDir, s.vouchersFile()), vouchersLimit)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if newer = err == nil && v.Format > vouchersFormat; err != nil || newer || v.Documents == nil {
		v = vouchers{Documents: map[int64]voucher{}}
	}
	v.Format = vouchersFormat
	return v, newer
}

// addVouchers keeps keys documents. The caller holds the store's lock.
func (s *store) addVouchers(root *os.Root, add map[int64]voucher) error {
	v, newer := s.vouchers()
	if newer {
		return nil
	}
	maps.Copy(v.Documents, add)
	data, err := json.Marshal(v)
	if err == nil && len(data) > vouchersLimit {
		v.Documents = add
		data, err = json.Marshal(v)
	}
	if err != nil {
		return err
	}
	return putFile(root, s.vouchersFile(), data)
}

// putSignatures keeps the signatures over the index with this digest.
func (s *store) putSignatures(digest string, signatures []byte) error {
	root, err := s.dir.sub(indexDir, true)
	if err != nil {
		return err
	}
	return putFile(root, s.file(digest, "minisig"), signatures)
}

func (s *store) signatures(digest string) []byte {
	data, err := atomicfile.Read(filepath.Join(s.dir.path, indexDir, s.file(digest, "minisig")), trust.MaxSignatureBytes)
	if err != nil {
		return nil
	}
	return data
}

// signs tells whether v is a keys document that its own root keys signed; top is what it says.
func (v voucher) signs() (top *trust.Keys, ok bool) {
	k, err := trust.ParseKeys(v.Document)
	if err != nil {
		return nil, false
	}
	own, err := trust.Pin(k.Root, k.RootThreshold)
	if err == nil {
		_, err = own.Next(v.Document, v.Signatures)
	}
	return k, err == nil
}

// chain gives the keys document that is believed and those before it, newest first, as far as each is followed by the next one.
// get gives what is said to be the document of a version; ok false: there is none.
func chain(now []byte, get func(version int64) (v voucher, ok bool)) (list []voucher) {
	k, err := trust.ParseKeys(now)
	if err != nil {
		return nil
	}
	for version := k.Version; version >= 1 && len(list) <= trust.MaxRotations; version-- {
		v, ok := get(version)
		if !ok {
			return list
		}
		is, ok := v.signs()
		switch {
		case !ok || is.Version != version:
			return list
		case len(list) == 0 && !bytes.Equal(v.Document, now):
			return nil
		case len(list) > 0:
			last := list[len(list)-1]
			if _, err := is.Next(last.Document, last.Signatures); err != nil {
				return list
			}
		}
		list = append(list, v)
	}
	return list
}

// gather completes what is kept of the keys documents, where an index was taken in. It is no part of that: what the marketplace does
// not show now, it may show when a bundle is made.
func (g *guard) gather(ctx context.Context) {
	keys, err := g.state.Keys()
	if err != nil || keys.Version == 0 {
		return
	}
	kept, _ := g.m.store.vouchers()
	add := map[int64]voucher{}
	list := chain(keys.Document(), func(version int64) (voucher, bool) {
		if v, ok := kept.Documents[version]; ok {
			return v, true
		}
		v, err := g.m.voucher(ctx, version, version == keys.Version)
		if err != nil {
			return voucher{}, false
		}
		add[version] = v
		return v, true
	})
	if len(add) == 0 || len(list) == 0 {
		return
	}
	_ = g.m.store.locked(ctx, func(root *os.Root) error { return g.m.store.addVouchers(root, add) })
}

var errNoVoucher = errors.New("the marketplace does not have it")

// voucher asks the marketplace for a keys document.
func (m *Marketplace) voucher(ctx context.Context, version int64, newest bool) (v voucher, err error) {
	name := fmt.Sprintf("keys/%d.json", version)
	if newest {
		name = keysName
	}
	if v.Document, err = m.small(ctx, name, trust.MaxKeysBytes); err == nil && v.Document != nil {
		v.Signatures, err = m.small(ctx, name+".minisig", trust.MaxSignatureBytes)
	}
	if err == nil && (v.Document == nil || v.Signatures == nil) {
		err = errNoVoucher
	}
	if err != nil {
		return voucher{}, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// indexSignatures gives signatures over an index that the keys of today count: those that are kept, or the marketplace's.
func (m *Marketplace) indexSignatures(ctx context.Context, keys *trust.Keys, digest string, body []byte) ([]byte, error) {
	said, err := trust.ReadMessage(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kept := m.store.signatures(digest); kept != nil {
		if _, err := keys.Signers(said, kept); err == nil {
			return kept, nil
		}
	}
	found, err := m.small(ctx, signatureName, trust.MaxSignatureBytes)
	if err == nil && found == nil {
		err = errNoVoucher
	}
	if err == nil {
		_, err = keys.Signers(said, found)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", signatureName, m.here(err))
	}
	return found, nil
}

// keysChain gives the believed keys document and what is known of those before it, newest first, from what is kept or from the
// marketplace. It is empty where the program brought the keys along and the marketplace shows no document.
func (m *Marketplace) keysChain(ctx context.Context, keys *trust.Keys) ([]voucher, error) {
	kept, _ := m.store.vouchers()
	var why error
	list := chain(keys.Document(), func(version int64) (voucher, bool) {
		if v, ok := kept.Documents[version]; ok {
			return v, true
		}
		v, err := m.voucher(ctx, version, version == keys.Version)
		why = errors.Join(why, err)
		return v, err == nil
	})
	if len(list) > 0 || m.o.Keys != nil && errors.Is(why, errNoVoucher) {
		return list, nil
	}
	if why == nil {
		why = fmt.Errorf("%s: what the marketplace shows is not the document that is believed here", keysName)
	}
	return nil, why
}

// oldestFirst is the order in which a bundle file has them.
func oldestFirst(list []voucher) []voucher {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
