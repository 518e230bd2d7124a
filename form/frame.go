package form

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
)

// A frame is what stands on the screen below the text that was there before: its lines' widths, and the window's width
// when it was drawn. It is redrawn in place, without the alternate screen, so that what was said before stays visible.
type frame struct {
	widths []int
	window int
}

// draw replaces the frame by text, cut to the window, and returns the bytes to write.
func (f *frame) draw(text string, width, height int) string {
	lines := strings.Split(text, "\n")
	lines = lines[:min(len(lines), max(height, 1))]
	var b strings.Builder
	b.WriteString(f.top(width, height))
	f.widths, f.window = f.widths[:0], width
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		cut := lipgloss.NewStyle().MaxWidth(max(width, 1)).Render(line)
		b.WriteString("\x1b[2K" + cut)
		f.widths = append(f.widths, lipgloss.Width(cut))
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// erase removes the frame; the cursor stands where it began.
func (f *frame) erase() string {
	if len(f.widths) == 0 {
		return ""
	}
	seq := f.top(f.window, len(f.widths)) + "\x1b[J"
	f.widths = nil
	return seq
}

// top moves to the first row of the frame. After a resize to a smaller width terminals wrap the old lines.
func (f *frame) top(width, height int) string {
	if len(f.widths) == 0 {
		return "\r"
	}
	rows := 0
	for _, w := range f.widths {
		rows++
		if width > 0 && width < f.window {
			rows += max(w-1, 0) / width
		}
	}
	if up := min(rows, max(height, 1)) - 1; up > 0 {
		return "\r\x1b[" + strconv.Itoa(up) + "A"
	}
	return "\r"
}
