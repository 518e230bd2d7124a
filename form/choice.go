package form

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
)

// A choice is huh's select with the manners of an input: one line while it has not the keys, help only while it has
// them, never higher than the window, and y and n where the options are yes and no.
type choice struct {
	*huh.Select[string]
	e       *entry
	theme   huh.Theme
	keys    huh.SelectKeyMap
	focused bool
	width   int
	room    *int
}

var _ huh.Field = (*choice)(nil)

func newChoice(e *entry, look huh.Theme, room *int) *choice {
	options := make([]huh.Option[string], len(e.options))
	for i, o := range e.options {
		options[i] = huh.NewOption(o.Label, o.Value)
	}
	sel := huh.NewSelect[string]().Title(e.label()).Options(options...).Value(&e.value)
	sel.WithTheme(look)
	return &choice{Select: sel, e: e, theme: look, width: 80, room: room}
}

// Focus implements huh.Field.
func (c *choice) Focus() tea.Cmd { c.focused = true; return c.Select.Focus() }

// Blur implements huh.Field.
func (c *choice) Blur() tea.Cmd { c.focused = false; return c.Select.Blur() }

// Update implements huh.Field.
func (c *choice) Update(msg tea.Msg) (huh.Model, tea.Cmd) {
	if press, ok := msg.(tea.KeyPressMsg); ok && press.Mod == 0 {
		if i := c.quick(press.Text); i >= 0 {
			c.Select.Update(tea.KeyPressMsg{Code: tea.KeyHome})
			for range i {
				c.Select.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			}
			return c, nil
		}
	}
	_, cmd := c.Select.Update(msg)
	return c, cmd
}

// quick is the option that y or n stands for, or that a digit names; -1 when it is none.
func (c *choice) quick(text string) int {
	if len(text) != 1 || len(c.e.options) > 9 && text >= "0" && text <= "9" {
		return -1
	}
	return pick(c.e.options, text)
}

// View implements huh.Field.
func (c *choice) View() string {
	if !c.focused {
		st := &c.theme.Theme(true).Blurred
		w := max(c.width-st.Base.GetHorizontalFrameSize(), 1)
		return st.Base.Render(st.Title.Render(lipgloss.Wrap(c.e.label(), w, " ")) + "\n" +
			st.TextInput.Prompt.Render("> ") + st.TextInput.Text.Render(crop(c.chosen(), w-2, false)))
	}
	help := c.e.help()
	if c.e.q.Problem != "" {
		help = strings.TrimPrefix(help+"\n"+Clean(c.e.q.Problem), "\n")
	}
	c.Select.Description(help).Height(0)
	if lipgloss.Height(c.Select.View()) > *c.room {
		c.Select.Description("")
	}
	if lipgloss.Height(c.Select.View()) > *c.room {
		c.Select.Height(max(*c.room, 2))
	}
	return c.Select.View()
}

// chosen is the label of the value.
func (c *choice) chosen() string {
	for _, o := range c.e.options {
		if o.Value == c.e.value {
			return o.Label
		}
	}
	return ""
}

// KeyBinds implements huh.Field.
func (c *choice) KeyBinds() []key.Binding {
	move := key.NewBinding(key.WithKeys("up", "down"), key.WithHelp("↑/↓", "choose"))
	return []key.Binding{c.keys.Next, c.keys.Submit, c.keys.Prev, cancelKey(), move}
}

// WithKeyMap implements huh.Field.
func (c *choice) WithKeyMap(k *huh.KeyMap) huh.Field {
	c.keys = k.Select
	c.Select.WithKeyMap(k)
	return c
}

// WithWidth implements huh.Field.
func (c *choice) WithWidth(w int) huh.Field {
	c.width = w
	c.Select.WithWidth(w)
	return c
}

// WithHeight implements huh.Field; the room is shared instead, so that it can grow again.
func (c *choice) WithHeight(int) huh.Field { return c }

// WithPosition implements huh.Field.
func (c *choice) WithPosition(p huh.FieldPosition) huh.Field {
	c.keys.Prev.SetEnabled(!p.IsFirst())
	c.keys.Next.SetEnabled(!p.IsLast())
	c.keys.Submit.SetEnabled(p.IsLast())
	c.Select.WithPosition(p)
	return c
}
