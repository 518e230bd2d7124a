package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"skald-connectors/fetch"
	"skald-connectors/form"
)

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes the one document of a command to standard output.
func (a *app) printJSON(doc any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// table writes rows in columns; every cell is made safe to show.
func table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(header) > 0 {
		fmt.Fprintln(tw, strings.Join(header, "\t"))
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = form.Clean(cell)
		}
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return tw.Flush()
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

// wrap breaks text at width, each line indented.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case line == 0:
			b.WriteString(indent + word)
			line = len(indent) + n
		case line+1+n > width:
			b.WriteString("\n" + indent + word)
			line = len(indent) + n
		default:
			b.WriteString(" " + word)
			line += 1 + n
		}
	}
	return b.String()
}

// progress is the one line that moves on a terminal, or plain lines elsewhere.
type progress struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool // the line is redrawn in place
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
	fmt.Fprintf(p.w, "%s: %s in place, %d s", ecosystem, count, int(now.Sub(p.since).Seconds()))
	p.shown = true
}

// startProgress begins to show downloads; without it events are not shown.
func (a *app) startProgress() {
	if a.quiet {
		return
	}
	a.progress = &progress{w: a.stderr, live: isTerminal(a.stderr) && a.getenv("TERM") != "dumb", totals: map[string]fetch.Event{}, said: map[string]bool{}}
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
	fmt.Fprintln(p.w, s)
}

func (p *progress) redraw() {
	var bytes, total int64
	files, all := 0, 0
	for _, e := range p.totals {
		bytes, total = bytes+e.Bytes, total+e.TotalBytes
		files, all = files+e.Files, all+e.TotalFiles
	}
	p.erase()
	fmt.Fprintf(p.w, "downloading: %d of %d files, %s of %s", files, all, size(bytes), size(total))
	p.shown = true
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
