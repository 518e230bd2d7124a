package form

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

const (
	// escapeWait is how long an ESC may be the start of a sequence; slow links need some tens of milliseconds.
	escapeWait = 50 * time.Millisecond
	// pasteQuiet is how long a burst of bytes must pause to be over. Nobody types a line end and more within one read.
	pasteQuiet = 25 * time.Millisecond
	// leastBurst is the shortest burst that is taken for a paste: a slow link delivers a few keys at once, too.
	leastBurst = 32
	// stopWait is how long a stop signal may take to stop us. Where it is ignored (no shell to come back from), we go on.
	stopWait = 100 * time.Millisecond
	// readSize is one read of a terminal; the kernel gives at most 4 KiB.
	readSize = 4096
)

// resumed says that the screen must be drawn anew: after a resize, a suspension, or news.
type resumed struct{}

// A session is the terminal in raw mode. Whoever opens one must close it, on a panic too.
type session struct {
	t       *Terminal
	old     *term.State // as found
	plain   bool
	reader  cancelreader.CancelReader
	chunks  chan []byte
	broken  chan error
	signals chan os.Signal
	stops   chan os.Signal
	resizes chan struct{}
	wake    <-chan struct{} // something else than a key has to be shown; nil = never
	cleanup []func()
	d       decoder
	drawn   frame
}

// open puts the terminal into raw mode and starts to read. Nothing is asked of the terminal.
func (t *Terminal) open(plain bool) (*session, error) {
	s := &session{t: t, plain: plain, chunks: make(chan []byte), broken: make(chan error, 1),
		signals: make(chan os.Signal, 4), stops: make(chan os.Signal, 1), resizes: make(chan struct{}, 1)}
	s.d.feed(t.unread)
	t.unread = nil
	var err error
	if s.reader, err = cancelreader.NewReader(t.In); err != nil {
		return nil, fmt.Errorf("reading the terminal: %w", err)
	}
	if err := s.enter(); err != nil {
		s.reader.Close()
		return nil, err
	}
	signal.Notify(s.signals, endSignals...)
	notifyStop(s.stops)
	s.cleanup = append(s.cleanup, watchSize(t.Out, s.resizes))
	go s.read()
	return s, nil
}

// enter sets raw mode, hides the cursor and asks for marked pastes.
func (s *session) enter() error {
	old, err := term.MakeRaw(int(s.t.In.Fd()))
	if err != nil {
		return fmt.Errorf("setting up the terminal: %w", err)
	}
	if s.old == nil {
		s.old = old
		s.cleanup = append(s.cleanup, prepareOutput(s.t.Out))
	}
	var seq string
	if s.t.bracketed {
		seq += "\x1b[?2004h"
	}
	if !s.plain {
		seq += "\x1b[?25l"
	}
	s.write(seq)
	return nil
}

// leave is the reverse of enter. It does what it can: the terminal may be gone.
func (s *session) leave() {
	var seq string
	if !s.plain {
		seq += s.drawn.erase() + "\x1b[?25h"
	}
	if s.t.bracketed {
		seq += "\x1b[?2004l"
	}
	s.write(seq)
	_ = term.Restore(int(s.t.In.Fd()), s.old)
}

// close gives the terminal back. With drop, what was typed ahead is thrown away: after an abort the rest of a paste
// must not reach the shell. Otherwise it is the start of the next question's input.
func (s *session) close(drop bool) {
	signal.Stop(s.signals)
	signal.Stop(s.stops)
	s.reader.Cancel()
	for open := true; open; {
		var chunk []byte
		if chunk, open = <-s.chunks; open {
			s.d.feed(chunk)
		}
	}
	s.leave()
	if drop {
		flushInput(s.t.In)
	} else {
		s.t.unread = append([]byte(nil), s.d.rest()...)
	}
	for _, f := range s.cleanup {
		f()
	}
	_ = s.reader.Close()
}

