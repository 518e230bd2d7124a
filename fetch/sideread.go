package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sort"
)

// A side is an open side file. Every page that is read is held to its checksum; errors of the content wrap nothing but
// errDamaged. It is safe for concurrent use.
type side struct {
	r        io.ReaderAt
	digest   [sha256.Size]byte
	bodySize int64
	count    int
	textLen  int64
	table    []byte
}

// openSide reads the header and the table of checksums.
func openSide(r io.ReaderAt, size int64) (*side, error) {
	h := make([]byte, headerSize)
	if _, err := r.ReadAt(h, 0); err != nil {
		return nil, errDamaged
	}
	le := binary.LittleEndian
	if string(h[:8]) != sideMagic || le.Uint32(h[60:]) != crc(h[:60]) {
		return nil, errDamaged
	}
	s := &side{r: r, digest: [sha256.Size]byte(h[8:40]), bodySize: int64(le.Uint64(h[40:])), count: int(le.Uint32(h[48:])), textLen: int64(le.Uint32(h[52:]))}
	pages := (s.data() + pageSize - 1) / pageSize
	if size != headerSize+s.data()+4*pages {
		return nil, errDamaged
	}
	s.table = make([]byte, 4*pages)
	if _, err := r.ReadAt(s.table, headerSize+s.data()); err != nil && err != io.EOF || crc(s.table) != le.Uint32(h[56:]) {
		return nil, errDamaged
	}
	return s, nil
}

// data is the length of records, text and marks.
func (s *side) data() int64 {
	return int64(s.count)*recordSize + s.textLen + markRows*markWidth(s.textLen)
}

// read gives n bytes of records, text and marks, using buf when it is large enough.
func (s *side) read(buf []byte, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off+n > s.data() {
		return nil, errDamaged
	}
	first := off / pageSize
	end := min((off+n+pageSize-1)/pageSize*pageSize, s.data())
	need := end - first*pageSize
	if int64(cap(buf)) < need {
		buf = make([]byte, need)
	}
	buf = buf[:need]
	if got, err := s.r.ReadAt(buf, headerSize+first*pageSize); int64(got) != need {
		if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			err = errDamaged
		}
		return nil, err
	}
	for at, page := int64(0), first; at < need; at, page = at+pageSize, page+1 {
		if crc(buf[at:min(at+pageSize, need)]) != binary.LittleEndian.Uint32(s.table[4*page:]) {
			return nil, errDamaged
		}
	}
	return buf[off-first*pageSize:][:n], nil
}

// A place says where an entry is: its line in the text, its bytes in the index.
type place struct {
	textOff, textLen int64
	off, len         int64
	sum              [sumSize]byte
}

// place reads record i.
func (s *side) place(buf []byte, i int) (place, error) {
	n := int64(min(2, s.count-i)) * recordSize
	b, err := s.read(buf, int64(i)*recordSize, n)
	if err != nil {
		return place{}, err
	}
	le := binary.LittleEndian
	p := place{textOff: int64(le.Uint32(b)), off: int64(le.Uint32(b[4:])), len: int64(le.Uint32(b[8:])), sum: [sumSize]byte(b[12:recordSize])}
	next := s.textLen
	if n > recordSize {
		next = int64(le.Uint32(b[recordSize:]))
	}
	p.textLen = next - p.textOff
	if p.textLen <= 0 || next > s.textLen || p.off+p.len > s.bodySize {
		return place{}, errDamaged
	}
	return p, nil
}

// key reads the folded id of record i.
func (s *side) key(buf []byte, i int) ([]byte, error) {
	p, err := s.place(buf, i)
	if err != nil {
		return nil, err
	}
	// A key is cut behind the letter that reaches keyLimit.
	b, err := s.read(buf, int64(s.count)*recordSize+p.textOff, min(p.textLen, 2*keyLimit))
	if err != nil {
		return nil, err
	}
	n := bytes.IndexByte(b, fieldSep)
	if n < 0 {
		return nil, errDamaged
	}
	return b[:n], nil
}

