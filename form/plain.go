package form

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// errBack says that the person wants the question before.
var errBack = errors.New("back")

// Marks of a PEM block. Where pastes are not marked, they are how a pasted key is recognised.
const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
)

// prompts asks line by line: no cursor movement, nothing drawn twice, secrets not echoed.
func (s *session) prompts(ctx context.Context, title string, entries []*entry) error {
	if title != "" {
		s.println(title)
	}
	for i := 0; i < len(entries); {
		if title != "" {
			s.println("")
		}
		switch err := s.prompt(ctx, entries[i]); {
		case errors.Is(err, errBack):
			i = max(i-1, 0)
		case err != nil:
			s.println("")
			return err
		default:
			i++
		}
	}
	return nil
}

// prompt asks one question until its answer stands.
func (s *session) prompt(ctx context.Context, e *entry) error {
	s.println(s.t.fitted(e.label()))
	s.say(e.help())
	s.say(Clean(e.q.Problem))
	switch {
	case e.many:
		return s.promptChecks(ctx, e)
	case e.options != nil:
		return s.promptChoice(ctx, e)
	}
	s.say(s.promptHint(e))
	for {
		text, err := s.line(ctx, e)
		if err != nil {
			return err
		}
		if e.q.Field.Secret && text != "" && !(e.multiline() && strings.HasPrefix(text, "@")) {
			s.say("(" + measure(text, e.multiline()) + ")")
		}
		if text == "" && e.buf != "" {
			text = e.buf // the default in brackets
		}
		done, err := s.judge(ctx, e, text)
		if done || err != nil {
			return err
		}
	}
}

// promptHint is the line above the cursor: what an empty answer means, and how an answer of several lines ends.
func (s *session) promptHint(e *entry) string {
	var parts []string
	if e.buf != "" {
		parts = append(parts, "Enter takes "+Clean(e.buf))
	} else if p := e.placeholder(true); p != "" {
		parts = append(parts, p)
	}
	if e.q.Field.Secret {
		parts = append(parts, "what you type is not shown")
	}
	if e.multiline() {
		parts = append(parts, "a line with only a dot ends it")
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

// say prints text below a label, indented and wrapped between words.
func (s *session) say(text string) {
	if text == "" {
		return
	}
	if w, _ := s.t.size(); w >= leastWidth {
		text = lipgloss.Wrap(text, w-3, " ")
	}
	s.println("  " + strings.ReplaceAll(text, "\n", "\n  "))
}

// item prints one choice of a numbered list; its further lines stand below its text.
func (s *session) item(number int, text string) {
	head := "  " + strconv.Itoa(number) + ") "
	if w, _ := s.t.size(); w >= leastWidth {
		text = lipgloss.Wrap(text, w-len(head)-1, " ")
	}
	s.println(head + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(head))))
}

// judge submits an answer, says what is wrong with it, and asks about notes.
func (s *session) judge(ctx context.Context, e *entry, text string) (done bool, err error) {
	problem, notes := e.submit(text)
	if problem != "" {
		s.say("! " + problem)
		return false, nil
	}
	if len(notes) == 0 {
		if e.said != "" {
			s.say(e.said)
		}
		return true, nil
	}
	for _, n := range notes {
		s.say("! " + n)
	}
	s.say("Take it as it is? y or n")
	reply, err := s.line(ctx, &entry{})
	if err != nil {
		return false, err
	}
	if r := strings.ToLower(strings.TrimSpace(reply)); r != "y" && r != "yes" {
		e.asked = ""
		s.println("  Then once more.")
		return false, nil
	}
	e.submit(text) // the same text again is the acceptance
	return true, nil
}

// promptChoice shows a numbered list.
func (s *session) promptChoice(ctx context.Context, e *entry) error {
	first := 0
	for i, o := range e.options {
		if o.Value == e.value {
			first = i
		}
		s.item(i+1, o.Label)
	}
	for {
		s.say("[number; Enter takes " + strconv.Itoa(first+1) + "]")
		text, err := s.line(ctx, &entry{})
		if err != nil {
			return err
		}
		if text == "" {
			e.choose(e.options[first].Value)
			return nil
		}
		if i := pick(e.options, strings.TrimSpace(text)); i >= 0 {
			e.choose(e.options[i].Value)
			return nil
		}
		s.say("! that is none of them")
	}
}

// pick finds an option by its number, value or label, or by y and n; -1 when there is none.
func pick(options []Option, text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(options) {
		return n - 1
	}
	long := map[string]string{"y": "yes", "n": "no"}[strings.ToLower(text)]
	for i, o := range options {
		if strings.EqualFold(text, o.Label) || strings.EqualFold(text, o.Value) || long != "" && strings.EqualFold(long, o.Value) ||
			long == "yes" && o.Value == "true" || long == "no" && o.Value == "false" {
			return i
		}
	}
	return -1
}

