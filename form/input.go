package form

import (
	"fmt"
	"io"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
)

// shownLines is how many lines of a text with several lines are shown around the cursor.
const shownLines = 5

// An input is a huh field for one line or several, open or masked. huh's own fields turn a pasted line end into a space
// (one line) or rewrite CRLF and tabs (several), so keys would not arrive as they were copied.
type input struct {
	e       *entry
	ed      editor
	problem string
	notes   []string
	theme   huh.Theme
	keys    huh.InputKeyMap
	focused bool
	width   int
	room    *int // rows that the window has for a field; shared by all fields of a form
}

var _ huh.Field = (*input)(nil)

func newInput(e *entry, look huh.Theme, room *int) *input {
	return &input{e: e, theme: look, ed: newEditor(e.buf), problem: Clean(e.q.Problem), room: room, width: 80}
}

// Init implements huh.Field.
func (f *input) Init() tea.Cmd { return nil }

// Focus implements huh.Field.
func (f *input) Focus() tea.Cmd { f.focused = true; return nil }

// Blur implements huh.Field.
func (f *input) Blur() tea.Cmd { f.focused = false; return nil }

// Update implements huh.Field. Only the focused field is given keys and pastes.
func (f *input) Update(msg tea.Msg) (huh.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		f.edited(f.ed.paste(msg.Content, f.e.multiline()))
	case tea.KeyPressMsg:
		switch {
		case key.Matches(msg, f.keys.Prev):
			return f, huh.PrevField
		case key.Matches(msg, f.keys.Next, f.keys.Submit):
			return f, f.submit()
		}
		f.press(msg)
	}
	return f, nil
}

// submit moves on when the answer stands, else shows why not.
func (f *input) submit() tea.Cmd {
	f.problem, f.notes = f.e.submit(f.ed.text)
	if f.problem != "" || len(f.notes) > 0 {
		return nil
	}
	return huh.NextField
}

// edited follows every change: what was said about the old text is gone.
func (f *input) edited(err error) {
	f.problem, f.notes, f.e.buf = "", nil, f.ed.text
	if err != nil {
		f.problem = err.Error()
	}
}

// press edits. In a masked field the place in the text cannot be seen, so the cursor stays at its end.
func (f *input) press(msg tea.KeyPressMsg) {
	var err error
	switch k := msg.String(); k {
	case "left", "right", "home", "end", "ctrl+a", "ctrl+e", "ctrl+b", "ctrl+f":
		if !f.e.masked() {
			f.move(k)
		}
		return
	case "backspace":
		f.ed.backspace()
	case "delete", "ctrl+d":
		f.ed.delete()
	case "ctrl+w":
		f.ed.cutWord()
	case "ctrl+k":
		f.ed.cutEnd()
	case "ctrl+u":
		f.ed.cutStart()
	case "alt+enter", "ctrl+j":
		if !f.e.multiline() {
			return
		}
		err = f.ed.insert("\n")
	default:
		if msg.Text == "" || msg.Mod != 0 {
			return
		}
		err = f.ed.insert(msg.Text)
	}
	f.edited(err)
	if f.e.masked() {
		f.ed.at = len(f.ed.text)
	}
}

func (f *input) move(k string) {
	switch k {
	case "left", "ctrl+b":
		f.ed.left()
	case "right", "ctrl+f":
		f.ed.right()
	case "home", "ctrl+a":
		f.ed.home()
	default:
		f.ed.end()
	}
}

// View implements huh.Field. When the window is low, the help is dropped first, then the label: never the typed text
// and never what is wrong with it.
func (f *input) View() string {
	st := f.styles()
	w := max(f.width-st.Base.GetHorizontalFrameSize(), 1)
	body := strings.Split(f.body(st, w), "\n")
	body = append(body, f.below(st, w)...)
	head := []string{st.Title.Render(lipgloss.Wrap(f.e.label(), w, " "))}
	var help []string
	if text := f.e.help(); text != "" && f.focused {
		help = strings.Split(st.Description.Render(lipgloss.Wrap(text, w, " /")), "\n")
	}
	spare := max(*f.room-len(body)-len(head), 0)
	lines := append(head, help[:min(len(help), spare)]...)
	lines = append(lines, body...)
	if len(lines) > *f.room {
		lines = lines[len(lines)-max(*f.room, 1):]
	}
	return st.Base.Render(strings.Join(lines, "\n"))
}

// body is the typed text, or what stands for it.
func (f *input) body(st *huh.FieldStyles, w int) string {
	prompt := st.TextInput.Prompt.Render("> ")
	cursor := ""
	if f.focused {
		cursor = st.TextInput.Cursor.Render(" ")
	}
	switch {
	case f.ed.text == "":
		hint := crop(f.e.placeholder(f.focused), w-4, false)
		return prompt + cursor + st.TextInput.Placeholder.Render(hint)
	case f.e.masked():
		return prompt + st.TextInput.Text.Render(measure(f.ed.text, f.e.multiline())) + cursor
	case !f.focused:
		return prompt + st.TextInput.Text.Render(crop(f.summary(), w-2, false))
	}
	return f.typed(st, w, prompt)
}

