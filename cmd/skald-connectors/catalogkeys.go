package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/catalog"
	"skald-connectors/fetch/trust"
)

type keysOptions struct {
	dir         string
	roots       []string
	indexes     []string
	with        []string
	rootNeeded  int
	indexNeeded int
	expires     string
}

func (a *app) keysCommand() *cobra.Command {
	dir := "."
	c := &cobra.Command{
		Use:   "keys",
		Short: "Show, add and drop the keys that may sign a marketplace",
		Long: "A marketplace's keys.json says which keys sign its index and which root keys may change that.\n" +
			"A change is a draft until the present root keys and the new ones have signed it. Without a\n" +
			"subcommand keys shows what is there and what is still wanted.",
		Example: "  skald-connectors catalog keys --dir connectors",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.editKeys(cmd.Context(), &keysOptions{dir: dir}, catalog.KeysEdit{})
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "the marketplace's `FOLDER`")
	add := a.keysEditCommand("add", "Let public keys (RWQ…, or .pub files) sign",
		"  skald-connectors catalog keys add --root a.pub --root b.pub --root-threshold 2 --index index.pub --key a.key --key b.key")
	drop := a.keysEditCommand("drop KEY…", "Take the right to sign away from keys", "  skald-connectors catalog keys drop index.pub --key a.key --key b.key")
	sign := a.keysEditCommand("sign", "Sign the change that waits", "  skald-connectors catalog keys sign --key b.key")
	c.AddCommand(add, drop, sign)
	return c
}

// keysEditCommand makes one of the three commands that change keys.json.
func (a *app) keysEditCommand(use, short, example string) *cobra.Command {
	o := &keysOptions{}
	word, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		e, err := o.edit(word, args)
		if err != nil {
			return err
		}
		return a.editKeys(cmd.Context(), o, e)
	}}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", ".", "the marketplace's `FOLDER`")
	f.StringArrayVar(&o.with, "key", nil, "`FILE` with a root key to sign the change with (repeatable)")
	if word == "sign" {
		return c
	}
	if word == "drop" {
		c.Args = cobra.MinimumNArgs(1)
	} else {
		f.StringArrayVar(&o.roots, "root", nil, "public `KEY` that may change the keys (repeatable)")
		f.StringArrayVar(&o.indexes, "index", nil, "public `KEY` that may sign the index (repeatable)")
	}
	f.IntVar(&o.rootNeeded, "root-threshold", 0, "how many root keys (`N`) have to sign a change of keys")
	f.IntVar(&o.indexNeeded, "index-threshold", 0, "how many index keys (`N`) have to sign the index")
	f.StringVar(&o.expires, "expires", "", "until when the document is good (`DATE`, such as 2027-12-01; default: in a year)")
	return c
}

// edit puts flags into words that package catalog knows.
func (o *keysOptions) edit(word string, args []string) (e catalog.KeysEdit, err error) {
	e = catalog.KeysEdit{RootThreshold: o.rootNeeded, IndexThreshold: o.indexNeeded}
	if err := o.dates(&e); err != nil {
		return e, err
	}
	for _, list := range []struct {
		from []string
		to   *[]trust.Key
	}{{o.roots, &e.AddRoot}, {o.indexes, &e.AddIndex}, {args, &e.Drop}} {
		if *list.to, err = publicKeys(list.from); err != nil {
			return e, err
		}
	}
	switch {
	case word == "sign" && len(o.with) == 0:
		return e, usagef("keys sign wants a root key: --key FILE")
	case word == "add" && len(o.roots)+len(o.indexes)+o.rootNeeded+o.indexNeeded == 0 && o.expires == "":
		return e, usagef("keys add wants a public key: --root KEY or --index KEY")
	}
	return e, nil
}

func (o *keysOptions) dates(e *catalog.KeysEdit) error {
	if o.expires == "" {
		return nil
	}
	t, err := time.Parse(time.DateOnly, o.expires)
	if err != nil {
		return usagef("--expires %q is not a date such as 2027-12-01", o.expires)
	}
	e.Expires = t
	return nil
}

// publicKeys reads keys that are given as text or as .pub files.
func publicKeys(args []string) ([]trust.Key, error) {
	const limit = 4 << 10 // a public key has two short lines
	var keys []trust.Key
	for _, arg := range args {
		text := arg
		if f, err := os.Open(arg); err == nil {
			data, err := io.ReadAll(io.LimitReader(f, limit))
			f.Close()
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		k, err := trust.ParseKey(text)
		if err != nil {
			return nil, usagef("%q is neither a minisign public key nor a file with one", arg)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (a *app) editKeys(ctx context.Context, o *keysOptions, edit catalog.KeysEdit) error {
	with, err := a.readKeys(ctx, o.with)
	if err != nil {
		return err
	}
	s, err := catalog.EditKeys(o.dir, edit, with, a.hooks.now())
	var refused *trust.Error
	if errors.As(err, &refused) {
		return usagef("%s", strings.ReplaceAll(err.Error(), "the index is not trusted (document): ", ""))
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"keys": keysDocument(s.Now), "draft": keysDocument(s.Draft), "signed": list(s.Signed),
			"missing": map[string]int{"present": s.OldMissing, "new": s.NewMissing}, "published": s.Published})
	}
	a.printKeys(o.dir, s)
	return nil
}

func keysDocument(k *trust.Keys) any {
	if k == nil {
		return nil
	}
	return map[string]any{"version": k.Version, "expires": k.Expires, "root": keyTexts(k.Root), "root_threshold": k.RootThreshold,
		"index": keyTexts(k.Index), "index_threshold": k.IndexThreshold}
}

// signaturesWanted says whose signatures a draft lacks; it lacks some.
func signaturesWanted(s *catalog.KeysState) string {
	more := func(n int, whose string) string {
		return plural(n, "more signature", "more signatures") + " of " + whose
	}
	switch {
	case s.Now == nil:
		return more(s.NewMissing, "its root keys")
	case s.NewMissing == 0:
		return more(s.OldMissing, "the present root keys")
	case s.OldMissing == 0:
		return more(s.NewMissing, "its own root keys")
	}
	return more(s.OldMissing, "the present root keys") + " and " + more(s.NewMissing, "its own root keys") + " (a key that is both counts for both)"
}

func keyTexts(keys []trust.Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.String()
	}
	return out
}

func (a *app) printKeys(dir string, s *catalog.KeysState) {
	show := func(title string, k *trust.Keys) {
		a.line("%s: version %d, good until %s", title, k.Version, k.Expires.Format(time.DateOnly))
		for _, role := range []struct {
			name string
			need int
			keys []trust.Key
		}{{"root", k.RootThreshold, k.Root}, {"index", k.IndexThreshold, k.Index}} {
			a.line("  %s, %d of %d:", role.name, role.need, len(role.keys))
			for _, one := range role.keys {
				mark := ""
				if s.Draft != nil && k == s.Draft && slices.Contains(s.Signed, one.ID()) {
					mark = "  signed"
				}
				a.line("    %s  %s%s", one, one.ID(), mark)
			}
		}
	}
	if s.Now != nil {
		show("keys.json", s.Now)
	}
	switch {
	case s.Draft != nil:
		show("keys.next.json, a draft", s.Draft)
		a.say("it wants %s: %s catalog keys sign --dir %s --key FILE", signaturesWanted(s), program, dir)
	case s.Published:
		a.say("keys.json is written; sign the index again, and publish both together")
	case s.Now == nil:
		a.say("there is no keys.json; see docs/publishing.md")
	}
}
