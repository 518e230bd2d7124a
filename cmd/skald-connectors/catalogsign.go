package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/catalog"
	"skald-connectors/fetch/trust"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// againstFlag registers --against.
func againstFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "against", "", "the index that is published: its `FILE`, a marketplace's folder, or - for standard input")
}

// publishedIndex reads what --against names; nil where it names nothing.
func (a *app) publishedIndex(named string) ([]byte, error) {
	if named == "" {
		return nil, nil
	}
	r := a.stdin
	if named != "-" {
		if info, err := os.Stat(named); err == nil && info.IsDir() {
			named = filepath.Join(named, "connectors.json")
		}
		f, err := os.Open(named)
		if err != nil {
			return nil, fmt.Errorf("reading the published index: %w", err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, manifest.MaxIndexBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the published index: %w", err)
	case len(data) > manifest.MaxIndexBytes:
		return nil, fmt.Errorf("reading the published index: it has more than %d bytes", manifest.MaxIndexBytes)
	case len(data) == 0:
		return nil, usagef("the published index that --against names is empty")
	}
	return data, nil
}

func (a *app) keygenCommand() *cobra.Command {
	open := false
	c := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key pair to sign with",
		Long: "keygen writes a secret key to FILE and its public half to FILE.pub, as minisign does. The\n" +
			"password is asked for, or comes from the file that SKALD_CONNECTORS_SIGNING_PASSWORD_FILE\n" +
			"names, or from SKALD_CONNECTORS_SIGNING_PASSWORD.",
		Example: "  skald-connectors catalog keygen keys/index.key",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var password keystore.Secret
			if !open {
				var err error
				if password, err = a.signingPassword(cmd.Context(), args[0], true); err != nil {
					return err
				}
			}
			k, err := catalog.NewKey(args[0], password)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": args[0], "public": k.Public().String(), "number": k.Public().ID()})
			}
			fmt.Fprintf(a.stdout, "%s\n", k.Public())
			a.say("the secret key is in %s; keep it off the web server. %s.pub is for everybody", args[0], args[0])
			return nil
		},
	}
	c.Flags().BoolVar(&open, "no-password", false, "leave the key unencrypted, for a machine that keeps it safe in another way")
	return c
}

// signingPassword gives the password of a key file: from the environment's file
// or variable, or from the person.
func (a *app) signingPassword(ctx context.Context, file string, fresh bool) (keystore.Secret, error) {
	if path := a.getenv("SKALD_CONNECTORS_SIGNING_PASSWORD_FILE"); path != "" {
		return a.secretLine(path, "signing password")
	}
	if v := a.getenv("SKALD_CONNECTORS_SIGNING_PASSWORD"); v != "" {
		return keystore.NewSecret(v), nil
	}
	term := a.terminal()
	if term == nil {
		return keystore.Secret{}, withHint(usagef("the key %s wants a password, and nobody can be asked", file), "name a file that holds it with SKALD_CONNECTORS_SIGNING_PASSWORD_FILE")
	}
	a.clearProgress()
	return term.Passphrase(ctx, "Password of the key "+file, fresh)
}

type signOptions struct {
	keys             []string
	life             time.Duration
	cosign           bool
	revoke, unrevoke []string
	against          string
}

