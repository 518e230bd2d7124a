package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/manifest"
	"skald-connectors/mount"
)

func (a *app) seedCommand() *cobra.Command {
	configDir := ""
	c := &cobra.Command{
		Use:     "seed",
		GroupID: "main",
		Short:   "Mount the default connectors that are installed into the engine's catalogue",
		Long: "seed mounts every installed connector of the default list into the engine's own catalogue\n" +
			"and remembers what came of each, so that an entry that a person removed is never brought\n" +
			"back. Without --config-dir the folder is that of the variable " + configDirVariable + ".",
		Example: "  skald-connectors seed --config-dir /etc/engine",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.seed(cmd.Context(), configDir) },
	}
	c.Flags().StringVar(&configDir, "config-dir", "", "configuration folder of the engine (`DIR`, else "+configDirVariable+")")
	return c
}

// seedLine is one name as seed prints it. Reading is mounted, present, conflict,
// not_installed or refused.
type seedLine struct {
	Name    string       `json:"name"`
	Reading string       `json:"reading"`
	Changed bool         `json:"changed"`
	Removed bool         `json:"removed,omitempty"` // mounted before, and taken out by a person
	File    string       `json:"file"`
	Reason  mount.Reason `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
}

func (a *app) seed(ctx context.Context, configDir string) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	names, err := a.defaultConnectors(ctx, act.Home)
	if err != nil {
		return err
	}
	dir := orElse(configDir, a.getenv(configDirVariable))
	outcomes, err := act.Mounts.Seed(ctx, mount.SeedRequest{
		ConfigDir: dir, Names: names,
		Installed: func(name string) bool { _, err := act.Records().Read(name); return err == nil },
		Digests: func(name string) []string {
			rec, err := act.Records().Read(name)
			if err != nil {
				return nil
			}
			var out []string
			for _, m := range rec.Mounts {
				if m.Client == mount.Engine && m.File == act.Mounts.EngineFile(dir) {
					out = append(out, m.Digest)
				}
			}
			return out
		},
	})
	for _, o := range outcomes {
		if o.Digest == "" {
			continue
		}
		ref := record.MountRef{Client: mount.Engine, File: o.File, Digest: o.Digest}
		var gone *record.NotInstalledError
		if nerr := act.NoteMounts(ctx, o.Name, ref); nerr != nil && !errors.As(nerr, &gone) {
			return nerr
		}
	}
	return a.endSeed(outcomes, err)
}

// endSeed says what came of each name, and of the whole.
func (a *app) endSeed(outcomes []mount.SeedOutcome, err error) error {
	lines, failed := make([]seedLine, len(outcomes)), false
	for i, o := range outcomes {
		lines[i] = seedLine{Name: o.Name, Reading: o.Reading, Changed: o.Changed, Removed: o.Removed, File: o.File}
		if o.Refused != nil {
			failed = true
			lines[i].Reason, lines[i].Message = o.Refused.Reason, o.Refused.Message
		}
	}
	var refused *mount.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if a.json {
		doc := map[string]any{"seeded": lines, "refused": nil}
		if refused != nil {
			doc["refused"] = map[string]any{"reason": refused.Reason, "message": refused.Error()}
		}
		if err := a.printJSON(doc); err != nil {
			return err
		}
	} else {
		for i, l := range lines {
			a.saySeed(l, outcomes[i].Refused)
		}
	}
	if refused != nil {
		fmt.Fprintf(a.stderr, "%s: seed refused (%s): %s\n", program, refused.Reason, words(refused))
	}
	if refused != nil || failed {
		return &saidError{exitFailed}
	}
	return nil
}

func (a *app) saySeed(l seedLine, refused *mount.RefusedError) {
	switch {
	case refused != nil:
		fmt.Fprintf(a.stderr, "%s: mount refused (%s): %s\n", program, refused.Reason, words(refused))
	case l.Removed:
		a.line("connector %s was removed from %s and is not brought back", l.Name, form.Clean(l.File))
	case l.Changed:
		a.line("mounted connector %s in %s; restart the engine to apply", l.Name, form.Clean(l.File))
	case l.Reading == "not_installed":
		a.line("connector %s is not installed", l.Name)
	default:
		a.line("connector %s is already mounted in %s", l.Name, form.Clean(l.File))
	}
}

// defaultConnectors is the default list: the entries of the built-in index that
// name the seed version which added them, in that order.
func (a *app) defaultConnectors(ctx context.Context, home string) ([]string, error) {
	m, err := a.marketplace(builtinLocation, home)
	if err != nil {
		return nil, err
	}
	ix, err := m.Index(ctx, fetch.Offline)
	if err != nil {
		return nil, err
	}
	found, err := ix.Search(fetch.Query{})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e manifest.Entry) bool { return e.SeedSince <= 0 || e.Broken != "" })
	slices.SortStableFunc(found, func(x, y manifest.Entry) int { return int(x.SeedSince - y.SeedSince) })
	names := make([]string, len(found))
	for i, e := range found {
		names[i] = e.ID
	}
	return names, nil
}
