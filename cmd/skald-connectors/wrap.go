package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"skald-connectors/form"
)

// wrapped breaks a message at the width of the terminal that standard error is;
// elsewhere, in a log, it stays on one line.
func (a *app) wrapped(text string) string { return a.wrappedFor(a.stderr, text) }

// wrappedFor is wrapped for another stream. Lines that fit stay as they are.
func (a *app) wrappedFor(stream any, text string) string {
	if !isTerminal(stream) {
		return text
	}
	return wrapLines(text, a.width())
}

// line writes one line of a result to standard output.
func (a *app) line(format string, args ...any) {
	fmt.Fprintln(a.stdout, a.wrappedFor(a.stdout, form.Clean(fmt.Sprintf(format, args...))))
}

// leastColumn is how narrow a last column may get; below that its text stands
// under the whole line.
const leastColumn = 18

// hangs is what the further lines of a broken line stand under: the text of a
// list's item, or the last column of a table.
var hangs = regexp.MustCompile(`^( *(?:\d+\. |- |# )|.*\S {2,})\S`)

// wrapLines breaks the lines that are wider than width.
func wrapLines(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if cells(line) > width {
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) string {
	head := line[:len(line)-len(strings.TrimLeft(line, " "))]
	indent := head
	if m := hangs.FindStringSubmatch(line); m != nil {
		if n := cells(m[1]); width-n >= leastColumn {
			head, indent = m[1], strings.Repeat(" ", n)
		}
	}
	rest := wrap(line[len(head):], width-cells(head), "")
	return head + strings.ReplaceAll(rest, "\n", "\n"+indent)
}

const (
	// labelWidth is the column at which the text behind a label begins.
	labelWidth = 12
	// narrow is a terminal on which that column is too dear for a path or an address.
	narrow = 44
)

// labelRow is a label and its text, which is wrapped behind the label, or below
// it where that leaves too little room. It ends with a line end.
func labelRow(label, text string, width int) string {
	if room := width - labelWidth; width > narrow || room >= max(leastColumn, longestPart(text)) {
		hang := strings.Repeat(" ", labelWidth)
		return fmt.Sprintf("  %-*s%s\n", labelWidth-2, label, strings.TrimPrefix(wrap(text, width, hang), hang))
	}
	if label != "" {
		label = "  " + label + "\n"
	}
	return label + wrap(text, width, "    ") + "\n"
}

// wrap breaks text at width cells, each line indented: between words, and inside
// of one only where a script without spaces allows it, so that paths and addresses
// stay whole.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		for i, part := range parts(word) {
			n, space := cells(part), ""
			if i == 0 && line > 0 {
				space = " "
			}
			switch {
			case line == 0:
				b.WriteString(indent)
				line = len(indent)
			case line+len(space)+n > width:
				b.WriteString("\n" + indent)
				line = len(indent)
			default:
				b.WriteString(space)
				line += len(space)
			}
			b.WriteString(part)
			line += n
		}
	}
	return b.String()
}

// cells is how many cells of a terminal text takes: an ideograph or an emoji takes
// two, a combining mark none.
func cells(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return ansi.StringWidth(text)
		}
	}
	return len(text)
}

const (
	// stays are marks that never begin a line.
	stays = "、。，．！？：；・）」』】〉》”’…ー"
	// opens are marks that never end one.
	opens = `（「『【〈《“‘"'([{<`
)

// parts cuts a word where a line may end inside of it: beside characters of two
// cells, which are written without spaces.
func parts(word string) []string {
	if cells(word) == len(word) {
		return []string{word}
	}
	var out []string
	slim, opened := false, false // what the cluster before was
	for rest := word; rest != ""; {
		cluster, n := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		rest = rest[len(cluster):]
		wide := n == 2
		if len(out) > 0 && (opened || slim && !wide || strings.Contains(stays, cluster)) {
			out[len(out)-1] += cluster
		} else {
			out = append(out, cluster)
		}
		slim, opened = !wide, strings.Contains(opens, cluster)
	}
	return out
}

// longestPart is the width of what cannot be broken in a text.
func longestPart(text string) int {
	most := 0
	for _, word := range strings.Fields(text) {
		for _, part := range parts(word) {
			most = max(most, cells(part))
		}
	}
	return most
}

// shorten cuts text to n cells and marks the cut.
func shorten(text string, n int) string {
	if cells(text) <= n {
		return text
	}
	return strings.TrimRight(ansi.Truncate(text, n-1, ""), " ") + "…"
}
