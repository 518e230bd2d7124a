package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
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
		_, _ = a.stdout.Write([]byte(wrapLines(b.String(), a.width())))
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
