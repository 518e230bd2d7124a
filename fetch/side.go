package fetch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"

	"skald-connectors/internal/exactjson"
)

// The side file makes finding cheap in an index of any size. It belongs to the bytes of one index, named by their
// SHA-256, and holds no word of truth of its own: it says where an entry's bytes are, and their hash.
//
//	header   64 bytes: magic, digest of the index, its size, number of entries, length of the text, two checksums
//	records  28 bytes an entry, sorted by folded id: place of its text, place and length of its bytes, their hash
//	text     a line an entry, same order: folded id, name, tags, description, kind (see skim.go)
//	table    a CRC-32C for each page of records and text
//
// Numbers are little-endian. A page that does not match its checksum makes the file damaged; it is then built again.
const (
	sideMagic  = "skaldix\x01"
	headerSize = 64
	recordSize = 28
	sumSize    = 16
	pageSize   = 4096

	// entryDepth is how deeply an entry of a signed index may nest; what the format knows stays below ten.
	entryDepth = 64
)

// errDamaged says that a side file, or the index behind it, does not hold what was written.
var errDamaged = errors.New("damaged")

// crcTable is the Castagnoli polynomial, which processors compute themselves.
func crc(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// A row is one entry while a side file is built.
type row struct {
	text     []byte // its line, line end included
	keyLen   int
	off, len uint32 // its bytes in the index
	sum      [sumSize]byte
}

func (r *row) key() []byte { return r.text[:r.keyLen] }

// buildSide makes the side file of an index whose digest is known, and gives the index without its entries. A
// *BrokenError means that the index contradicts itself, any other error that it is not an index. strict refuses the
// whole index for a repeated key or a case twin anywhere, as a signed one is read.
func buildSide(body []byte, digest [sha256.Size]byte, strict bool) (side, head []byte, err error) {
	rows, err := rangesOf(body)
	if err != nil {
		return nil, nil, err
	}
	head = body
	if n := len(rows); n > 0 {
		head = slices.Concat(body[:rows[0].off], body[rows[n-1].off+rows[n-1].len:])
	}
	if err := fillRows(body, rows, strict); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(bytes.Compare(a.key(), b.key()), cmp.Compare(a.off, b.off))
	})
	return encodeSide(rows, digest, len(body)), head, nil
}

func rangesOf(body []byte) ([]row, error) {
	rows := make([]row, 0, len(body)/1024+16)
	for r, err := range exactjson.ArrayElements(body, "connectors") {
		var syntax *exactjson.SyntaxError
		if errors.As(err, &syntax) && syntax.Repeat != nil {
			return nil, &BrokenError{Reason: syntax.Error()}
		}
		if err != nil {
			return nil, fmt.Errorf("it is not an index: %w", err)
		}
		if len(rows) == entriesLimit {
			return nil, fmt.Errorf("it has more than %d entries", entriesLimit)
		}
		rows = append(rows, row{off: uint32(r[0]), len: uint32(r[1] - r[0])})
	}
	return rows, nil
}

// fillRows skims and hashes the entries, a part on each processor.
func fillRows(body []byte, rows []row, strict bool) error {
	workers := min(runtime.GOMAXPROCS(0), len(rows)/64+1)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		part := rows[len(rows)*w/workers : len(rows)*(w+1)/workers]
		wg.Go(func() {
			if strict {
				errs[w] = strictPart(body, part)
			}
			fillPart(body, part)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// strictPart parses entries and refuses one that says something twice.
func strictPart(body []byte, rows []row) error {
	for i := range rows {
		r := &rows[i]
		_, repeats, err := exactjson.Parse(body[r.off:r.off+r.len], entryDepth)
		if err != nil {
			return &BrokenError{Reason: fmt.Sprintf("the entry at byte %d: %v", r.off, err)}
		}
		if len(repeats) > 0 {
			return &BrokenError{Reason: fmt.Sprintf("the entry at byte %d has the member %q twice, or in two spellings", r.off, repeats[0].Path)}
		}
	}
	return nil
}

// textBlock is the size in which room for text is taken: growing one slice would copy it over and over.
const textBlock = 1 << 20

func fillPart(body []byte, rows []row) {
	var block []byte
	for i := range rows {
		r := &rows[i]
		entry := body[r.off : r.off+r.len]
		if cap(block)-len(block) < 8*textLimit {
			block = make([]byte, 0, textBlock)
		}
		start := len(block)
		block, r.keyLen = appendText(block, entry)
		r.text = block[start:len(block):len(block)]
		sum := sha256.Sum256(entry)
		r.sum = [sumSize]byte(sum[:])
	}
}

func encodeSide(rows []row, digest [sha256.Size]byte, bodySize int) []byte {
	textLen := 0
	for i := range rows {
		textLen += len(rows[i].text)
	}
	data := recordSize*len(rows) + textLen
	pages := (data + pageSize - 1) / pageSize
	out := make([]byte, headerSize, headerSize+data+4*pages)
	at := 0
	for i := range rows {
		r := &rows[i]
		out = binary.LittleEndian.AppendUint32(out, uint32(at))
		out = binary.LittleEndian.AppendUint32(out, r.off)
		out = binary.LittleEndian.AppendUint32(out, r.len)
		out = append(out, r.sum[:]...)
		at += len(r.text)
	}
	for i := range rows {
		out = append(out, rows[i].text...)
	}
	for p := range slices.Chunk(out[headerSize:headerSize+data], pageSize) {
		out = binary.LittleEndian.AppendUint32(out, crc(p))
	}
	h := append(out[:0], sideMagic...)
	h = append(h, digest[:]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(bodySize))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(rows)))
	h = binary.LittleEndian.AppendUint32(h, uint32(textLen))
	h = binary.LittleEndian.AppendUint32(h, crc(out[headerSize+data:]))
	binary.LittleEndian.AppendUint32(h, crc(h))
	return out
}
