package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"skald-connectors/fetch/trust"
)

// Export writes a bundle, which this marketplace gave, as a bundle file. packages, if any, is a folder with downloads of
// npm and pip. The signatures and the keys documents of a signed marketplace are those that are kept in the cache, and judged once
// more; the marketplace is asked only for what the cache does not have.
// The same bundle gives the same bytes.
func (m *Marketplace) Export(ctx context.Context, b *Bundle, packages string, w io.Writer) error {
	e := &export{tar: tar.NewWriter(w), m: m, b: b}
	if err := e.write(ctx, packages); err != nil {
		return fmt.Errorf("writing the bundle of %q: %w", b.entry.ID, err)
	}
	if err := e.tar.Close(); err != nil {
		return fmt.Errorf("writing the bundle of %q: %w", b.entry.ID, err)
	}
	return nil
}

type export struct {
	tar *tar.Writer
	m   *Marketplace
	b   *Bundle
}

func (e *export) add(name string, size int64, r io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if err := e.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(e.tar, r)
	return err
}

func (e *export) bytes(name string, data []byte) error {
	return e.add(name, int64(len(data)), bytes.NewReader(data))
}

func (e *export) write(ctx context.Context, packages string) error {
	head, err := json.MarshalIndent(bundleHead{Format: bundleFormat, Location: e.m.Location(), ID: e.b.entry.ID, Version: int64(e.b.entry.Version), Made: e.b.index.fetched.UTC()}, "", "  ")
	if err != nil {
		return err
	}
	if err := e.bytes(bundleName, append(head, '\n')); err != nil {
		return err
	}
	if err := e.index(ctx); err != nil {
		return err
	}
	for _, f := range e.b.files {
		if err := e.file(f.Path); err != nil {
			return err
		}
	}
	if packages == "" {
		return nil
	}
	return walkRegular(packages, func(name string, size int64) error {
		if !safePackagePath(name) {
			return fmt.Errorf("npm or pip wrote the file %q, which is not a plain path", name)
		}
		f, err := os.Open(filepath.Join(packages, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		defer f.Close()
		return e.add(packagesPrefix+name, size, f)
	})
}

func (e *export) file(name string) error {
	r, err := e.b.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, f := range e.b.files {
		if f.Path == name {
			return e.add(filesPrefix+name, f.Size, r)
		}
	}
	return nil
}

// index writes the index whole where signatures are over it, and else what is needed of it.
func (e *export) index(ctx context.Context) error {
	if !e.b.index.trust.Signed {
		one := fmt.Sprintf("{\"version\": 1, \"connectors\": [%s]}\n", e.b.entry.Raw)
		return e.bytes(indexName, []byte(one))
	}
	body, err := readAll(e.b.index.body, e.b.index.size, e.b.index.digest)
	if err != nil {
		return err
	}
	state, err := e.m.remembered()
	if err == nil && state == nil {
		err = fmt.Errorf("what was known of %s is gone", e.m.Location())
	}
	if err != nil {
		return err
	}
	keys, err := state.Keys()
	if err != nil {
		return err
	}
	signatures, err := e.m.indexSignatures(ctx, keys, e.b.index.digest, body)
	if err != nil {
		return err
	}
	if err := e.bytes(indexName, body); err != nil {
		return err
	}
	if err := e.bytes(signatureName, signatures); err != nil || keys.Version == 0 {
		return err
	}
	return e.keys(ctx, keys)
}

// keys writes the newest keys document and the history of it.
func (e *export) keys(ctx context.Context, keys *trust.Keys) error {
	list, err := e.m.keysChain(ctx, keys)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := e.voucher(keysName, list[0]); err != nil {
		return err
	}
	for i, v := range oldestFirst(list) {
		if err := e.voucher(fmt.Sprintf("keys/%d.json", keys.Version-int64(len(list)-1-i)), v); err != nil {
			return err
		}
	}
	return nil
}

func (e *export) voucher(name string, v voucher) error {
	if err := e.bytes(name, v.Document); err != nil {
		return err
	}
	return e.bytes(name+".minisig", v.Signatures)
}
