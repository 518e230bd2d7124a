package activate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/login"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// Removed is what an uninstall took away, in words.
type Removed struct {
	Name  string   `json:"name"`
	Items []string `json:"removed"`
	Kept  []string `json:"kept"`
	// Revoked names the providers that forgot a sign-in, which Items say as well; Unrevoked those that could not be told to, where it is
	// good still.
	Revoked   []string `json:"-"`
	Unrevoked []string `json:"not_revoked,omitempty"`
}

// Uninstall removes an activation: its entries in clients, then the record, then
// everything that only it used, files before secrets. What cannot be removed does not keep the rest
// from being removed; it is told in the error, and out says what is gone.
// keepData keeps the connector's own durable data.
func (a *Activator) Uninstall(ctx context.Context, name string, keepData bool) (out *Removed, err error) {
	records := a.Records()
	if manifest.ValidID(name) != nil || !records.Taken(name) {
		return a.removeLeft(ctx, name)
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, mountsErr := a.unmountAll(ctx, name)
	commit, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer commit()
	a.payOwed(ctx, name)
	signed, keep := a.signedIn(ctx, name), ""
	if err := a.owe(ctx, name, signed...); err != nil {
		a.say("note: a kill would leave its sign-in unrevoked: %v", err) // a full disk keeps nobody from removing
	}
	if keepData {
		keep = a.keptForOf(name)
	}
	a.step("remove-record")
	if err := records.Remove(name); err != nil {
		return nil, err
	}
	out = &Removed{Name: name, Items: append(entries, "the activation record"), Kept: []string{}}
	a.step("remove-files")
	items, filesErr := a.Store.Remove(ctx, name, keep)
	out.Items = append(out.Items, items...)
	if _, kept := a.Store.Kept(name); keepData && kept {
		out.Kept = append(out.Kept, "its own data in state/"+name)
	}
	a.step("remove-tools")
	had, toolsErr := a.definitions().Remove(name)
	if had {
		out.Items = append(out.Items, "its accepted tool definitions")
	}
	a.step("remove-logs")
	if a.removeJournals(name) {
		out.Items = append(out.Items, "its logs and receipts")
	}
	_ = os.RemoveAll(filepath.Join(a.Home, "adopted", name)) // what an adopted entry was written down as
	a.revokeAtUninstall(ctx, signed, out)
	a.step("remove-secrets")
	secretsErr := a.removeSecrets(ctx, name, out)
	swept, sweepErr := a.sweepFiles(ctx)
	out.Items = append(out.Items, swept...)
	return out, errors.Join(mountsErr, filesErr, toolsErr, secretsErr, sweepErr)
}

// removeJournals removes what sessions wrote. A session that is still open
// writes into files that have no name any more.
func (a *Activator) removeJournals(name string) (had bool) {
	log, calls := a.JournalPaths(name)
	for _, path := range []string{log, calls} {
		for _, end := range []string{"", ".1", ".2", ".held", ".held.lock", ".lock"} {
			if os.Remove(path+end) == nil && end != ".lock" && end != ".held" && end != ".held.lock" {
				had = true
			}
		}
	}
	return had
}

// removeSecrets removes the vault of an activation, and the key when no other
// vault needs it. An activation without a vault never touches the key store.
func (a *Activator) removeSecrets(ctx context.Context, name string, out *Removed) error {
	gens, err := a.Keys.Generations(name)
	if err != nil || len(gens) == 0 {
		return err
	}
	if err := a.Keys.Remove(name); err != nil {
		return err
	}
	out.Items = append(out.Items, "its secrets")
	return a.forgetKey(ctx, out)
}

// forgetKey takes the key of the vaults away when this was the last of them.
func (a *Activator) forgetKey(ctx context.Context, out *Removed) error {
	a.step("remove-key")
	if err := a.Keys.Forget(ctx); err != nil {
		return err
	}
	left, err := a.Keys.Describe()
	if err == nil && left.Backend == "" {
		out.Items = append(out.Items, "the key of your secrets, which nothing else needs")
	}
	return err
}

// BusyError says that another process is installing something.
type BusyError struct{ What string }

func (e *BusyError) Error() string {
	return e.What + ": another skald-connectors is installing something"
}

// Wipe removes the home with what is in it under those names, and says how many sessions
// are open; these go on until their clients end them. Errors: *BusyError,
// *install.ForeignError.
func (a *Activator) Wipe(ctx context.Context, names []string) (sessions int, err error) {
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	stages, sessions, err := a.Store.Living(ctx)
	if err == nil && stages > 0 {
		err = &BusyError{What: "removing everything"}
	}
	if err != nil {
		return sessions, err
	}
	a.step("wipe")
	return sessions, a.Store.Wipe(names)
}

// Sweep removes what interrupted commands left behind and nothing names.
func (a *Activator) Sweep(ctx context.Context) ([]string, error) {
	commit, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer commit()
	return a.sweepLocked(ctx)
}

// sweepLocked sweeps everything; a vault that cannot be swept keeps nobody from
// working with connectors that have none, so it is only said.
func (a *Activator) sweepLocked(ctx context.Context) ([]string, error) {
	removed, err := a.sweepFiles(ctx)
	if err != nil {
		return removed, err
	}
	vaults, err := a.sweepVaults(ctx)
	err = errors.Join(err, a.payAllOwed(ctx))
	if err != nil {
		a.say("clearing unfinished vaults: %v", err)
	}
	return append(removed, vaults...), nil
}

// sweepFiles ends sandboxes without a program, and removes folders, tool definitions and journals that no record names, and what
// was being written when its writer was killed.
func (a *Activator) sweepFiles(ctx context.Context) ([]string, error) {
	sandbox.EndLeft(a.Home)
	for _, place := range a.Single {
		atomicfile.SweepTemps(filepath.Join(a.Home, place))
	}
	inUse, trees, complete, err := a.namedRefs()
	if err != nil || !complete {
		return nil, err // a record that cannot be read may name anything
	}
	removed, err := a.Store.Sweep(ctx, inUse, trees...)
	if err != nil {
		return removed, err
	}
	names, err := a.definitions().Names()
	for _, name := range names {
		if _, named := inUse[name]; named {
			continue
		}
		if _, err := a.definitions().Remove(name); err != nil {
			return removed, err
		}
		removed = append(removed, "tools/"+name+".json")
	}
	for _, name := range a.journalNames() {
		if _, named := inUse[name]; !named && a.removeJournals(name) {
			removed = append(removed, "the logs and receipts of "+name)
		}
	}
	return removed, err
}

// journalNames are the activations of which sessions wrote something.
func (a *Activator) journalNames() (names []string) {
	log, calls := a.JournalPaths("")
	for _, path := range []string{log, calls} {
		end := filepath.Ext(path)
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if i := strings.LastIndex(e.Name(), end); i > 0 && manifest.ValidID(e.Name()[:i]) == nil {
				names = append(names, e.Name()[:i])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sweepVaults removes the generations of vaults that no record names, and the key
// when they were the last.
func (a *Activator) sweepVaults(ctx context.Context) ([]string, error) {
	names, err := a.Keys.Names()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, name := range names {
		if login.IsVaultName(name) || strings.HasPrefix(name, owedPrefix) {
			continue // the client secret of a provider, which its own file names; what is owed is looked at apart
		}
		rec, err := a.Records().Read(name)
		var gone *record.NotInstalledError
		if err != nil && !errors.As(err, &gone) {
			continue // a record that cannot be read may name any of them
		}
		var keep []int64
		if rec != nil {
			keep = rec.Generations()
			slices.Sort(keep)
		}
		if gens, gerr := a.Keys.Generations(name); gerr != nil || slices.Equal(gens, keep) {
			continue
		}
		if err := a.Keys.Remove(name, keep...); err != nil {
			return removed, err
		}
		removed = append(removed, fmt.Sprintf("an unfinished vault of %q", name))
	}
	if len(removed) == 0 {
		return nil, a.forgetUnused(ctx, names)
	}
	return removed, a.Keys.Forget(ctx)
}

// forgetUnused takes the key of the vaults away that a kill left without any. What is being installed here or in another process
// may be about to use it.
func (a *Activator) forgetUnused(ctx context.Context, vaults []string) error {
	if a.keyWanted || len(vaults) > 0 {
		return nil
	}
	if key, err := a.Keys.Describe(); err != nil || key.Backend == "" {
		return err
	}
	if stages, _, err := a.Store.Living(ctx); err != nil || stages > 0 {
		return err
	}
	return a.Keys.Forget(ctx)
}

// namedRefs lists the version folders that records name, by activation, and the trees
// of dependencies. complete is false when a record cannot be read: it may name any of
// them.
func (a *Activator) namedRefs() (refs map[string][]install.Ref, trees []string, complete bool, err error) {
	list, err := a.Records().List()
	if err != nil {
		return nil, nil, false, err
	}
	refs = map[string][]install.Ref{}
	for _, l := range list {
		if l.Err != nil {
			return nil, nil, false, nil
		}
		refs[l.Name] = append(refs[l.Name], l.Record.Refs()...)
		trees = append(trees, l.Record.Trees()...)
	}
	return refs, trees, true, nil
}
