package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/internal/lazyre"
)

// fitHelp lets every help text fit the terminal that shows it. What goes into a
// file or to another program stays as it is written.
func (a *app) fitHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, helpOf
		}
	}
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !isTerminal(a.stdout) {
			show(cmd, args)
			return
		}
		var b bytes.Buffer
		cmd.Long = reflow(cmd.Long, a.width())
		cmd.SetOut(&b)
		show(cmd, args)
		cmd.SetOut(a.stdout)
		_, _ = a.stdout.Write([]byte(layHelp(b.String(), a.width())))
	})
}

// helpOf shows the help of a command; cobra's own shows that of the root for a word that is none.
func helpOf(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if len(rest) > 0 {
		return unknownCommand(about, rest[0])
	}
	if err != nil {
		return err
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}

// reflow fills the paragraphs of a text anew; indented lines stay as they are.
func reflow(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = wrap(p, width, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// flagColumn is what stands before the text of a flag.
var flagColumn = lazyre.New(`^( +(?:-\w, )?--\S+(?: \S+)?) {2,}\S`)

// leastFlagText is how little room the text of a flag may have beside it; with less it stands below.
const leastFlagText = 32

// layHelp breaks the lines of a help text that are wider than width. An example goes on after a backslash, so that
// what is copied from the terminal is still one command.
func layHelp(text string, width int) string {
	lines := strings.Split(text, "\n")
	section := ""
	for i, line := range lines {
		if line != "" && line[0] != ' ' {
			section = line
		}
		flag := flagColumn.FindStringSubmatch(line)
		switch {
		case flag != nil && width-(len(flag[0])-1) < leastFlagText:
			lines[i] = flag[1] + "\n" + wrap(line[len(flag[0])-1:], width, strings.Repeat(" ", 10))
		case cells(line) <= width:
		case section == "Examples:" && !strings.Contains(line, "  #"): // a comment ends with its line
			lines[i] = wrapCommand(line, width)
		default:
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

// wrapCommand breaks a command line between its words.
func wrapCommand(line string, width int) string {
	const more, deeper = " \\", "    "
	var b strings.Builder
	used := 0
	for i, word := range withValues(shellWords(strings.TrimSpace(line)), width-len(deeper)-len(more)) {
		switch n := cells(word); {
		case i == 0:
			b.WriteString("  " + word)
			used = 2 + n
		case used+1+n+len(more) > width:
			b.WriteString(more + "\n" + deeper + word)
			used = len(deeper) + n
		default:
			b.WriteString(" " + word)
			used += 1 + n
		}
	}
	return b.String()
}

// withValues joins flags and their values to words, where these are not wider than most.
func withValues(words []string, most int) (out []string) {
	for _, w := range words {
		if n := len(out) - 1; n >= 0 && strings.HasPrefix(out[n], "--") && !strings.ContainsAny(out[n], " =") && !strings.HasPrefix(w, "-") && cells(out[n])+1+cells(w) <= most {
			out[n] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// shellWords cuts a command line at its spaces, those in single quotes left alone.
func shellWords(line string) (words []string) {
	quoted, from := false, 0
	for i, c := range []byte(line) {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ' ' && !quoted:
			words, from = append(words, line[from:i]), i+1
		}
	}
	return append(words, line[from:])
}
