//go:build !man

package main

import "github.com/spf13/cobra"

// addDocs adds the command that writes man pages: only in builds with the tag
// man, so that the program itself does not carry the page writer.
func addDocs(*cobra.Command) {}
