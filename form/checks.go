package form

import (
	"context"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
)

// Pick asks which of the options are wanted, all of them preselected, so that one Enter takes them all. It gives their
// values in their order; none is an answer too.
func (t *Terminal) Pick(ctx context.Context, title string, options []Option) ([]string, error) {
	e := choiceEntry(title, options)
	e.many = true
	for _, o := range e.options {
		e.picked = append(e.picked, o.Value)
	}
	err := t.inSession(ctx, func(s *session) error {
		if s.plain {
			return s.prompts(ctx, "", []*entry{e})
		}
		if err := s.form(ctx, "", []*entry{e}); err != nil {
			return err
		}
		s.println(s.t.fitted(Clean(title) + " " + e.pickedLabels()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.picked, nil
}

// pickedLabels is the answer in one line.
func (e *entry) pickedLabels() string {
	var labels []string
	for _, o := range e.options {
		if slices.Contains(e.picked, o.Value) {
			labels = append(labels, o.Label)
		}
	}
	if len(labels) == 0 {
		return "none"
	}
	return strings.Join(labels, ", ")
}

// checks is huh's multi-select with the manners of a choice.
type checks struct {
	*huh.MultiSelect[string]
	e     *entry
	width int
	keys  huh.MultiSelectKeyMap
	room  *int
}

var _ huh.Field = (*checks)(nil)

func newChecks(e *entry, look huh.Theme, room *int) *checks {
	options := make([]huh.Option[string], len(e.options))
	for i, o := range e.options {
		options[i] = huh.NewOption(o.Label, o.Value)
	}
	list := huh.NewMultiSelect[string]().Title(e.label()).Filterable(false).Value(&e.picked).Options(options...)
	list.WithTheme(look)
	return &checks{MultiSelect: list, e: e, width: 80, room: room}
}

// Update implements huh.Field.
func (c *checks) Update(msg tea.Msg) (huh.Model, tea.Cmd) {
	_, cmd := c.MultiSelect.Update(msg)
	return c, cmd
}

// View implements huh.Field.
func (c *checks) View() string {
	title := lipgloss.Height(lipgloss.Wrap(c.e.label(), max(c.width-2, 1), " "))
	c.MultiSelect.Height(min(title+len(c.e.options), max(*c.room, title+1)))
	return c.MultiSelect.View()
}

// KeyBinds implements huh.Field.
func (c *checks) KeyBinds() []key.Binding {
	move := key.NewBinding(key.WithKeys("up", "down"), key.WithHelp("↑/↓", "move"))
	return []key.Binding{c.keys.Submit, c.keys.Toggle, c.keys.SelectAll, cancelKey(), move}
}

// WithKeyMap implements huh.Field.
func (c *checks) WithKeyMap(k *huh.KeyMap) huh.Field {
	c.keys = k.MultiSelect
	c.MultiSelect.WithKeyMap(k)
	return c
}

// WithWidth implements huh.Field.
func (c *checks) WithWidth(w int) huh.Field {
	c.width = w
	c.MultiSelect.WithWidth(w)
	return c
}

// WithHeight implements huh.Field; the room decides instead.
func (c *checks) WithHeight(int) huh.Field { return c }

// promptChecks shows a numbered list and takes numbers, "all" (or Enter) or "none".
func (s *session) promptChecks(ctx context.Context, e *entry) error {
	for i, o := range e.options {
		s.item(i+1, o.Label)
	}
	for {
		s.say("[numbers, such as 1 3; none; Enter takes all]")
		text, err := s.line(ctx, &entry{})
		if err != nil {
			return err
		}
		if picked, ok := e.numbers(text); ok {
			e.picked = picked
			return nil
		}
		s.say("! that is none of them")
	}
}

// numbers reads the answer to a numbered list.
func (e *entry) numbers(text string) (picked []string, ok bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	switch {
	case len(words) == 0, len(words) == 1 && strings.EqualFold(words[0], "all"):
		return e.picked, true
	case len(words) == 1 && (strings.EqualFold(words[0], "none") || words[0] == "0"):
		return []string{}, true
	}
	want := map[int]bool{}
	for _, w := range words {
		i := pick(e.options, w)
		if i < 0 {
			return nil, false
		}
		want[i] = true
	}
	for i, o := range e.options {
		if want[i] {
			picked = append(picked, o.Value)
		}
	}
	return picked, true
}
