//go:build man

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addDocs adds the hidden command that writes one man page a command.
func addDocs(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "man DIR", Short: "Write the man pages", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "SKALD-CONNECTORS", Section: "1", Source: program}, args[0])
		},
	})
}
