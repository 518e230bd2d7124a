package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

const indexDir = "index"

// A store keeps the index of one marketplace below cache/index:
//
//	<name>.json               the pointer (pointer.go)
//	<name>@<digest>.body      the index as it came
//	<name>@<digest>.side3     its side file (side.go); other numbers are those of other programs
//	<name>@<digest>.minisig   what vouches for it, and <name>.keys (vouchers.go)
//	<name>.lock               held while the pointer changes
//
// The files of an index are named after it, so whoever read a pointer finds that index or none, never a mixture. They
// are not flushed to the disk: each is bound to a digest, and what does not match is fetched or built again.
type store struct {
	dir      *cacheDir
	location string
	name     string
	now      func() time.Time
}

func newStore(dir *cacheDir, src source, now func() time.Time) *store {
	location, name := src.id()
	return &store{dir, location, name, now}
}

func (s *store) pointerFile() string { return s.name + ".json" }

func (s *store) file(digest, kind string) string {
	return s.name + "@" + digest[:16] + "." + kind
}

// load reads the pointer; nil when there is none that can be used.
func (s *store) load() (*pointer, error) {
	data, err := atomicfile.Read(filepath.Join(s.dir.path, indexDir, s.pointerFile()), pointerLimit)
	if isMissing(err) {
		return nil, nil
	}
	var p *pointer
	if err == nil {
		p, err = parsePointer(data)
	}
	if p != nil && p.Location != s.location { // the names of files are short: another one on the same host can have been made to have this one's
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cached index of %q: %w", s.name, err)
	}
	return p, nil
}

// cached gives the pointer and the index that it names; nil, nil when there is none that can be used. Another process
// may replace the index between the two steps, so they are tried again when the pointer has changed.
func (s *store) cached() (*pointer, *Index, error) {
	last := ""
	for {
		p, err := s.load()
		if err != nil || p == nil || p.Digest == last {
			return nil, nil, err
		}
		if ix := s.open(p); ix != nil {
			return p, ix, nil
		}
		last = p.Digest
	}
}

// open opens the index that p names; nil when its files are not what p says. A missing or damaged side file is built
// again.
func (s *store) open(p *pointer) *Index {
	root, err := s.dir.sub(indexDir, false)
	if err != nil {
		return nil
	}
	body, size, err := openRegular(root, s.file(p.Digest, "body"))
	if err != nil {
		return nil
	}
	ix := &Index{location: p.Location, digest: p.Digest, size: p.Size, fetched: p.Fetched, body: body}
	if size != p.Size {
		body.Close()
		return nil
	}
	if ix.side = s.openSide(root, p); ix.side == nil && s.rebuild(ix) != nil {
		body.Close()
		return nil
	}
	ix.drop = func() { root.Remove(s.pointerFile()) }
	return ix
}

func (s *store) openSide(root *os.Root, p *pointer) *side {
	f, size, err := openRegular(root, s.file(p.Digest, sideKind))
	if err != nil {
		return nil
	}
	sd, err := openSide(f, size)
	if err != nil || hex.EncodeToString(sd.digest[:]) != p.Digest || sd.bodySize != p.Size {
		f.Close()
		return nil
	}
	return sd
}

// rebuild makes the side file of ix from its body. A cache that cannot be written does not stop it.
func (s *store) rebuild(ix *Index) error {
	built, err := ix.build()
	if err != nil {
		return err
	}
	if root, err := s.dir.sub(indexDir, true); err == nil {
		_ = putWith(root, s.file(ix.digest, sideKind), built.writeTo)
	}
	return nil
}

// A download is an index that has just come in, in memory or in a temporary file.
type download struct {
	mem    []byte
	tmp    *temp          // nil when mem holds the bytes
	said   *trust.Message // for signatures; nil when nobody judges them
	digest [sha256.Size]byte
	size   int64
}

func (d *download) drop() {
	if d.tmp != nil {
		d.tmp.drop()
	}
}

// unkeptIndex is up to which size an index stays in memory where the cache cannot be written: some ten thousand entries.
const unkeptIndex = 16 << 20

// hold reads an index of at most limit bytes into memory; tooLarge is what one that is larger means.
func hold(r io.Reader, limit int64, tooLarge error) (*download, error) {
	mem, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(mem)) > limit {
		err = tooLarge
	}
	if err != nil {
		return nil, err
	}
	return &download{mem: mem, digest: sha256.Sum256(mem), size: int64(len(mem))}, nil
}

