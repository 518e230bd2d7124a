package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"skald-connectors/fetch"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

func (a *app) bundleCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "bundle", GroupID: "main", Short: "Carry a connector to a machine without a network",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &exportOptions{}
	export := &cobra.Command{
		Use:   "export ID",
		Short: "Write a connector and what vouches for it into one file",
		Long: "export writes the connector's files, its index and the signatures over it into a tar file,\n" +
			"which install --bundle takes on another machine, with all checks.",
		Example: "  skald-connectors bundle export gmail -o gmail.tar\n" +
			"  skald-connectors install --bundle gmail.tar",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return a.exportBundle(cmd.Context(), o)
		},
	}
	f := export.Flags()
	f.StringVarP(&o.to, "output", "o", "", "`FILE` to write (default: ID.tar)")
	f.BoolVar(&o.deps, "with-deps", false, "put its packages from npm and pip in, for a machine of the same kind")
	o.depsLimit.register(export)
	c.AddCommand(export)
	return c
}

type exportOptions struct {
	depsLimit
	id, to string
	deps   bool
}

func (a *app) exportBundle(ctx context.Context, o *exportOptions) error {
	a.startProgress()
	all, err := a.openShops(ctx, fetch.Refresh, o.id)
	if err != nil {
		return err
	}
	s, e, err := a.lookupInstalled(all, o.id)
	if err != nil {
		return err
	}
	a.showFiles()
	b, err := s.market.Bundle(ctx, s.index, e)
	if err != nil {
		return err
	}
	packages, done, err := a.packagesOf(ctx, s.home, b, o)
	if err != nil {
		return err
	}
	defer done()
	to := orElse(o.to, e.ID+".tar")
	n, err := writeBeside(to, func(f *os.File) error { return s.market.Export(ctx, b, packages, f) })
	if err != nil {
		return err
	}
	a.clearProgress()
	if a.json {
		return a.printJSON(map[string]any{"file": to, "bytes": n, "connector": e.ID, "version": b.Entry().Version, "index": s.index.Location()})
	}
	a.line("%s: %s %s, %s; %s", to, e.ID, manifest.DisplayVersion(b.Entry()), size(n), trustText(b.Index().Trust(), s.index.Location()))
	return nil
}

// lookupInstalled is lookup where an id that may be several has an answer already: the one that
// is installed, where everything of that id came from one marketplace.
func (a *app) lookupInstalled(all *shops, id string) (*shop, manifest.Entry, error) {
	s, e, err := all.lookup(id)
	if classifyOnly(err) != exitUsage {
		return s, e, err
	}
	_, listed, _ := a.installed() // where it cannot be read, the question stays
	var from []string
	for _, l := range listed {
		if l.Record == nil || l.Record.Connector != id {
			continue
		}
		if at := fetch.OneLocation(l.Record.Index.URL); !slices.Contains(from, at) {
			from = append(from, at)
		}
	}
	for _, one := range all.open {
		if len(from) == 1 && one.index.Location() == from[0] {
			a.say("note: %s is taken from %s, as it is installed here", id, one.name)
			e, err := one.index.Lookup(id)
			return one, e, err
		}
	}
	return s, e, err
}

// packagesOf downloads the packages that go into a bundle; "" where there are
// none. done takes them away.
func (a *app) packagesOf(ctx context.Context, home string, b *fetch.Bundle, o *exportOptions) (dir string, done func(), err error) {
	if !o.deps {
		return "", func() {}, nil
	}
	if err := o.depsLimit.check(); err != nil {
		return "", nil, err
	}
	act, err := a.activator(home)
	if err != nil {
		return "", nil, err
	}
	dir, done, err = carryFolder(home)
	if err != nil {
		return "", nil, err
	}
	any, err := act.DownloadPackages(ctx, b, dir, o.depsTimeout)
	if err != nil {
		done()
		return "", nil, err
	}
	if !any {
		a.say("%s depends on no packages", b.Entry().ID)
		return "", done, nil
	}
	return dir, done, nil
}

