package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
)

// completeIDs offers the ids of the indexes that are here already.
func (a *app) completeIDs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	a.quiet = true
	all, err := a.openShops(cmd.Context(), fetch.Offline)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, s := range all.open {
		found, err := s.index.Search(fetch.Query{})
		if err != nil {
			continue
		}
		for _, e := range found {
			id := e.ID
			if strings.Contains(prefix, "/") {
				id = s.name + "/" + id
			}
			if strings.HasPrefix(id, prefix) && !slices.Contains(args, id) && e.Broken == "" {
				out = append(out, id+"\t"+e.Name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeNames offers what is installed, for one name.
func (a *app) completeNames(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeMoreNames(c, args, prefix)
}

// completeMoreNames offers what is installed and not named yet.
func (a *app) completeMoreNames(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	home, err := a.home()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := record.Open(home).List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, l := range list {
		if strings.HasPrefix(l.Name, prefix) && !slices.Contains(args, l.Name) {
			out = append(out, l.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