// read hands over the bytes of the terminal until the reader is cancelled or the terminal is gone.
func (s *session) read() {
	defer close(s.chunks)
	for {
		buf := make([]byte, readSize)
		n, err := s.reader.Read(buf)
		if n > 0 {
			s.chunks <- buf[:n]
		}
		if err != nil {
			s.broken <- err
			return
		}
	}
}

// write writes to the terminal. Errors show at the next read: the two are one device.
func (s *session) write(text string) { _, _ = s.t.Out.WriteString(text) }

// println writes lines in raw mode, where a line end alone does not return to the left.
func (s *session) println(text string) {
	s.write(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")
}

// fitted breaks what stays on the screen between words.
func (t *Terminal) fitted(text string) string {
	if w, _ := t.size(); w > 0 {
		return lipgloss.Wrap(text, w-1, " ")
	}
	return text
}

// size is the size of the terminal in cells, 0 by 0 when it is not known.
func (t *Terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.Out.Fd()))
	if err != nil || width < 0 || height < 0 {
		return 0, 0
	}
	return width, height
}

// next waits for a key press, a paste, or resumed. The error is ErrAborted, the context's cause, a signal by name, or
// one of reading.
func (s *session) next(ctx context.Context) (tea.Msg, error) {
	var expired bool
	for {
		msg, ok, waiting := s.d.next(expired)
		if ok {
			if key, isKey := msg.(tea.KeyPressMsg); isKey {
				switch key.String() {
				case "ctrl+c":
					return nil, ErrAborted
				case "ctrl+z":
					return s.suspend(true)
				}
			}
			return msg, nil
		}
		var timeout <-chan time.Time
		if waiting {
			timeout = time.After(escapeWait)
		}
		expired = false
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case sig := <-s.signals:
			if sig == os.Interrupt {
				return nil, ErrAborted
			}
			return nil, fmt.Errorf("%w: ended by signal: %v", ErrAborted, sig)
		case <-s.stops:
			return s.suspend(false)
		case <-s.wake:
			return resumed{}, nil
		case <-s.resizes:
			return resumed{}, nil
		case <-timeout:
			expired = true
		case chunk, open := <-s.chunks:
			if !open {
				return nil, fmt.Errorf("reading the terminal: %w", <-s.broken)
			}
			s.d.feed(s.burst(chunk))
		}
	}
}

// burst marks as a paste what a terminal without marked pastes delivers in one go: a line end with more text behind it.
// Without this a line end inside a paste would submit, and the rest would land in the next fields.
func (s *session) burst(chunk []byte) []byte {
	if s.plain || s.d.pasting || len(chunk) < 2 || !hasLineEnd(chunk) || hasEscape(chunk) {
		return chunk
	}
	for more := true; more && len(chunk) < maxPaste; {
		select {
		case next, open := <-s.chunks:
			if more = open; open {
				chunk = append(chunk, next...)
				more = !hasEscape(next)
			}
		case <-time.After(pasteQuiet):
			more = false
		}
	}
	return markBurst(chunk)
}

// markBurst wraps the text before any escape in paste marks when it is long and a line end is followed by more text.
func markBurst(chunk []byte) []byte {
	text, tail := string(chunk), ""
	if i := strings.IndexByte(text, 0x1b); i >= 0 {
		text, tail = text[:i], text[i:]
	}
	if len(text) < leastBurst || !strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n") {
		return []byte(strings.ReplaceAll(text, "\r\n", "\r") + tail)
	}
	return []byte(pasteStart + text + pasteEnd + tail)
}

func hasLineEnd(b []byte) bool { return strings.ContainsAny(string(b), "\r\n") }
func hasEscape(b []byte) bool  { return strings.IndexByte(string(b), 0x1b) >= 0 }

// suspend gives the terminal back, stops this process (or, as the terminal would for Ctrl-Z, its whole group), and
// takes the terminal again when it goes on.
func (s *session) suspend(group bool) (tea.Msg, error) {
	s.leave()
	stopHere(group, s.stops, stopWait)
	s.drawn = frame{}
	if err := s.enter(); err != nil {
		return nil, err
	}
	return resumed{}, nil
}
