package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wrapArgs turns the refusals of cobra's argument checks into usage errors.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				var said *usageError
				if errors.As(err, &said) {
					return err
				}
				return &usageError{wrongArgs(cmd, args), cmd.CommandPath()}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// wrongArgs says what a command takes; a misspelt command below it is the likelier mistake.
func wrongArgs(cmd *cobra.Command, args []string) string {
	_, wants, _ := strings.Cut(cmd.Use, " ")
	switch {
	case len(args) > 0 && (cmd.HasSubCommands() && wants == "" || len(near(cmd, args[0], nearCommand)) > 0):
		return unknownCommand(cmd, args[0]).Error()
	case wants == "":
		wants = "no arguments"
	case len(args) == 0:
		return fmt.Sprintf("%s takes %s, and none is given", cmd.Name(), wants)
	}
	return fmt.Sprintf("%s takes %s; given: %d", cmd.Name(), wants, len(args))
}

// unknownCommand names what looks like the word.
func unknownCommand(cmd *cobra.Command, word string) error {
	return &usageError{fmt.Sprintf("there is no command %q", word) + similar(near(cmd, word, nearCommand), ""), cmd.CommandPath()}
}

// How many letters may differ. Flags are short and many: two of four letters are another word.
const (
	nearCommand = 2
	nearFlag    = 1
)

// near names the commands below cmd that look like a word.
func near(cmd *cobra.Command, word string, letters int) []string {
	cmd.SuggestionsMinimumDistance = letters
	return cmd.SuggestionsFor(word)
}

// nearFlags names the flags that look like the one that an error calls unknown.
func nearFlags(cmd *cobra.Command, err error) []string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 3 {
		return nil
	}
	flags := &cobra.Command{} // cobra compares names of commands
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return near(flags, unknown.GetSpecifiedName(), nearFlag)
}

func similar(names []string, mark string) string {
	if len(names) == 0 {
		return ""
	}
	return "; similar: " + mark + strings.Join(names, ", "+mark)
}
