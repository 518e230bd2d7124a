package form

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"skald-connectors/internal/qrcode"
)

// ErrLeft says that the person left a screen with Esc, and not the whole program. Callers branch on it.
var ErrLeft = errors.New("left")

// linkLimit bounds the link that is shown beside a code.
const linkLimit = 2 << 10

// A QRView is what a person sees while a phone is to read a code.
type QRView struct {
	Code    *qrcode.Code // nil: there is none now
	Picture []byte       // the image of a code that could not be read, in place of Code
	State   string       // what is going on, in a sentence
	Note    string       // what the connector says about it; foreign text
}

// QR shows views until run has returned, and returns run's error. run is given what replaces the view; it may be called
// from run's goroutine only. Esc ends it with ErrLeft and Ctrl-C with ErrAborted: then run's context is cancelled, and
// QR returns when run has. save keeps an image where the person can open it and gives its path; it is asked for what
// cannot be drawn, and when the person asks for it.
func (t *Terminal) QR(ctx context.Context, title string, save func(image []byte) (path string, err error), run func(ctx context.Context, show func(QRView)) error) error {
	return t.inSession(ctx, func(s *session) error {
		q := &qrScreen{s: s, title: Clean(title), save: save, light: true}
		return q.watch(ctx, run)
	})
}

// A qrScreen is the state of QR.
type qrScreen struct {
	s     *session
	title string
	save  func([]byte) (string, error)

	mu   sync.Mutex
	view QRView
	done bool

	light   bool   // the drawing without colours suits a dark background
	saved   string // what was said about a saved image
	told    string // plain: what was printed last
	drawn   *qrcode.Code
	printed *qrcode.Code // plain
}

// watch runs run beside the loop that reads keys and draws.
func (q *qrScreen) watch(ctx context.Context, run func(context.Context, func(QRView)) error) error {
	inner, cancel := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	q.s.wake = wake
	signal := func() {
		select {
		case wake <- struct{}{}:
		default: // the loop looks at everything when it wakes
		}
	}
	type end struct {
		err    error
		broken any
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			e.broken = recover() // it goes on below, where the terminal is given back
			ended <- e
			q.mu.Lock()
			q.done = true
			q.mu.Unlock()
			signal()
		}()
		e.err = run(inner, func(v QRView) {
			q.mu.Lock()
			q.view = v
			q.mu.Unlock()
			signal()
		})
	}()
	err := q.loop(ctx)
	cancel()
	e := <-ended
	if e.broken != nil {
		panic(e.broken)
	}
	if err == nil || e.err == nil { // what has come to its end in the same moment has come to its end
		return e.err
	}
	return err
}

// loop draws and reads keys until run has ended (nil) or the person leaves.
func (q *qrScreen) loop(ctx context.Context) error {
	defer func() { q.s.write(q.s.drawn.erase()) }()
	for {
		q.mu.Lock()
		view, done := q.view, q.done
		q.mu.Unlock()
		if done {
			return nil
		}
		q.draw(view)
		msg, err := q.s.next(ctx)
		if err != nil {
			return err
		}
		key, ok := msg.(tea.KeyPressMsg)
		if !ok {
			continue
		}
		switch key.String() {
		case "esc":
			return ErrLeft
		case "i":
			q.light = !q.light
		case "s":
			q.keep(view)
		}
	}
}

// keep saves the code as a picture, once.
func (q *qrScreen) keep(v QRView) {
	image := v.Picture
	if v.Code != nil {
		image = v.Code.PNG()
	}
	if image == nil || q.save == nil {
		return
	}
	path, err := q.save(image)
	if err != nil {
		q.saved = "The picture cannot be saved: " + Clean(err.Error())
		return
	}
	q.saved = "Open this picture and read it from there: " + Clean(path)
}

// draw puts the view on the screen.
func (q *qrScreen) draw(v QRView) {
	if v.Code != q.drawn {
		q.saved = "" // the picture that was saved is of an older code
		q.drawn = v.Code
	}
	if v.Picture != nil && q.saved == "" {
		q.keep(v)
	}
	w, h := q.s.t.size()
	if q.s.plain {
		q.print(v, w)
		return
	}
	q.s.write(q.s.drawn.draw(strings.Join(q.layout(v, max(w, leastWidth), max(h, leastHeight)), "\n"), w, h))
}

