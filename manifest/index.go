package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"skald-connectors/internal/exactjson"
)

const (
	indexVersion = 1
	// maxIndexDiagnostics bounds what a hostile index can make us keep.
	maxIndexDiagnostics = 10_000
	// maxEntryBytes holds the pins of MaxFiles files with long paths, and
	// bounds the tree that one entry becomes.
	maxEntryBytes = 1 << 20
	// maxHeadBytes bounds what stands beside connectors[], for the same reason.
	maxHeadBytes = 1 << 20
)

// ParseIndex reads connectors.json. Entries that cannot be read are in the
// result with Broken set; all entries that share an id are broken. Repeated
// keys and keys that differ only in case break their entry, and refuse the
// whole index when it is signed or when they stand at the top.
//
// The error is a *RefusedError: not JSON, larger than MaxIndexBytes, another
// shape, or such a key. Entries share memory with src.
func ParseIndex(src []byte, signed bool) (*Index, []Diagnostic, error) {
	if len(src) > MaxIndexBytes {
		return nil, nil, refused(indexFile, nil, 0, "", "too-large", fmt.Sprintf("%d bytes; at most %d", len(src), MaxIndexBytes))
	}
	ranges, err := elementRanges(src)
	if err != nil {
		return nil, nil, err
	}
	x := &indexReader{src: src, lines: lineCounter{src: src, line: 1}}
	if err := x.head(ranges, signed); err != nil {
		return nil, nil, err
	}
	x.index.Entries = make([]Entry, 0, len(ranges))
	for i, at := range ranges {
		if err := x.entry(i, at, signed); err != nil {
			return nil, nil, err
		}
	}
	x.refuseTwins(ranges)
	return &x.index, x.diags, nil
}

func elementRanges(src []byte) ([][2]int, error) {
	var ranges [][2]int
	for at, err := range exactjson.ArrayElements(src, "connectors") {
		if err != nil {
			return nil, refusedSyntax(indexFile, err)
		}
		ranges = append(ranges, at)
	}
	return ranges, nil
}

type indexReader struct {
	src   []byte
	index Index
	diags []Diagnostic
	lines lineCounter
}

// lineCounter follows offsets that never go back, so that the places of many
// entries cost one pass.
type lineCounter struct {
	src             []byte
	line, start, at int
}

// move gives the line at off and the offset where that line starts.
func (c *lineCounter) move(off int) (line, start int) {
	skipped := c.src[c.at:off]
	c.line += bytes.Count(skipped, []byte{'\n'})
	if n := bytes.LastIndexByte(skipped, '\n'); n >= 0 {
		c.start = c.at + n + 1
	}
	c.at = off
	return c.line, c.start
}

// head reads everything but the elements: it is parsed with the array empty,
// and offsets behind the array are moved back.
func (x *indexReader) head(ranges [][2]int, signed bool) error {
	head, cut, moved := x.src, len(x.src), 0
	if n := len(ranges); n > 0 {
		cut, moved = ranges[0][0], ranges[n-1][1]-ranges[0][0]
		head = slices.Concat(x.src[:cut], x.src[cut+moved:])
	}
	if len(head) > maxHeadBytes {
		return refused(indexFile, nil, 0, "", "too-large", fmt.Sprintf("%d bytes beside connectors[]; at most %d", len(head), maxHeadBytes))
	}
	source := func(off int) int {
		if off >= cut {
			return off + moved
		}
		return off
	}
	root, repeats, err := exactjson.Parse(head, maxDepth)
	if err != nil {
		if syntax, ok := err.(*exactjson.SyntaxError); ok {
			return refused(indexFile, x.src, source(syntax.Offset), "", "syntax", syntax.Msg)
		}
		return err
	}
	for _, rep := range repeats {
		if signed || isTop(root, rep) {
			rep.First, rep.Second = source(rep.First), source(rep.Second)
			return refusedRepeat(indexFile, x.src, rep)
		}
	}
	x.version(root, source)
	return nil
}

func isTop(root exactjson.Value, rep exactjson.Repeat) bool {
	for _, m := range root.Members {
		if m.KeyStart == rep.Second {
			return true
		}
	}
	return false
}

func (x *indexReader) version(root exactjson.Value, source func(int) int) {
	say := func(v exactjson.Value, rule, format string, args ...any) {
		line, col := exactjson.Position(x.src, source(v.Start))
		x.add(Diagnostic{File: indexFile, Path: "version", Line: line, Col: col, Severity: Warning, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
	v, ok := get(root, "version")
	if !ok {
		say(root, "index-version-missing", "no version, expected %d", indexVersion)
		return
	}
	n, err := strconv.Atoi(v.Str)
	switch {
	case v.Kind != exactjson.Number || err != nil || n < 1:
		say(v, "index-version", "found %s, expected the integer %d", shown(v), indexVersion)
	case n > indexVersion:
		say(v, "index-version-newer", "the index is of version %d, this program knows %d; what it understands is read", n, indexVersion)
		x.index.Version = n
	default:
		x.index.Version = n
	}
}

func (x *indexReader) entry(i int, at [2]int, signed bool) error {
	raw := x.src[at[0]:at[1]:at[1]]
	e, r, repeats := parseEntry(raw)
	prefix := "connectors[" + strconv.Itoa(i) + "]"
	if signed && len(repeats) > 0 {
		rep := repeats[0]
		rep.Path = joinPath(prefix, rep.Path)
		rep.First, rep.Second = rep.First+at[0], rep.Second+at[0]
		return refusedRepeat(indexFile, x.src, rep)
	}
	x.index.Entries = append(x.index.Entries, e)
	if len(r.diags) > 0 {
		line, start := x.lines.move(at[0])
		for _, d := range r.diags {
			d.Path = joinPath(prefix, d.Path)
			if d.Line == 1 {
				d.Col += at[0] - start
			}
			d.Line += line - 1
			x.add(d)
		}
	}
	return nil
}

func (x *indexReader) add(d Diagnostic) {
	switch n := len(x.diags); {
	case n < maxIndexDiagnostics:
		x.diags = append(x.diags, d)
	case n == maxIndexDiagnostics:
		x.diags = append(x.diags, Diagnostic{File: indexFile, Severity: Warning, Rule: "too-many-diagnostics",
			Message: fmt.Sprintf("more than %d deviations; the others are not listed", maxIndexDiagnostics)})
	}
}

// refuseTwins breaks every entry whose id, case folded, another one has too:
// none of them may stand for that name.
func (x *indexReader) refuseTwins(ranges [][2]int) {
	first := make(map[string]int, len(x.index.Entries))
	twins := map[int]int{}
	for i := range x.index.Entries {
		id := x.index.Entries[i].ID
		if id == "" {
			continue
		}
		folded := foldPath(id)
		j, ok := first[folded]
		if !ok {
			first[folded] = i
			continue
		}
		twins[i] = j
		if _, told := twins[j]; !told {
			twins[j] = i
		}
	}
	lines := lineCounter{src: x.src, line: 1}
	for _, i := range slices.Sorted(maps.Keys(twins)) {
		e := &x.index.Entries[i]
		message := fmt.Sprintf("the id %q is also that of connectors[%d]; none of them is used", e.ID, twins[i])
		if e.Broken == "" {
			e.Broken = message
		}
		line, start := lines.move(ranges[i][0])
		x.add(Diagnostic{File: indexFile, Path: fmt.Sprintf("connectors[%d].id", i), Line: line, Col: ranges[i][0] - start + 1,
			Severity: Error, Rule: "id-duplicate", Message: message})
	}
}
