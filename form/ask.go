package form

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
)

// Below this size a form cannot be used; plain line prompts can.
const (
	leastWidth  = 20
	leastHeight = 6
)

// ask puts the questions and fills in their entries.
func (t *Terminal) ask(ctx context.Context, title string, entries []*entry) error {
	return t.inSession(ctx, func(s *session) error {
		if s.plain {
			return s.prompts(ctx, Clean(title), entries)
		}
		return s.form(ctx, Clean(title), entries)
	})
}

// askOne puts one choice below body, and leaves question and answer in one line.
func (t *Terminal) askOne(ctx context.Context, title, body string, e *entry) error {
	return t.inSession(ctx, func(s *session) error {
		if body != "" {
			s.println(strings.TrimRight(cleanText(body), "\n") + "\n") // one empty line, however the text ends
		}
		if s.plain {
			return s.prompts(ctx, "", []*entry{e})
		}
		if err := s.form(ctx, "", []*entry{e}); err != nil {
			return err
		}
		for _, o := range e.options {
			if o.Value == e.value {
				s.println(s.t.fitted(Clean(title) + " " + o.Label))
			}
		}
		return nil
	})
}

// inSession runs f with the terminal in raw mode, and gives the terminal back whatever happens in f.
func (t *Terminal) inSession(ctx context.Context, f func(*session) error) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w, h := t.size()
	s, err := t.open(t.Plain || w < leastWidth || h < leastHeight)
	if err != nil {
		return err
	}
	ok := false
	defer func() { s.close(!ok) }() // a panic passes through here with ok unset
	err = f(s)
	ok = err == nil
	return err
}

// A screen is a huh form with what the loop needs beside it.
type screen struct {
	s      *session
	title  string
	form   *huh.Form
	group  *huh.Group
	fields []huh.Field
	room   int // rows for one field
}

// form shows the questions as a huh form until all are answered.
func (s *session) form(ctx context.Context, title string, entries []*entry) error {
	look := theme(s.t.Color)
	sc := &screen{s: s, title: title, room: leastHeight}
	for _, e := range entries {
		switch {
		case e.many:
			sc.fields = append(sc.fields, newChecks(e, look, &sc.room))
		case e.options != nil:
			sc.fields = append(sc.fields, newChoice(e, look, &sc.room))
		default:
			sc.fields = append(sc.fields, newInput(e, look, &sc.room))
		}
	}
	sc.group = huh.NewGroup(sc.fields...).WithShowErrors(false)
	sc.form = huh.NewForm(sc.group).WithTheme(look).WithKeyMap(keyMap())
	defer func() { s.write(s.drawn.erase()) }()
	sc.form.Init() // what it returns would only ask for the size and blink a cursor
	for {
		sc.draw()
		msg, err := s.next(ctx)
		if err != nil {
			return err
		}
		sc.update(msg)
		switch sc.form.State {
		case huh.StateAborted:
			return ErrAborted
		case huh.StateCompleted:
			return nil
		}
	}
}

// focus is the place of the field that has the keys.
func (sc *screen) focus() int {
	now := sc.form.GetFocusedField()
	for i, f := range sc.fields {
		if f == now {
			return i
		}
	}
	return 0
}

// update gives one message to the form, and then at once all that follows from it: the next key must find the field
// that the last one led to.
func (sc *screen) update(msg tea.Msg) {
	for queue := []tea.Msg{msg}; len(queue) > 0; queue = queue[1:] {
		if _, redraw := queue[0].(resumed); redraw {
			continue
		}
		_, cmd := sc.form.Update(queue[0])
		queue = append(queue, results(cmd)...)
		if sc.form.State != huh.StateNormal {
			return
		}
	}
}

// results runs a command of huh's. Those of our fields and of a select return at once.
func results(cmd tea.Cmd) []tea.Msg {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case nil:
		return nil
	case tea.BatchMsg:
		var all []tea.Msg
		for _, c := range msg {
			all = append(all, results(c)...)
		}
		return all
	default:
		return []tea.Msg{msg}
	}
}

// draw lays the form out for the window as it is now and puts it on the screen.
func (sc *screen) draw() {
	w, h := sc.s.t.size()
	width, height := max(w, leastWidth), max(h, leastHeight)
	place := ""
	if n := len(sc.fields); n > 1 {
		place = fmt.Sprintf(" (%d of %d)", sc.focus()+1, n)
	}
	title := crop(sc.title, width-len(place), false) + place
	sc.group.Title(title)
	used := 2 // the help line and the empty line above it
	if title != "" {
		used += lipgloss.Height(sc.group.Header())
	}
	sc.room = max(height-used, 1)
	// One row less than there is: huh counts the footer without the empty line above it.
	sc.form.Update(tea.WindowSizeMsg{Width: width, Height: height - 1})
	sc.s.write(sc.s.drawn.draw(sc.form.View(), w, h))
}