// find gives the records [lo, hi) whose key is the folded id.
func (s *side) find(key string) (lo, hi int, err error) {
	buf := make([]byte, 2*pageSize)
	lo = sort.Search(s.count, func(i int) bool {
		if err != nil {
			return true
		}
		var k []byte
		k, err = s.key(buf, i)
		return string(k) >= key
	})
	for hi = lo; err == nil && hi < s.count; hi++ {
		var k []byte
		if k, err = s.key(buf, hi); string(k) != key {
			break
		}
	}
	return lo, hi, err
}

// at gives the record whose line starts at this place of the text, and what it says. Lines are of like length, so the
// place says nearly which record it is; every other step halves what is left, for an index where they are not.
func (s *side) at(buf []byte, textOff int64) (int, place, error) {
	lo, hi := 0, s.count
	from, to := int64(0), s.textLen // where the lines of [lo, hi) are
	for halve := false; lo < hi && from <= textOff && textOff < to; halve = !halve {
		i := lo + int(int64(hi-lo)*(textOff-from)/(to-from))
		if halve {
			i = (lo + hi) / 2
		}
		p, err := s.place(buf, i)
		switch {
		case err != nil:
			return 0, place{}, err
		case p.textOff == textOff:
			return i, p, nil
		case p.textOff < textOff:
			lo, from = i+1, p.textOff+p.textLen
		default:
			hi, to = i, p.textOff
		}
	}
	return 0, place{}, errDamaged
}

// twins tells how many entries have the id of record i: equal ids stand next to each other. An id that cannot be read
// has no twins. Of more than three the answer is three: more than one is all that counts.
func (s *side) twins(buf []byte, i int) (int, error) {
	lo, end := max(i-1, 0), min(i+2, s.count)
	b, err := s.read(buf, int64(lo)*recordSize, int64(end-lo)*recordSize)
	if err != nil {
		return 0, err
	}
	var starts [3]int64 // of the lines lo to end
	for j := range end - lo {
		starts[j] = int64(binary.LittleEndian.Uint32(b[j*recordSize:]))
	}
	from, to := starts[0], min(starts[end-lo-1]+2*keyLimit, s.textLen)
	if from >= to {
		return 0, errDamaged
	}
	text, err := s.read(buf, int64(s.count)*recordSize+from, to-from)
	if err != nil {
		return 0, err
	}
	var keys [3][]byte
	for j := range end - lo {
		if starts[j] < from || starts[j] >= to {
			return 0, errDamaged
		}
		line := text[starts[j]-from:]
		n := bytes.IndexByte(line, fieldSep)
		if n < 0 {
			return 0, errDamaged
		}
		keys[j] = line[:n]
	}
	own, same := keys[i-lo], 0
	for _, k := range keys[:end-lo] {
		if bytes.Equal(k, own) {
			same++
		}
	}
	if len(own) == 0 {
		return 1, nil
	}
	return same, nil
}

// scanChunk is how much text is looked at in one go: large enough for few reads, small enough for the processor's cache.
const scanChunk = 64 * pageSize

// parts cuts the text into at most n parts of whole lines and gives their bounds.
func (s *side) parts(n int) ([]int64, error) {
	bounds := []int64{0}
	for i := 1; i < n && s.textLen > scanChunk; i++ {
		p, err := s.place(make([]byte, 2*pageSize), s.count*i/n)
		if err != nil {
			return nil, err
		}
		if p.textOff < bounds[len(bounds)-1] {
			return nil, errDamaged
		}
		bounds = append(bounds, p.textOff)
	}
	return append(bounds, s.textLen), nil
}

// chunks calls look with consecutive pieces of a part of the text, each made of whole lines.
func (s *side) chunks(off, end int64, look func(off int64, lines []byte)) error {
	buf := make([]byte, scanChunk+2*pageSize)
	base := int64(s.count) * recordSize
	for off < end {
		n := min(scanChunk, end-off)
		b, err := s.read(buf, base+off, n)
		if err != nil {
			return err
		}
		last := bytes.LastIndexByte(b, lineEnd) + 1
		if last == 0 { // a line is far shorter than a chunk
			return errDamaged
		}
		look(off, b[:last])
		off += int64(last)
	}
	return nil
}