// carryFolder makes a folder for packages on their way into a bundle or out of
// one. What a kill leaves there the next one takes away.
func carryFolder(home string) (dir string, done func(), err error) {
	top := filepath.Join(home, "cache", "carry")
	if err := atomicfile.PrivateDir(filepath.Join(home, "cache")); err != nil {
		return "", nil, err
	}
	if err := atomicfile.PrivateDir(top); err != nil {
		return "", nil, err
	}
	unlock, alone, err := atomicfile.TryLock(filepath.Join(top, ".lock"))
	if err != nil {
		return "", nil, err
	}
	if !alone {
		return "", nil, errors.New("another skald-connectors is working with a bundle's packages; try again when it is done")
	}
	dir = filepath.Join(top, "packages")
	if err = clearFolder(top); err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		unlock()
		return "", nil, fmt.Errorf("making a folder for packages: %w", err)
	}
	return dir, func() { _ = clearFolder(top); unlock() }, nil // what stays goes next time
}

// clearFolder removes everything below a folder but its lock.
func clearFolder(top string) error {
	entries, err := os.ReadDir(top)
	for _, e := range entries {
		if e.Name() != ".lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(top, e.Name())))
		}
	}
	return err
}

// writeBeside writes a file beside its place and renames it when it is whole. It
// replaces a file, and nothing else.
func writeBeside(path string, write func(*os.File) error) (n int64, err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return 0, usagef("%s is there and is not a regular file", path)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	defer root.Close()
	name := ".tmp-" + rand.Text()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if info, serr := f.Stat(); serr == nil {
		n = info.Size()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = root.Rename(name, filepath.Base(path))
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("writing %s: %w", path, err), root.Remove(name))
	}
	return n, nil
}

// atLeastUnless wants n arguments, or the flag.
func atLeastUnless(n int, flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(flag) {
			return nil
		}
		return cobra.MinimumNArgs(n)(cmd, args)
	}
}

// installFrom opens what install takes its connectors from: the marketplaces, or
// a bundle file, whose one connector need not be named.
func (a *app) installFrom(ctx context.Context, o *installOptions) (*shops, error) {
	if o.expired && o.bundle == "" {
		return nil, usagef("--allow-expired is for --bundle")
	}
	if o.bundle == "" {
		return a.openShops(ctx, fetch.Refresh, o.ids...)
	}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	m, err := a.bundleMarket(home, o)
	if err != nil {
		return nil, err
	}
	ix, err := m.Index(ctx, fetch.Refresh)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if len(o.ids) == 0 {
		o.ids = []string{m.Bundled()}
	}
	if len(o.ids) != 1 || o.ids[0] != m.Bundled() {
		return nil, errors.Join(usagef("the bundle holds %q", m.Bundled()), m.Close())
	}
	if ix.Trust().Expired {
		a.say("note: the index in the bundle has run out; whether this version was revoked since is not known")
	}
	a.noteIgnored(ix)
	return &shops{open: []*shop{{market: m, index: ix, home: home, bundle: o.bundle}}}, nil
}

// bundleMarket opens a bundle file as the marketplace that it names, under the
// keys that are pinned for that one here.
func (a *app) bundleMarket(home string, o *installOptions) (*fetch.Marketplace, error) {
	opened, err := fetch.Open(a.bundleOptions(home, "", o))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", o.bundle)
	}
	if err != nil {
		return nil, err
	}
	location := opened.Location()
	if err := opened.Close(); err != nil {
		return nil, err
	}
	mo := a.bundleOptions(home, location, o)
	listed, err := readPlaces(home)
	if err != nil {
		return nil, err
	}
	if p, ok := listed.at(location); ok {
		mo.Pinned, mo.PinnedNeeded = p.Keys, p.Needed
	}
	return fetch.Open(mo)
}

func (a *app) bundleOptions(home, location string, o *installOptions) fetch.Options {
	mo := a.marketOptions(location, home)
	mo.BundleFile, mo.AllowExpired = o.bundle, o.expired
	return mo
}

// unpackPackages puts the packages of a bundle file where npm and pip find them;
// "" where it brings none.
func (o *installOptions) unpackPackages(s *shop) (dir string, done func(), err error) {
	if s.bundle == "" || o.noDeps {
		return "", func() {}, nil
	}
	dir, done, err = carryFolder(s.home)
	if err != nil {
		return "", nil, err
	}
	any, err := s.market.UnpackPackages(dir)
	if err != nil {
		done()
		return "", nil, err
	}
	if !any {
		done()
		return "", func() {}, nil
	}
	return dir, done, nil
}