// A lineReader collects one plain answer.
type lineReader struct {
	s      *session
	e      *entry
	text   string
	pasted bool // the last thing was a paste: Enter ends the answer instead of adding to it
}

// line reads one answer. The error is errBack after shift+tab.
func (s *session) line(ctx context.Context, e *entry) (string, error) {
	s.write("> ")
	r := &lineReader{s: s, e: e}
	for {
		msg, err := s.next(ctx)
		if err != nil {
			return "", err
		}
		switch msg := msg.(type) {
		case resumed:
			s.write("\r\n> " + r.echo(r.text))
		case tea.PasteMsg:
			if err := r.paste(msg.Content); err != nil {
				s.println("\n  ! " + err.Error())
				s.write("> ")
			}
		case tea.KeyPressMsg:
			done, err := r.press(msg)
			if done || err != nil {
				s.println("")
				return r.text, err
			}
		}
	}
}

// echo is what may be shown of typed text.
func (r *lineReader) echo(text string) string {
	if r.e.q.Field.Secret {
		return ""
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Clean(strings.TrimSuffix(lines[i], "\r"))
	}
	return strings.Join(lines, "\r\n")
}

func (r *lineReader) paste(text string) error {
	ed := newEditor(r.text)
	if err := ed.paste(text, r.e.multiline()); err != nil {
		r.text = ""
		return err
	}
	r.s.write(r.echo(ed.text[len(r.text):]))
	r.text, r.pasted = ed.text, true
	return nil
}

// press handles one key and tells whether the answer is complete.
func (r *lineReader) press(msg tea.KeyPressMsg) (done bool, err error) {
	k := msg.String()
	if k != "enter" && k != "ctrl+j" {
		r.pasted = false
	}
	switch k {
	case "esc":
		return true, ErrAborted
	case "shift+tab":
		return true, errBack
	case "ctrl+d":
		if r.text == "" && !r.e.multiline() {
			return true, ErrAborted
		}
		return r.e.multiline(), nil
	case "enter", "ctrl+j":
		return r.lineEnd(r.s.lineEnd(k))
	case "backspace":
		r.drop(1)
	case "ctrl+u":
		r.drop(len(r.text))
	default:
		if msg.Text != "" && len(r.text)+len(msg.Text) <= maxPaste {
			r.text += msg.Text
			r.s.write(r.echo(msg.Text))
		}
	}
	return false, nil
}

// drop removes up to n characters of the current line, on the screen too.
func (r *lineReader) drop(n int) {
	for ; n > 0 && r.text != "" && !strings.HasSuffix(r.text, "\n"); n-- {
		ed := newEditor(r.text)
		ed.backspace()
		w := lipgloss.Width(r.echo(r.text[len(ed.text):]))
		r.s.write(strings.Repeat("\b \b", w))
		r.text = ed.text
	}
}

// lineEnd decides what a line end means. A terminal that does not mark pastes sends a pasted key line by line: it is
// one answer from its first mark to its last, also where only one line is wanted, so that it can be refused whole.
func (r *lineReader) lineEnd(end string) (done bool, err error) {
	pem := strings.HasPrefix(r.text, pemBegin)
	last := r.text[strings.LastIndexByte(r.text, '\n')+1:]
	switch {
	case r.pasted, !r.e.multiline() && !pem:
		return true, nil
	case last == ".":
		r.text = strings.TrimSuffix(r.text, ".")
		return true, nil
	case r.text == "", strings.HasPrefix(r.text, "@") && last == r.text:
		return true, nil
	}
	if len(r.text) < maxPaste {
		r.text += end
	}
	if !r.e.q.Field.Secret {
		r.s.write("\r\n")
	}
	return pem && strings.HasPrefix(last, pemEnd) && !r.s.follows(pemBegin), nil
}

// lineEnd gives the line end that was just read as it was sent: CR LF where LF follows CR at once, else LF.
func (s *session) lineEnd(key string) string {
	if key == "enter" && len(s.d.buf) > 0 && s.d.buf[0] == '\n' {
		s.d.buf = s.d.buf[1:]
		return "\r\n"
	}
	return "\n"
}

// follows tells whether the input goes on at once with mark, as in a paste of several blocks.
func (s *session) follows(mark string) bool {
	if len(s.d.buf) == 0 {
		select {
		case chunk := <-s.chunks:
			s.d.feed(chunk)
		case <-time.After(pasteQuiet):
		}
	}
	return strings.HasPrefix(string(s.d.buf), mark)
}
