package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf16"

	"golang.org/x/term"

	"skald-connectors/fetch"
	"skald-connectors/form"
)

// output is standard output. It keeps the first error, so that a result which
// did not reach its file is never called a success.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the result: %w", err)
	}
	return n, err
}

// fileOf is the file behind a stream, nil where there is none.
func fileOf(stream any) *os.File {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, _ := stream.(*os.File)
	return f
}

func isTerminal(stream any) bool {
	f := fileOf(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// printJSON writes the one document of a command to standard output. A
// character that would act on a terminal is written as its JSON escape.
func (a *app) printJSON(doc any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := a.stdout.Write(escapeUnseen(b.Bytes()))
	return err
}

// escapeUnseen puts JSON escapes in the place of what form.Clean would not
// show as it is; the encoder has escaped only the characters below U+0020.
func escapeUnseen(doc []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(doc) {
		if s := string(r); r < 0x7f || form.Clean(s) == s {
			b.WriteString(s)
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, "\\u%04x", u)
		}
	}
	return b.Bytes()
}

// size shows a number of bytes the way people read it.
func size(n int64) string {
	switch {
	case n < 0:
		return "unknown size"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000/1000)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lasting shows how long something may take, in whole minutes where it has such.
func lasting(d time.Duration) string {
	if d = d.Round(time.Second); d >= time.Minute && d%time.Minute == 0 {
		return plural(int(d/time.Minute), "minute", "minutes")
	}
	return plural(int(d/time.Second), "second", "seconds")
}

// age shows how long ago something was.
func age(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case then.IsZero():
		return "never"
	case d < 2*time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

const (
	// plainWidth is the width of text that no terminal shows.
	plainWidth = 78
	// widest keeps lines readable on a wide terminal.
	widest = 100
	// narrowest is below what any text can be read in.
	narrowest = 20
)

// width is how wide text for people may be: that of the terminal, within reason.
func (a *app) width() int {
	for _, stream := range []any{a.stderr, a.stdout} {
		if f := fileOf(stream); f != nil {
			if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
				return min(max(cols-1, narrowest), widest)
			}
		}
	}
	return plainWidth
}

// progress is the one line that moves on a terminal, or plain lines elsewhere.
type progress struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool // the line is redrawn in place
	width  int  // of the terminal; 0 = not known
	shown  bool
	files  bool // downloads of files are shown
	totals map[string]fetch.Event
	said   map[string]bool
	since  time.Time // of the packages that are being installed
}

// packages redraws the line for packages that are being installed.
func (p *progress) packages(ecosystem string, done, total int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	p.erase()
	count := plural(done, "package", "packages")
	if total > 0 {
		count = fmt.Sprintf("%d of %d packages", min(done, total), total)
	}
	p.put(fmt.Sprintf("%s: %s in place, %d s", ecosystem, count, int(now.Sub(p.since).Seconds())))
}

// startProgress begins to show downloads; without it events are not shown.
func (a *app) startProgress() {
	if a.quiet {
		return
	}
	a.progress = &progress{w: a.stderr, live: isTerminal(a.stderr) && a.getenv("TERM") != "dumb", width: a.width(), totals: map[string]fetch.Event{}, said: map[string]bool{}}
}

// showFiles lets the progress show files from now on: a plan's few downloads
// are not worth a line.
func (a *app) showFiles() {
	if a.progress != nil {
		a.progress.mu.Lock()
		a.progress.files = true
		a.progress.mu.Unlock()
	}
}

func (a *app) showEvent(e fetch.Event) {
	if a.progress != nil {
		a.progress.show(e)
	}
}

func (a *app) clearProgress() {
	if a.progress != nil {
		a.progress.clear()
	}
}

func (p *progress) show(e fetch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Wait > 0:
		p.line(fmt.Sprintf("%s; trying again in %s", form.Clean(e.WaitFor), e.Wait.Round(100*time.Millisecond)))
		return
	case e.IndexReread:
		p.line("a file does not match its pin; reading the index afresh")
		return
	case e.Connector == "" || !p.files:
		return
	}
	if was, ok := p.totals[e.Connector]; ok && was.TotalBytes == e.TotalBytes && (e.Bytes < was.Bytes || e.Files < was.Files) {
		return // several files come at once, and their events may overtake each other
	}
	p.totals[e.Connector] = e
	done := e.Files == e.TotalFiles
	if done && !p.said[e.Connector] {
		p.said[e.Connector] = true
		p.line(fmt.Sprintf("%s: %s, %s, every byte checked", form.Clean(e.Connector), plural(e.TotalFiles, "file", "files"), size(e.Bytes)))
		return
	}
	if p.live && !done {
		p.redraw()
	}
}

// line writes a lasting line.
func (p *progress) line(s string) {
	p.erase()
	if p.live && p.width > 0 {
		s = wrapLines(s, p.width)
	}
	fmt.Fprintln(p.w, s)
}

// put redraws the line that moves; one that the terminal breaks could not be erased.
func (p *progress) put(s string) {
	p.erase()
	if p.width > 0 {
		s = shorten(s, p.width)
	}
	fmt.Fprint(p.w, s)
	p.shown = true
}

// busy shows how long something takes, and its limit where it has one (0 = none),
// on a terminal, until stop is called.
func (a *app) busy(what string, limit time.Duration) (stop func()) {
	p := a.progress
	if p == nil || !p.live {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.mu.Lock()
				text := fmt.Sprintf("%s: %d s", what, int(time.Since(began).Seconds()))
				if limit > 0 {
					text += fmt.Sprintf(" of at most %d s", int(limit.Seconds()))
				}
				p.put(text)
				p.mu.Unlock()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		p.clear()
	}
}

func (p *progress) redraw() {
	var bytes, total int64
	files, all := 0, 0
	for _, e := range p.totals {
		bytes, total = bytes+e.Bytes, total+e.TotalBytes
		files, all = files+e.Files, all+e.TotalFiles
	}
	p.put(fmt.Sprintf("downloading: %d of %d files, %s of %s", files, all, size(bytes), size(total)))
}

func (p *progress) erase() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}