func (a *app) signCommand() *cobra.Command {
	o := &signOptions{}
	c := &cobra.Command{
		Use:   "sign [DIR]",
		Short: "Sign the index of a marketplace, or sign it again",
		Long: "sign gives the compiled index its next number and its dates and signs it. The same command\n" +
			"renews an index that has not changed; a job does that once a week. DIR is the folder of the\n" +
			"marketplace (the current one by default). See docs/publishing.md for the whole ceremony.",
		Example: "  skald-connectors catalog sign connectors --key index.key\n" +
			"  skald-connectors catalog sign connectors --key index.key --revoke 'whatsapp@3=it sends sessions away'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sign(cmd.Context(), dirOf(args), o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "`FILE` with the secret key to sign with (repeatable)")
	f.DurationVar(&o.life, "life", 30*24*time.Hour, "how long the index is good for (`TIME`, at most 2208h)")
	f.BoolVar(&o.cosign, "cosign", false, "add a signature to the index as it is")
	f.StringArrayVar(&o.revoke, "revoke", nil, "take a version back: `ID@VERSION=REASON` (repeatable)")
	f.StringArrayVar(&o.unrevoke, "unrevoke", nil, "give a version back: `ID@VERSION` (repeatable)")
	againstFlag(c, &o.against)
	return c
}

func dirOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

func (a *app) sign(ctx context.Context, dir string, o *signOptions) error {
	if len(o.keys) == 0 {
		return withHint(usagef("nothing says which key to sign with"), "name its file with --key; make one with %s catalog keygen FILE", program)
	}
	so := catalog.SignOptions{Life: o.life, Cosign: o.cosign, Now: a.hooks.now()}
	var err error
	if so.Revoke, err = revocations(o.revoke, true); err != nil {
		return err
	}
	if so.Restore, err = revocations(o.unrevoke, false); err != nil {
		return err
	}
	if so.Against, err = a.publishedIndex(o.against); err != nil {
		return err
	}
	if so.Keys, err = a.readKeys(ctx, o.keys); err != nil {
		return err
	}
	done, err := catalog.Sign(ctx, dir, so)
	var stale *catalog.RefusedError
	if errors.As(err, &stale) {
		return withHint(err, "see what is wrong with %s catalog compile %s --verify", program, dir)
	}
	if err != nil {
		return err
	}
	if a.json {
		revoked := done.Revoked
		if revoked == nil {
			revoked = []trust.Revocation{}
		}
		return a.printJSON(map[string]any{"keys_version": done.KeysVersion, "seq": done.Seq, "issued": done.Issued, "expires": done.Expires,
			"signers": done.Signers, "missing": done.Missing, "revoked": revoked})
	}
	fmt.Fprintf(a.stdout, "connectors.json is number %d, good until %s, signed by %s\n", done.Seq, done.Expires.Format("2006-01-02 15:04 MST"), strings.Join(done.Signers, ", "))
	if done.Missing > 0 {
		a.say("%s still wanted before anybody believes it: %s catalog sign --cosign --key FILE", plural(done.Missing, "signature is", "signatures are"), program)
	}
	if done.KeysVersion == 0 {
		a.say("there is no keys.json: users pin the key itself (%s marketplace add URL --key %s)", program, so.Keys[0].Public())
	}
	return nil
}

func (a *app) readKeys(ctx context.Context, files []string) ([]catalog.SecretKey, error) {
	var keys []catalog.SecretKey
	for _, file := range files {
		k, err := catalog.ReadKey(ctx, file, func(ctx context.Context, file string) (keystore.Secret, error) {
			return a.signingPassword(ctx, file, false)
		})
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// revocations reads ID@VERSION=REASON.
func revocations(list []string, withReason bool) ([]trust.Revocation, error) {
	var out []trust.Revocation
	for _, text := range list {
		what, reason, _ := strings.Cut(text, "=")
		id, version, ok := strings.Cut(what, "@")
		n, err := strconv.ParseInt(version, 10, 64)
		if !ok || err != nil || n < 1 || withReason && strings.TrimSpace(reason) == "" {
			return nil, usagef("%q is not ID@VERSION=REASON, such as whatsapp@3=it sends sessions away", text)
		}
		out = append(out, trust.Revocation{ID: id, Version: n, Reason: strings.TrimSpace(reason)})
	}
	return out, nil
}

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
	a.printKeys(s)
	return nil
}

func keysDocument(k *trust.Keys) any {
	if k == nil {
		return nil
	}
	return map[string]any{"version": k.Version, "expires": k.Expires, "root": keyTexts(k.Root), "root_threshold": k.RootThreshold,
		"index": keyTexts(k.Index), "index_threshold": k.IndexThreshold}
}

func keyTexts(keys []trust.Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.String()
	}
	return out
}

func (a *app) printKeys(s *catalog.KeysState) {
	show := func(title string, k *trust.Keys) {
		fmt.Fprintf(a.stdout, "%s: version %d, good until %s\n", title, k.Version, k.Expires.Format(time.DateOnly))
		for _, role := range []struct {
			name string
			need int
			keys []trust.Key
		}{{"root", k.RootThreshold, k.Root}, {"index", k.IndexThreshold, k.Index}} {
			fmt.Fprintf(a.stdout, "  %s, %d of %d:\n", role.name, role.need, len(role.keys))
			for _, one := range role.keys {
				mark := ""
				if s.Draft != nil && k == s.Draft && slices.Contains(s.Signed, one.ID()) {
					mark = "  signed"
				}
				fmt.Fprintf(a.stdout, "    %s  %s%s\n", one, one.ID(), mark)
			}
		}
	}
	if s.Now != nil {
		show("keys.json", s.Now)
	}
	switch {
	case s.Draft != nil:
		show("keys.next.json, a draft", s.Draft)
		a.say("it wants %s of the present root keys and %d of its own: %s catalog keys sign --key FILE", plural(s.OldMissing, "more signature", "more signatures"), s.NewMissing, program)
	case s.Published:
		a.say("keys.json is written; sign the index again, and publish both together")
	case s.Now == nil:
		a.say("there is no keys.json; see docs/publishing.md")
	}
}
