package main

import (
	"fmt"
	"regexp"
	"strings"

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
		if len([]rune(line)) > width {
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) string {
	head := line[:len(line)-len(strings.TrimLeft(line, " "))]
	indent := head
	if m := hangs.FindStringSubmatch(line); m != nil {
		if n := len([]rune(m[1])); width-n >= leastColumn {
			head, indent = m[1], strings.Repeat(" ", n)
		}
	}
	rest := wrap(line[len(head):], width-len([]rune(head)), "")
	return head + strings.ReplaceAll(rest, "\n", "\n"+indent)
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
