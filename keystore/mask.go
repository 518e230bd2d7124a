package keystore

import (
	"bytes"
	"io"
)

// Masker overwrites secret values in what is written through it to w with as
// many '*', so that lengths and everything else stay as they are; for text too
// long to be held whole. It holds back what a Writer holds back. found is called with
// the name of each handle that was met. Close ends the text: it writes the rest
// and does not close w; what is written then is the next text. The Masker is
// for one goroutine.
func (r *Redactor) Masker(w io.Writer, found func(name string)) io.WriteCloser {
	return &mask{of: r, r: r.now.Load(), w: w, found: found}
}

type mask struct {
	of     *Redactor
	r      *patterns
	w      io.Writer
	found  func(string)
	held   []byte // not written yet
	masked int    // so many bytes of held belong to a value that began before
	looked int    // so many bytes of held were searched for short values
	q      quotes
	err    error
}

func (m *mask) Write(p []byte) (int, error) {
	n := 0
	m.r = m.of.now.Load()
	for m.err == nil && n < len(p) {
		part := p[n:min(len(p), n+8*chunk)]
		switch {
		case len(m.held) == 0 && len(m.r.shorts) == 0 && m.clean(part):
		case len(m.held) > 0 && len(m.held) < maskJoin:
			part = part[:min(len(part), maskJoin)]
			fallthrough
		default:
			m.held = append(m.held, part...)
			m.flush(false)
		}
		if m.err == nil {
			n += len(part)
		}
	}
	return n, m.err
}

// maskJoin is how much is copied to join what is held with what comes, before
// the rest is looked at where it is. It is more than a Masker holds back.
const maskJoin = 512

// clean passes on a part that has no value in it, without copying it; nothing
// is held. false means that it has one.
func (m *mask) clean(part []byte) bool {
	if m.r.spans(part) != nil {
		return false
	}
	safe := m.r.begin.hold(part)
	if safe > 0 {
		_, m.err = m.w.Write(part[:safe])
	}
	m.held = append(m.held, part[safe:]...)
	return true
}

// Close writes what is held, and begins anew.
func (m *mask) Close() error {
	m.flush(true)
	err := m.err
	*m = mask{of: m.of, r: m.r, w: m.w, found: m.found, held: m.held[:0]}
	return err
}

func (m *mask) flush(final bool) {
	b, safe := m.held, len(m.held)
	if m.err != nil || safe == 0 {
		return
	}
	if !final {
		safe = m.r.begin.hold(b)
	}
	spans := m.r.spans(b) // before anything is overwritten
	if len(m.r.shorts) > 0 {
		from := m.looked
		m.looked += m.r.quoted(b[from:], &m.q, final, func(s span) {
			m.star(b, from+s.start, from+s.end, s.id)
		})
		safe = min(safe, m.looked)
	}
	m.star(b, 0, min(m.masked, safe), -1)
	m.masked = max(m.masked-safe, 0)
	for _, s := range spans {
		if s.start >= safe {
			break
		}
		m.star(b, s.start, min(s.end, safe), s.id)
		m.masked = max(m.masked, s.end-safe)
	}
	if safe > 0 {
		_, m.err = m.w.Write(b[:safe])
	}
	m.held = append(m.held[:0], b[safe:]...)
	m.looked = max(m.looked-safe, 0)
}

// star overwrites b[start:end]; id -1 is a value that has been told already.
func (m *mask) star(b []byte, start, end, id int) {
	copy(b[start:end], bytes.Repeat([]byte{'*'}, end-start))
	if id >= 0 {
		m.found(m.r.names[id])
	}
}
