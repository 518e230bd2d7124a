package keystore

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Redactor finds secret values in output and puts "[redacted:NAME]" in their
// place. It knows a value of 8 bytes or more as it is, in the escapes of JSON encoders (also JSON within
// JSON), percent-encoded, in base64 at each alignment, in hex, and by its long lines; a
// shorter one only as a whole JSON string. It is help against accidents, not a
// wall: a program that wants to send a value out can write it in another way.
// It may be used by several goroutines.
type Redactor struct {
	mu    sync.Mutex
	first []Handle
	added []Handle
	now   atomic.Pointer[patterns]
}

// mostAdded is how many values of those that came later are known at once: a session that renews its
// tokens for weeks forgets those that have long ended.
const mostAdded = 32

// NewRedactor prepares the search for those of hs that are secret. A value
// that is a document (a JSON credential) is found as a whole and by its lines; whoever
// delivers a part of it lists that part as a handle too.
func NewRedactor(hs []Handle) *Redactor {
	r := &Redactor{first: hs}
	r.now.Store(newPatterns(hs))
	return r
}

// Add lets it find the secret ones of hs too, from the next text or part of one that it is given: tokens that are
// renewed while it is used. A Writer finds those of 8 bytes or more.
func (r *Redactor) Add(hs []Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = append(r.added, hs...)
	r.added = r.added[max(0, len(r.added)-mostAdded):]
	r.now.Store(newPatterns(slices.Concat(r.first, r.added)))
}

// patterns is what is searched for at one time.
type patterns struct {
	names   []string // by id
	markers []string // by id
	wide    *matcher // patterns of wideFragment bytes or more
	narrow  *matcher // shorter ones
	begin   *prefixes
	shorts  map[string]int
}

func newPatterns(hs []Handle) *patterns {
	r := &patterns{shorts: map[string]int{}}
	wide, narrow, all := map[string]int{}, map[string]int{}, map[string]int{}
	for _, h := range hs {
		value := h.Value.Reveal()
		if !h.Secret || strings.TrimSpace(value) == "" {
			continue // white space alone is in every text
		}
		id := len(r.names)
		r.names = append(r.names, h.Name)
		if len(strings.TrimSpace(value)) < minPattern {
			r.addShort(value, id)
			continue
		}
		for _, form := range forms(value) {
			for _, p := range pieces(form) {
				if _, has := all[p]; has || len(p) < minPattern {
					continue
				}
				all[p] = id
				if len(p) >= wideFragment {
					wide[p] = id
				} else {
					narrow[p] = id
				}
			}
		}
	}
	r.wide, r.narrow = newMatcher(wide, wideFragment), newMatcher(narrow, narrowFragment)
	r.begin = newPrefixes(all)
	for _, name := range r.names {
		r.markers = append(r.markers, r.marker(name))
	}
	return r
}

// marker picks what stands in the place of a value: a text in which no value is.
func (r *patterns) marker(name string) string {
	for _, m := range []string{"[redacted:" + name + "]", redacted, "********", "########"} {
		if len(r.spans([]byte(m))) == 0 && (validHandleName(name) || m[0] != '[' || m == redacted) {
			return m
		}
	}
	return ""
}

// spans gives the places of all long values in b, apart from each other, rising.
func (r *patterns) spans(b []byte) []span {
	return merge(r.narrow.find(b, r.wide.find(b, nil)))
}

// Bytes gives b with every secret value replaced. It gives b itself when there
// is none, and does not change it. b is a whole text: a value that is cut at its end is not found.
func (r *Redactor) Bytes(b []byte) []byte { return r.now.Load().bytes(b) }

func (r *patterns) bytes(b []byte) []byte {
	if spans := r.spans(b); len(spans) > 0 {
		b = r.replace(b, spans)
	}
	if len(r.shorts) == 0 {
		return b
	}
	var spans []span
	r.quoted(b, &quotes{}, true, func(s span) { spans = append(spans, s) })
	if len(spans) == 0 {
		return b
	}
	return r.replace(b, spans)
}

func (r *patterns) replace(b []byte, spans []span) []byte {
	out := make([]byte, 0, len(b))
	pos := 0
	for _, s := range spans {
		out = append(append(out, b[pos:s.start]...), r.markers[s.id]...)
		pos = s.end
	}
	return append(out, b[pos:]...)
}

// String is Bytes for strings.
func (r *Redactor) String(s string) string {
	b := []byte(s)
	if out := r.Bytes(b); !bytes.Equal(out, b) {
		return string(out)
	}
	return s
}

// Find names the handles whose values are in b, sorted, each once; nil when
// there are none. Of values that overlap or touch it names at least the first.
func (r *Redactor) Find(b []byte) []string { return r.now.Load().search(b) }

func (r *patterns) search(b []byte) []string {
	var names []string
	note := func(s span) { names = append(names, r.names[s.id]) }
	for _, s := range r.narrow.find(b, r.wide.find(b, nil)) {
		note(s)
	}
	if len(r.shorts) > 0 {
		r.quoted(b, &quotes{}, true, note)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Writer replaces secret values in what is written through it to w, also those
// that are cut between two writes. At most 304 bytes are held back, and only
// those with which a value may begin. Close writes them; it does not close w.
// The Writer is for one goroutine.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	if len(r.now.Load().shorts) > 0 {
		w = &quotedStream{r: r, w: w}
	}
	return &stream{r: r, w: w}
}
