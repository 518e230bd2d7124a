package keystore

import (
	"errors"
	"io"
)

// chunk bounds what a Writer holds of one large write.
const chunk = 32 << 10

var errClosed = errors.New("writing to a closed redactor")

// stream replaces the long values.
type stream struct {
	r        *Redactor
	w        io.Writer
	held     []byte // not decided yet
	masked   int    // so many bytes of held belong to a value whose marker is written
	touching bool   // the last thing written is a marker
	err      error
}

func (s *stream) Write(p []byte) (int, error) {
	n := 0
	for s.err == nil && n < len(p) {
		part := p[n:min(len(p), n+chunk)]
		s.held = append(s.held, part...)
		if s.flush(false); s.err == nil {
			n += len(part)
		}
	}
	return n, s.err
}

// Close writes what is held. The second Close does nothing.
func (s *stream) Close() error {
	if s.err == errClosed {
		return nil
	}
	s.flush(true)
	err := s.err
	if c, ok := s.w.(*quotedStream); ok {
		err = errors.Join(err, c.Close())
	}
	s.err = errClosed
	return err
}

// flush writes everything that is decided.
func (s *stream) flush(final bool) {
	b, safe := s.held, len(s.held)
	if s.err != nil || safe == 0 {
		return
	}
	r := s.r.now.Load()
	if !final {
		safe = r.begin.hold(b)
	}
	if safe == 0 {
		return
	}
	out, masked := s.decide(r, b, safe)
	s.masked = masked
	if len(out) > 0 {
		_, s.err = s.w.Write(out)
	}
	s.held = append(s.held[:0], b[safe:]...)
}

// decide gives what is to be written for b[:safe], and how many bytes behind
// safe belong to a value that begins before. Every pattern that begins before
// safe is whole in b: an unfinished one would have put safe before it.
func (s *stream) decide(r *patterns, b []byte, safe int) (out []byte, masked int) {
	spans := r.spans(b)
	if s.masked > 0 {
		spans = merge(append(spans, span{0, s.masked, -1}))
	}
	out = make([]byte, 0, safe)
	pos := 0
	for _, v := range spans {
		if v.start >= safe {
			break
		}
		out = append(out, b[pos:v.start]...)
		if v.start > 0 || !s.touching {
			out = append(out, r.markers[v.id]...)
		}
		pos = min(v.end, safe)
		masked = v.end - pos
	}
	s.touching = pos == safe
	return append(out, b[pos:safe]...), masked
}

// quotedStream replaces the short values.
type quotedStream struct {
	r    *Redactor
	w    io.Writer
	held []byte
	q    quotes
	err  error
}

func (s *quotedStream) Write(p []byte) (int, error) {
	if s.err == nil {
		s.held = append(s.held, p...)
		s.flush(false)
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

func (s *quotedStream) Close() error {
	s.flush(true)
	return s.err
}

func (s *quotedStream) flush(final bool) {
	if s.err != nil || len(s.held) == 0 {
		return
	}
	var spans []span
	r := s.r.now.Load()
	decided := r.quoted(s.held, &s.q, final, func(v span) { spans = append(spans, v) })
	if out := r.replace(s.held[:decided], spans); len(out) > 0 {
		_, s.err = s.w.Write(out)
	}
	s.held = append(s.held[:0], s.held[decided:]...)
}