// A page is what stands around the code.
type page struct{ head, foot []string }

// layout is the screen as lines: the clearest drawing that has room. Title and empty lines go before the code does.
func (q *qrScreen) layout(v QRView, w, h int) []string {
	title := []string{lipgloss.NewStyle().Bold(true).Render(crop(q.title, w, false)), ""}
	below := q.below(v, w)
	if v.Code == nil {
		return append(title, below...)
	}
	hinted := append(wrapTo("Not a clear code? Make the window larger, or press s.", w), below...)
	pages := map[int][]page{
		halves.h: {{title, append([]string{""}, below...)}, {nil, below}},
		sixths.h: {{title, append([]string{""}, hinted...)}, {nil, hinted}, {nil, below}},
	}
	for _, s := range []shape{halves, sixths} {
		for _, p := range pages[s.h] {
			if d, ok := fit(s, v.Code.Size(), w, h-len(p.head)-len(p.foot)); ok {
				d.ink, d.light = q.s.t.Color, q.light
				return append(append(p.head, d.lines(v.Code)...), p.foot...)
			}
		}
	}
	return q.tooSmall(v, w, h, title, below)
}

// tooSmall is the screen of a window that has no room for the code.
func (q *qrScreen) tooSmall(v QRView, w, h int, title, below []string) []string {
	cols, rows := drawing{shape: sixths, quiet: 2}.cells(v.Code.Size())
	say := wrapTo(fmt.Sprintf("The code needs a window of %d columns and %d rows; this one has %d and %d. Make it larger or its text smaller, or press s for a picture.",
		cols, rows+len(below), w, h), w)
	if lines := append(append(append(title, say...), q.link(v, w)...), append([]string{""}, below...)...); len(lines) <= h {
		return lines
	}
	return append(say, below...)
}

// below is what stands under the code: what goes on, what the connector says, and the keys.
func (q *qrScreen) below(v QRView, w int) []string {
	lines := wrapTo(v.State, w)
	if v.Note != "" && v.Note != v.State {
		lines = append(lines, wrapTo(Clean(v.Note), w)...)
	}
	if q.saved != "" {
		lines = append(lines, wrapTo(q.saved, w)...)
	}
	return append(lines, q.keys(w)...)
}

func (q *qrScreen) keys(w int) []string {
	words := []string{"esc leave"}
	if q.drawn != nil {
		words = append(words, "s picture")
		if !q.s.t.Color {
			words = append(words, "i swap light and dark")
		}
	}
	faint := lipgloss.NewStyle().Faint(true)
	lines := wrapTo(strings.Join(words, " • "), w)
	for i := range lines {
		lines[i] = faint.Render(lines[i])
	}
	return lines
}

// link is the text of a code that is an address: it can be opened on the phone by other means.
func (q *qrScreen) link(v QRView, w int) []string {
	text := v.Code.Text()
	scheme, rest, found := strings.Cut(text, "://")
	if !found || rest == "" || len(text) > linkLimit || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return nil
	}
	return append(wrapTo("It says:", w), strings.Split(lipgloss.Wrap(Clean(text), w, "/?&="), "\n")...)
}

// wrapTo wraps text between words.
func wrapTo(text string, w int) []string {
	if text == "" {
		return nil
	}
	return strings.Split(lipgloss.Wrap(text, max(w, 1), " "), "\n")
}

// print is draw for a terminal that shows lines only: each code and each state once.
func (q *qrScreen) print(v QRView, w int) {
	if v.Code != nil && v.Code != q.printed {
		d := drawing{shape: halves, quiet: 2, ink: q.s.t.Color, light: true}
		if cols, _ := d.cells(v.Code.Size()); w == 0 || cols <= w {
			q.s.println(strings.Join(d.lines(v.Code), "\n"))
		} else {
			q.keep(v)
			q.s.println(strings.Join(q.link(v, max(w, leastWidth)), "\n"))
		}
		q.printed = v.Code
	}
	text := strings.Join(append([]string{v.State, Clean(v.Note)}, q.saved), "\n")
	if text = strings.TrimSpace(text); text == q.told || text == "" {
		return
	}
	q.told = text
	q.s.say(text)
	q.s.println("  (Esc leaves)")
}
