package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"skald-connectors/catalog"
	"skald-connectors/form"
)

func (a *app) catalogCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "catalog", GroupID: "publish", Short: "Build and check a marketplace",
		Long: "A marketplace is a folder of connectors on any web server: index.json with their ids, and a folder\n" +
			"for each. compile writes the index that users read, with the digest of every file; sign makes it one\n" +
			"that the web server cannot bend. docs/format.md has the tree, docs/publishing.md the whole ceremony.",
		Example: "  skald-connectors catalog compile site\n" +
			"  skald-connectors catalog keygen keys/index.key\n" +
			"  skald-connectors catalog sign site --key keys/index.key",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	verify, against := false, ""
	compile := &cobra.Command{
		Use:   "compile [DIR]",
		Short: "Write connectors.json from the folders of a marketplace",
		Long: "compile reads index.json and every connector's folder below DIR (the current folder by\n" +
			"default) and writes connectors.json with the size and SHA-256 of each file. The same\n" +
			"input gives the same bytes. With --verify it changes nothing and exits 1 when the\n" +
			"index is stale. A changed connector has to have a greater version than in the index that\n" +
			"is published: name that one with --against, or the one in DIR stands in for it.",
		Example: "  skald-connectors catalog compile connectors\n  skald-connectors catalog compile connectors --verify",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.compile(cmd, dir, verify, against)
		},
	}
	compile.Flags().BoolVar(&verify, "verify", false, "only say what is stale")
	againstFlag(compile, &against)
	c.AddCommand(compile, a.keygenCommand(), a.signCommand(), a.keysCommand())
	return c
}

// findingLine is one finding as `catalog compile --json` prints it.
type findingLine struct {
	Connector string `json:"connector"`
	File      string `json:"file"`
	Path      string `json:"path,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Severity  string `json:"severity"`
	Rule      string `json:"rule"`
	Message   string `json:"message"`
}

func (a *app) compile(cmd *cobra.Command, dir string, verify bool, against string) error {
	published, err := a.publishedIndex(against)
	if err != nil {
		return err
	}
	o := catalog.Options{Now: a.hooks.now, Against: published}
	do := catalog.Compile
	if verify {
		do = catalog.Verify
		// No target: what is kept there goes with it.
		if o.CacheDir, err = os.MkdirTemp(os.TempDir(), program+"-verify-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.CacheDir)
	}
	report, err := do(cmd.Context(), dir, o)
	var refused *catalog.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return treeHint(dir, err)
	}
	if a.json {
		lines := []findingLine{}
		for _, f := range report.Findings {
			lines = append(lines, findingLine{f.Connector, f.File, f.Path, f.Line, f.Col, f.Severity.String(), f.Rule, f.Message})
		}
		doc := map[string]any{"connectors": report.Connectors, "files": report.Files, "bytes": report.Bytes, "written": report.Written, "findings": lines}
		if perr := a.printJSON(doc); perr != nil {
			return perr
		}
		a.json = false // the one document is out
		return err
	}
	for _, f := range report.Findings {
		where := f.File
		if f.Connector != "" && where == "" {
			where = f.Connector
		}
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", where, f.Line, f.Col)
		}
		fmt.Fprintf(a.stderr, "%s: %s: %s [%s]\n", form.Clean(where), f.Severity, form.Clean(f.Message), f.Rule)
	}
	if err != nil {
		return err
	}
	word := "is up to date"
	if report.Written {
		word = "is written"
	}
	a.line("connectors.json %s: %s, %s, %s", word, plural(report.Connectors, "connector", "connectors"), plural(report.Files, "file", "files"), size(report.Bytes))
	return nil
}

// treeHint says what a marketplace's folder has to have, where it has no list of its connectors.
func treeHint(dir string, err error) error {
	if info, serr := os.Stat(dir); serr != nil || !info.IsDir() || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return withHint(err, "index.json lists the ids of the connectors, such as [\"mail\", \"weather\"], and each has a folder of that name; docs/format.md has the tree")
}