// take reads an index. keep says whether it goes into the cache; else it stays in memory. Where the cache cannot be
// written, spare lets it stay in memory all the same.
func (s *store) take(r io.Reader, keep, spare bool) (*download, error) {
	if !keep {
		return hold(r, smallIndex, errors.New("the index grew while it was read"))
	}
	root, err := s.dir.sub(indexDir, true)
	var t *temp
	if err == nil {
		t, err = newTemp(root)
	}
	if err != nil {
		err = final{fmt.Errorf("writing the cached index of %q: %w", s.name, bare(err))}
		if spare && atomicfile.Unwritable(err) {
			return hold(r, unkeptIndex, err)
		}
		return nil, err
	}
	n, tooMuch, err := copyLimited(t, r, manifest.MaxIndexBytes)
	if err == nil && tooMuch {
		err = final{fmt.Errorf("the index is larger than %d bytes", manifest.MaxIndexBytes)}
	}
	if err != nil {
		t.drop()
		return nil, err
	}
	return &download{tmp: t, digest: [sha256.Size]byte(t.sum.Sum(nil)), size: n}, nil
}

// side makes the index's side file (buildSide).
func (d *download) side(strict bool) (side *sideFile, head []byte, err error) {
	if d.tmp == nil {
		return buildSide(bytes.NewReader(d.mem), d.size, d.digest, strict)
	}
	f, err := d.tmp.root.Open(d.tmp.name)
	if err != nil {
		return nil, nil, bare(err)
	}
	defer f.Close()
	return buildSide(f, d.size, d.digest, strict)
}

// commit puts an index in place: its files, then the pointer, then what nobody names any more is removed.
func (s *store) commit(ctx context.Context, p *pointer, d *download, built *sideFile) error {
	return s.locked(ctx, func(root *os.Root) error {
		if err := s.put(p, d, built); err != nil {
			return err
		}
		return s.point(root, p)
	})
}

// put writes the files of an index, which nothing names yet.
func (s *store) put(p *pointer, d *download, built *sideFile) error {
	root, err := s.dir.sub(indexDir, true)
	if err == nil {
		err = d.tmp.keep(s.file(p.Digest, "body"))
	}
	if err == nil {
		err = putWith(root, s.file(p.Digest, sideKind), built.writeTo)
	}
	return err
}

// confirm notes that the marketplace still has the index that p names. still, if any, is asked under the lock whether
// that is the word that counts; without it the pointer's own is.
func (s *store) confirm(ctx context.Context, p *pointer, still func() (bool, error)) error {
	return s.locked(ctx, func(root *os.Root) error {
		if still == nil {
			still = func() (bool, error) {
				now, err := s.load()
				return now == nil || now.Digest == p.Digest, err
			}
		}
		if yes, err := still(); err != nil || !yes {
			return err // another process was quicker; its word is newer
		}
		return s.point(root, p)
	})
}

func (s *store) locked(ctx context.Context, do func(*os.Root) error) error {
	root, err := s.dir.sub(indexDir, true)
	if err != nil {
		return err
	}
	unlock, err := atomicfile.Lock(ctx, filepath.Join(s.dir.path, indexDir, s.name+".lock"), nil)
	if err != nil {
		return err
	}
	defer unlock()
	return do(root)
}

// point writes the pointer, unknown members of the present one kept, and sweeps.
func (s *store) point(root *os.Root, p *pointer) error {
	if old, err := s.load(); err != nil {
		return err
	} else if old != nil {
		p.rest = old.rest
	}
	data, err := p.marshal()
	if err != nil {
		return err
	}
	if err := putFile(root, s.pointerFile(), data); err != nil {
		return err
	}
	sweep(root, s.now(), func(e fs.DirEntry) bool {
		kind, ours := strings.CutPrefix(e.Name(), s.file(p.Digest, ""))
		if !ours {
			return strings.HasPrefix(e.Name(), s.name+"@")
		}
		return kind != sideKind && strings.HasPrefix(kind, "side") && isOlder(e, s.now(), pruneAge)
	})
	return nil
}

// memoryIndex is an index that is not kept in the cache.
func memoryIndex(location string, d *download, built *sideFile, fetched time.Time) (*Index, error) {
	sd, err := built.open()
	if err != nil {
		return nil, err
	}
	return &Index{location: location, digest: hex.EncodeToString(d.digest[:]), size: d.size, fetched: fetched,
		body: bytes.NewReader(d.mem), side: sd, drop: func() {}}, nil
}

// readAll reads the whole index behind r and holds it to its digest.
func readAll(r io.ReaderAt, size int64, digest string) ([]byte, error) {
	body := make([]byte, size)
	if n, err := r.ReadAt(body, 0); int64(n) != size {
		if err == io.EOF {
			err = errDamaged
		}
		return nil, err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != digest {
		return nil, errDamaged
	}
	return body, nil
}

var errNoCache = errors.New("the network was not asked, and there is no kept index")
