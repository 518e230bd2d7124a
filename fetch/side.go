package fetch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The side file makes finding cheap in an index of any size. It belongs to the bytes of one index, named by their
// SHA-256, and holds no word of truth of its own: it says where an entry's bytes are, and their hash.
//
//	header   64 bytes: magic, digest of the index, its size, number of entries, length of the text, two checksums
//	records  28 bytes an entry, sorted by folded id: place of its text, place and length of its bytes, their hash
//	text     a line an entry, same order: folded id, name, tags, description, kind (see skim.go)
//	marks    which blocks of the text may have a word (see marks.go)
//	table    a CRC-32 for each page of records, text and marks
//
// Numbers are little-endian. A page that does not match its checksum makes the file damaged; it is then built again.
const (
	sideMagic  = "skaldix\x03"
	sideKind   = "side3" // how its file's name ends: another form has another name, so two programs can share a cache
	headerSize = 64
	recordSize = 28
	sumSize    = 16
	pageSize   = 4096
)

// errDamaged says that a side file, or the index behind it, does not hold what was written.
var errDamaged = errors.New("damaged")

// crc is the checksum of the IEEE polynomial: the tables of the other one take longer to make than a look-up.
func crc(p []byte) uint32 { return crc32.ChecksumIEEE(p) }

// A row is one entry while a side file is built.
type row struct {
	text     []byte // its line, line end included
	keyLen   int
	off, len uint32 // its bytes in the index
	sum      [sumSize]byte
}

func (r *row) key() []byte { return r.text[:r.keyLen] }

// A sideFile is what a side file is going to hold: the rows, sorted, and which index they are of.
type sideFile struct {
	rows     []row
	digest   [sha256.Size]byte
	bodySize int64
}

// writeTo writes the side file. Errors are those of w.
func (s *sideFile) writeTo(w io.Writer) error {
	var sums pageSums
	out := bufio.NewWriterSize(&sums, copyBuffer)
	marks := s.marks()
	s.data(out, marks)
	if err := out.Flush(); err != nil {
		return err
	}
	table := sums.end()
	out.Reset(w) // which keeps its first error for Flush
	out.Write(s.header(table))
	s.data(out, marks)
	out.Write(table)
	return out.Flush()
}

// bytes is the side file in memory.
func (s *sideFile) bytes() []byte {
	var b bytes.Buffer
	_ = s.writeTo(&b) // memory does not fail
	return b.Bytes()
}

// open is openSide for the side file in memory.
func (s *sideFile) open() (*side, error) {
	b := s.bytes()
	return openSide(bytes.NewReader(b), int64(len(b)))
}

func (s *sideFile) textLen() (n int) {
	for i := range s.rows {
		n += len(s.rows[i].text)
	}
	return n
}

// data writes records, text and marks.
func (s *sideFile) data(out *bufio.Writer, marks []byte) {
	at := 0
	for i := range s.rows {
		r := &s.rows[i]
		b := binary.LittleEndian.AppendUint32(out.AvailableBuffer(), uint32(at))
		b = binary.LittleEndian.AppendUint32(b, r.off)
		b = binary.LittleEndian.AppendUint32(b, r.len)
		out.Write(append(b, r.sum[:]...))
		at += len(r.text)
	}
	for i := range s.rows {
		out.Write(s.rows[i].text)
	}
	out.Write(marks)
}

func (s *sideFile) header(table []byte) []byte {
	h := append(make([]byte, 0, headerSize), sideMagic...)
	h = append(h, s.digest[:]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(s.bodySize))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(s.rows)))
	h = binary.LittleEndian.AppendUint32(h, uint32(s.textLen()))
	h = binary.LittleEndian.AppendUint32(h, crc(table))
	return binary.LittleEndian.AppendUint32(h, crc(h))
}

// pageSums makes the table of checksums of what is written to it.
type pageSums struct {
	table []byte
	sum   uint32
	n     int // bytes of the present page
}

func (p *pageSums) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		k := min(len(rest), pageSize-p.n)
		p.sum, p.n = crc32.Update(p.sum, crc32.IEEETable, rest[:k]), p.n+k
		if rest = rest[k:]; p.n == pageSize {
			p.close()
		}
	}
	return len(b), nil
}

func (p *pageSums) close() {
	p.table = binary.LittleEndian.AppendUint32(p.table, p.sum)
	p.sum, p.n = 0, 0
}

// end gives the table.
func (p *pageSums) end() []byte {
	if p.n > 0 {
		p.close()
	}
	return p.table
}