// summary shows an open value in one line.
func (f *input) summary() string {
	if strings.Contains(f.ed.text, "\n") {
		return measure(f.ed.text, true)
	}
	return Clean(f.ed.text)
}

// typed shows the text around the cursor.
func (f *input) typed(st *huh.FieldStyles, w int, prompt string) string {
	start := strings.LastIndexByte(f.ed.text[:f.ed.at], '\n') + 1
	line, rest, _ := strings.Cut(f.ed.text[start:], "\n")
	above := strings.Split(f.ed.text[:start], "\n")
	above = above[:len(above)-1]
	keep := min(len(above), shownLines-1)
	var out []string
	for _, l := range above[len(above)-keep:] {
		out = append(out, "  "+st.TextInput.Text.Render(crop(Clean(l), w-2, false)))
	}
	out = append(out, prompt+f.cursorLine(st, line, f.ed.at-start, w-2))
	if below := countLines(rest); below > 0 {
		out = append(out, st.Description.Render(fmt.Sprintf("  and %s below", plural(below, "line"))))
	}
	return strings.Join(out, "\n")
}

// cursorLine shows one line with the cursor at byte offset at, scrolled so that it can be seen.
func (f *input) cursorLine(st *huh.FieldStyles, line string, at, w int) string {
	under := " "
	tail := line[at:]
	if tail != "" {
		e := editor{text: line, at: at}
		under, tail = line[at:at+e.after()], line[at+e.after():]
	}
	under = Clean(under)
	before := crop(Clean(line[:at]), w-lipgloss.Width(under), true)
	room := w - lipgloss.Width(before) - lipgloss.Width(under)
	return st.TextInput.Text.Render(before) + st.TextInput.Cursor.Render(under) + st.TextInput.Text.Render(crop(Clean(tail), room, false))
}

// below is what is said under the field.
func (f *input) below(st *huh.FieldStyles, w int) []string {
	var lines []string
	say := func(style lipgloss.Style, text string) {
		lines = append(lines, strings.Split(style.Render(lipgloss.Wrap(text, w, " ")), "\n")...)
	}
	if f.problem != "" {
		say(st.ErrorMessage, f.problem)
	}
	for _, n := range f.notes {
		say(st.ErrorIndicator, n)
	}
	if len(f.notes) > 0 {
		say(st.ErrorIndicator, "Enter takes it as it is.")
	}
	if f.e.said != "" && !f.focused {
		say(st.Description, f.e.said)
	}
	return lines
}

func (f *input) styles() *huh.FieldStyles {
	if f.focused {
		return &f.theme.Theme(true).Focused
	}
	return &f.theme.Theme(true).Blurred
}

// crop cuts clean text to w cells, at its start or its end, and marks the cut.
func crop(s string, w int, atStart bool) string {
	if lipgloss.Width(s) <= w {
		return s
	}
	if w < 2 {
		return ""
	}
	runes := []rune(s)
	for len(runes) > 0 && lipgloss.Width(string(runes)) > w-1 {
		if atStart {
			runes = runes[1:]
		} else {
			runes = runes[:len(runes)-1]
		}
	}
	if atStart {
		return "…" + string(runes)
	}
	return string(runes) + "…"
}

// The rest of huh.Field.

// Error gives nil: a field is left only through submit, so a form that is through has no errors.
func (f *input) Error() error { return nil }

// Skip implements huh.Field.
func (f *input) Skip() bool { return false }

// Zoom implements huh.Field.
func (f *input) Zoom() bool { return false }

// Run is not used: the loop of this package runs the form.
func (f *input) Run() error { return huh.Run(f) }

// RunAccessible is not used: plain prompts are this package's own.
func (f *input) RunAccessible(io.Writer, io.Reader) error { return ErrNoTerminal }

// KeyBinds implements huh.Field: the line at the foot of the form.
func (f *input) KeyBinds() []key.Binding {
	binds := []key.Binding{f.keys.Next, f.keys.Submit, f.keys.Prev, cancelKey()}
	if f.e.multiline() {
		binds = append(binds, newLineKey())
	}
	return binds
}

// WithTheme implements huh.Field.
func (f *input) WithTheme(t huh.Theme) huh.Field { f.theme = t; return f }

// WithKeyMap implements huh.Field.
func (f *input) WithKeyMap(k *huh.KeyMap) huh.Field { f.keys = k.Input; return f }

// WithWidth implements huh.Field.
func (f *input) WithWidth(w int) huh.Field { f.width = w; return f }

// WithHeight implements huh.Field; the room is shared instead, so that it can grow again.
func (f *input) WithHeight(int) huh.Field { return f }

// WithPosition implements huh.Field.
func (f *input) WithPosition(p huh.FieldPosition) huh.Field {
	f.keys.Prev.SetEnabled(!p.IsFirst())
	f.keys.Next.SetEnabled(!p.IsLast())
	f.keys.Submit.SetEnabled(p.IsLast())
	return f
}

// GetKey implements huh.Field.
func (f *input) GetKey() string { return f.e.q.Field.Name }

// GetValue gives nothing: huh keeps the values it is given in a map, and a secret has no business there.
func (f *input) GetValue() any { return nil }
