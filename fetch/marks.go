package fetch

import (
	"bytes"
	"math/bits"
)

// Marks let a search pass over most of the text. For every three bytes that stand together in a line, a bit says in
// which blocks of the text a line with them begins. Several threes share a bit, so a mark may be there in vain; where
// one is missing, no line that begins in the block has the word.
//
// They are rows of bits, one for each markRow, so that a word costs a few short reads. A text that is looked through at
// once has none.
const (
	// markRows is some three times what the lines of a block have.
	markRows  = 1 << markBits
	markBits  = 12
	markBlock = pageSize
	// marksRead bounds the rows that are read for one word.
	marksRead = 16
	// markedRun bounds the blocks that are read in one go.
	markedRun = 64
)

func markRow(three []byte) int64 {
	return int64((uint32(three[0]) | uint32(three[1])<<8 | uint32(three[2])<<16) * 0x9e3779b1 >> (32 - markBits))
}

// markWidth is the length of a row in bytes; 0 = there are no marks.
func markWidth(textLen int64) int64 {
	if textLen <= scanChunk {
		return 0
	}
	return (textLen + 8*markBlock - 1) / (8 * markBlock)
}

// marks makes the rows of a text.
func (s *sideFile) marks() []byte {
	width := markWidth(int64(s.textLen()))
	if width == 0 {
		return nil
	}
	m, at := make([]byte, markRows*width), 0
	for i := range s.rows {
		text, block := s.rows[i].text, at/markBlock
		column := m[block/8:]
		for j := 3; j <= len(text); j++ {
			column[markRow(text[j-3:j])*width] |= 1 << (block % 8)
		}
		at += len(text)
	}
	return m
}

// A blockSet has a bit for each block.
type blockSet []byte

func (b blockSet) has(i int) bool { return b[i/8]>>(i%8)&1 == 1 }

func (b blockSet) count() (n int) {
	for _, c := range b {
		n += bits.OnesCount8(c)
	}
	return n
}

// blocks is the number of blocks of the text.
func (s *side) blocks() int { return int((s.textLen + markBlock - 1) / markBlock) }

// marked gives the blocks where a line with all words may begin; nil = nothing is known of them.
func (s *side) marked(words [][]byte) (blockSet, error) {
	width := markWidth(s.textLen)
	if width == 0 {
		return nil, nil
	}
	var set blockSet
	buf, base := make([]byte, width+2*pageSize), int64(s.count)*recordSize+s.textLen
	for _, w := range words {
		for j := 3; j <= min(len(w), marksRead+2); j++ {
			row, err := s.read(buf, base+markRow(w[j-3:j])*width, width)
			if err != nil {
				return nil, err
			}
			if set == nil {
				set = bytes.Clone(row)
			}
			for i := range set {
				set[i] &= row[i]
			}
		}
	}
	return set, nil
}

// linesOf calls look with the whole lines that begin in blocks of the set, from one block to another.
func (s *side) linesOf(set blockSet, from, to int, look func(off int64, lines []byte)) error {
	buf := make([]byte, (markedRun+4)*pageSize)
	for i := from; i < to; i++ {
		if !set.has(i) {
			continue
		}
		first := i
		for i+1 < to && i+1-first < markedRun && set.has(i+1) {
			i++
		}
		if err := s.linesFrom(buf, int64(first)*markBlock, min(int64(i+1)*markBlock, s.textLen), look); err != nil {
			return err
		}
	}
	return nil
}

// linesFrom calls look with the whole lines that begin in a part of the text, if any does.
func (s *side) linesFrom(buf []byte, off, end int64, look func(off int64, lines []byte)) error {
	lo := max(off-1, 0) // a line begins behind the end of the one before
	for slack := int64(pageSize); ; slack *= 4 {
		hi := min(end+slack, s.textLen)
		b, err := s.read(buf, int64(s.count)*recordSize+lo, hi-lo)
		if err != nil {
			return err
		}
		begin := int64(0)
		if off > 0 {
			begin = int64(bytes.IndexByte(b, lineEnd)) + 1
			if begin == 0 || lo+begin >= end {
				return nil
			}
		}
		if n := bytes.IndexByte(b[end-1-lo:], lineEnd); n >= 0 {
			look(lo+begin, b[begin:end-lo+int64(n)])
			return nil
		}
		if hi == s.textLen || slack > scanChunk {
			return errDamaged
		}
	}
}
