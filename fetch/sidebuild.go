package fetch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/exactjson"
)

const (
	// entryDepth is how deeply an entry of a signed index may nest; what the format knows stays below ten.
	entryDepth = 64
	// batchSize is how many bytes of entries are skimmed in one go: enough to make handing them over cheap.
	batchSize = 256 << 10
	// textBlock is the size in which room for text is taken: growing one slice would copy it over and over.
	textBlock = 256 << 10
)

// buildSide makes the side file of the index that r gives, and gives the index without its entries (more than
// trust.MaxHeadBytes of it are cut off, one byte behind). The index is held to its size and digest, an errDamaged when
// it has others. A *BrokenError means that the index contradicts itself, any other error that it is not an index.
// strict refuses the whole index for a repeated key or a case twin anywhere, as a signed one is read.
//
// The index goes by in pieces: what is in memory at a time is some batches of entries, and what gets into the side file.
func buildSide(r io.Reader, size int64, digest [sha256.Size]byte, strict bool) (side *sideFile, head []byte, err error) {
	sum, bound := sha256.New(), &io.LimitedReader{R: r, N: size + 1}
	whole := io.TeeReader(bound, sum)
	rows, head, err := readRows(whole, strict)
	if _, broken := io.Copy(io.Discard, whole); broken != nil {
		return nil, nil, bare(broken)
	}
	if bound.N != 1 || [sha256.Size]byte(sum.Sum(nil)) != digest {
		return nil, nil, errDamaged
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(bytes.Compare(a.key(), b.key()), cmp.Compare(a.off, b.off))
	})
	return &sideFile{rows, digest, size}, head, nil
}

// A batch is some entries that follow each other.
type batch struct {
	data []byte // their bytes, without what stands between them
	rows []row
	err  error // the first fault among them
}

// readRows reads the entries, and skims and hashes them, a batch on each processor.
func readRows(r io.Reader, strict bool) (rows []row, head []byte, err error) {
	workers := runtime.GOMAXPROCS(0)
	jobs, free := make(chan *batch), make(chan []byte, 2*workers)
	for range 2 * workers {
		free <- nil
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var block []byte
			for b := range jobs {
				block = b.fill(block, strict)
				free <- b.data[:0]
				b.data = nil
			}
		})
	}
	all, head, err := readBatches(r, func() *batch { return &batch{data: <-free} }, jobs)
	close(jobs)
	wg.Wait()
	if err != nil {
		return nil, nil, err
	}
	n := 0
	for _, b := range all {
		if b.err != nil {
			return nil, nil, b.err
		}
		n += len(b.rows)
	}
	rows = make([]row, 0, n)
	for i, b := range all {
		rows, all[i] = append(rows, b.rows...), nil
	}
	return rows, head, nil
}

// readBatches cuts the entries into batches and sends each to jobs.
func readBatches(r io.Reader, next func() *batch, jobs chan<- *batch) (all []*batch, head []byte, err error) {
	outside := func(p []byte) {
		head = append(head, p[:min(len(p), trust.MaxHeadBytes+1-len(head))]...)
	}
	n, b := 0, next()
	for e, err := range exactjson.ReadElements(r, "connectors", outside) {
		if err != nil {
			return nil, nil, notAnIndex(err)
		}
		if n++; n > entriesLimit {
			return nil, nil, fmt.Errorf("it has more than %d entries", entriesLimit)
		}
		b.data = append(b.data, e.Raw...)
		b.rows = append(b.rows, row{off: uint32(e.Start), len: uint32(len(e.Raw))})
		if len(b.data) >= batchSize {
			jobs <- b
			all, b = append(all, b), next()
		}
	}
	jobs <- b
	return append(all, b), head, nil
}

func notAnIndex(err error) error {
	var syntax *exactjson.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return err
	case syntax.Repeat != nil:
		return &BrokenError{Reason: syntax.Error()}
	}
	return fmt.Errorf("it is not an index: %w", err)
}

// fill skims and hashes the entries of a batch. The rows' text goes into block; what is left of it is returned.
func (b *batch) fill(block []byte, strict bool) []byte {
	rest := b.data
	for i := range b.rows {
		r := &b.rows[i]
		entry := rest[:r.len]
		rest = rest[r.len:]
		if strict && b.err == nil {
			b.err = refuseTwice(entry, r.off)
		}
		if cap(block)-len(block) < 8*textLimit {
			block = make([]byte, 0, textBlock)
		}
		start := len(block)
		block, r.keyLen = appendText(block, entry)
		r.text = block[start:len(block):len(block)]
		sum := sha256.Sum256(entry)
		r.sum = [sumSize]byte(sum[:])
	}
	return block
}

// refuseTwice parses an entry and refuses one that says something twice.
func refuseTwice(entry []byte, off uint32) error {
	_, repeats, err := exactjson.Parse(entry, entryDepth)
	if err != nil {
		return &BrokenError{Reason: fmt.Sprintf("the entry at byte %d: %v", off, err)}
	}
	if len(repeats) > 0 {
		return &BrokenError{Reason: fmt.Sprintf("the entry at byte %d has the member %q twice, or in two spellings", off, repeats[0].Path)}
	}
	return nil
}
