package form

import (
	"image/color"

	"charm.land/bubbles/v2/key"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
)

// theme is the look of a form. It uses the terminal's own first eight colours and its default text colour, so it can be
// read on a dark and on a light background without asking which one it is. Without colours bold, faint and inverse stay.
func theme(colored bool) huh.Theme {
	st := build(colored)
	return huh.ThemeFunc(func(bool) *huh.Styles { return st })
}

func build(colored bool) *huh.Styles {
	tint := func(s lipgloss.Style, c color.Color) lipgloss.Style {
		if colored {
			return s.Foreground(c)
		}
		return s
	}
	plain := lipgloss.NewStyle()
	faint := plain.Faint(true)
	st := huh.ThemeBase(true)

	f := huh.FieldStyles{
		Base:                tint(plain.PaddingLeft(1).BorderStyle(lipgloss.ThickBorder()).BorderLeft(true), nil),
		Title:               plain.Bold(true),
		Description:         faint,
		ErrorMessage:        tint(plain.Bold(!colored), lipgloss.Red),
		ErrorIndicator:      tint(plain.Bold(!colored), lipgloss.Yellow),
		SelectSelector:      tint(plain, lipgloss.Cyan).SetString("> "),
		SelectedOption:      plain.Bold(true),
		UnselectedOption:    plain,
		Option:              plain,
		MultiSelectSelector: tint(plain, lipgloss.Cyan).SetString("> "),
		SelectedPrefix:      plain.SetString("[x] "),
		UnselectedPrefix:    plain.SetString("[ ] "),
		FocusedButton:       plain.Reverse(true),
		BlurredButton:       plain,
		TextInput: huh.TextInputStyles{
			Cursor:      plain.Reverse(true),
			CursorText:  plain,
			Placeholder: faint,
			Prompt:      tint(plain, lipgloss.Cyan),
			Text:        plain,
		},
	}
	if colored {
		f.Base = f.Base.BorderForeground(lipgloss.Cyan)
	}
	st.Focused = f
	st.Blurred = f
	st.Blurred.Base = plain.PaddingLeft(2)
	st.Blurred.Title = plain
	st.Blurred.SelectSelector = plain.SetString("> ")
	st.Blurred.TextInput.Prompt = faint
	st.Blurred.TextInput.Text = faint

	st.FieldSeparator = plain.SetString("\n\n")
	st.Group.Title = plain.Bold(true).MarginBottom(1)
	st.Help.ShortKey, st.Help.ShortDesc, st.Help.ShortSeparator, st.Help.Ellipsis = plain, faint, faint, faint
	return st
}

// keyMap is huh's, with Esc as a way out of the whole form, and without keys that only some fields would understand.
func keyMap() *huh.KeyMap {
	k := huh.NewDefaultKeyMap()
	k.Quit.SetKeys("ctrl+c", "esc")
	k.Input.Submit.SetHelp("enter", "done")
	k.Input.Submit.SetKeys("enter", "tab")
	k.Select.Submit.SetHelp("enter", "done")
	k.Select.Submit.SetKeys("enter", "tab")
	k.Select.Next.SetHelp("enter", "next")
	k.Select.Filter.SetKeys()
	k.Select.Filter.SetEnabled(false)
	k.Select.ClearFilter.SetKeys()
	k.Select.SetFilter.SetKeys()
	k.MultiSelect.Submit.SetKeys("enter", "tab")
	k.MultiSelect.Submit.SetHelp("enter", "done")
	k.MultiSelect.Toggle.SetHelp("space", "on/off")
	k.MultiSelect.SelectAll.SetHelp("ctrl+a", "all/none")
	k.MultiSelect.Filter.SetKeys()
	k.MultiSelect.SetFilter.SetKeys()
	k.MultiSelect.ClearFilter.SetKeys()
	return k
}

func newLineKey() key.Binding {
	return key.NewBinding(key.WithKeys("alt+enter", "ctrl+j"), key.WithHelp("ctrl+j", "new line"))
}

func cancelKey() key.Binding {
	return key.NewBinding(key.WithKeys("esc"), key.WithHelp("esc", "cancel"))
}
