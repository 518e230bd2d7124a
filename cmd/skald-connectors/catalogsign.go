package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
			ask := func(ctx context.Context, file string) (keystore.Secret, error) {
				return a.signingPassword(ctx, file, true)
			}
			if open {
				ask = nil
			}
			k, err := catalog.NewKey(cmd.Context(), args[0], ask)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"file": args[0], "public": k.Public().String(), "number": k.Public().ID()})
			}
			a.line("%s", k.Public())
			a.say("it is key number %s; its secret half is in %s, which stays off the web server, and %s.pub is for everybody", k.Public().ID(), args[0], args[0])
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
	password, err := term.Passphrase(ctx, "Password of the key "+file, fresh)
	if err == nil {
		a.say("deriving the key from the password; this takes some seconds and 1 GiB of memory")
	}
	return password, err
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
	f.Lookup("life").DefValue = "720h"
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
		return treeHint(dir, err)
	}
	if a.json {
		revoked := done.Revoked
		if revoked == nil {
			revoked = []trust.Revocation{}
		}
		return a.printJSON(map[string]any{"keys_version": done.KeysVersion, "seq": done.Seq, "issued": done.Issued, "expires": done.Expires,
			"signers": done.Signers, "missing": done.Missing, "revoked": revoked})
	}
	a.line("connectors.json is number %d, good until %s, signed by %s", done.Seq, done.Expires.Format("2006-01-02 15:04 MST"), strings.Join(done.Signers, ", "))
	for _, r := range done.Revoked {
		here := ""
		if r.Manifest == "" {
			here = " (this index has no such version)"
		}
		a.line("  revoked  %s@%d: %s%s", r.ID, r.Version, r.Reason, here)
	}
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
