package activate

import (
	"context"
	"fmt"
	"slices"

	"skald-connectors/install"
	"skald-connectors/manifest"
)

// Removed is what an uninstall took away, in words.
type Removed struct {
	Name  string   `json:"name"`
	Items []string `json:"removed"`
	Kept  []string `json:"kept"`
}

// Uninstall removes an activation: record first, then everything that only it
// used. keepData keeps the connector's own durable data.
func (a *Activator) Uninstall(ctx context.Context, name string, keepData bool) (*Removed, error) {
	records := a.Records()
	if manifest.ValidID(name) != nil || !records.Taken(name) {
		return nil, &NotInstalledError{Name: name}
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	commit, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer commit()
	a.step("remove-record")
	if err := records.remove(name); err != nil {
		return nil, err
	}
	out := &Removed{Name: name, Items: []string{"the activation record"}, Kept: []string{}}
	a.step("remove-secrets")
	gens, err := a.Keys.Generations(name)
	if err != nil {
		return out, err
	}
	if err := a.Keys.Remove(name); err != nil {
		return out, err
	}
	if len(gens) > 0 {
		out.Items = append(out.Items, "its secrets")
		if err := a.forgetKey(ctx, out); err != nil {
			return out, err
		}
	}
	if had, err := a.removeTools(name); err != nil {
		return out, err
	} else if had {
		out.Items = append(out.Items, "its accepted tool definitions")
	}
	a.step("remove-files")
	items, err := a.Store.Remove(ctx, name, keepData)
	out.Items = append(out.Items, items...)
	if err != nil {
		return out, err
	}
	if keepData {
		out.Kept = append(out.Kept, "its own data in state/"+name)
	}
	swept, err := a.sweepLocked(ctx)
	out.Items = append(out.Items, swept...)
	return out, err
}

// forgetKey takes the key of the vaults away when this was the last of them.
func (a *Activator) forgetKey(ctx context.Context, out *Removed) error {
	if err := a.Keys.Forget(ctx); err != nil {
		return err
	}
	left, err := a.Keys.Describe()
	if err == nil && left.Backend == "" {
		out.Items = append(out.Items, "the key of your secrets, which nothing else needs")
	}
	return err
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

func (a *Activator) sweepLocked(ctx context.Context) ([]string, error) {
	inUse, trees, complete, err := a.namedRefs()
	if err != nil || !complete {
		return nil, err // a record that cannot be read may name anything
	}
	removed, err := a.Store.Sweep(ctx, inUse, trees...)
	if err != nil {
		return removed, err
	}
	names, err := a.Keys.Names()
	if err != nil {
		return removed, err
	}
	for _, name := range names {
		rec, err := a.Records().Read(name)
		var keep []int64
		if err == nil && rec.Vault > 0 {
			keep = append(keep, rec.Vault)
		}
		if gens, gerr := a.Keys.Generations(name); gerr != nil || slices.Equal(gens, keep) {
			continue
		}
		if err := a.Keys.Remove(name, keep...); err != nil {
			return removed, err
		}
		removed = append(removed, fmt.Sprintf("an unfinished vault of %q", name))
	}
	return removed, nil
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
		refs[l.Name] = append(refs[l.Name], l.Record.Ref())
		trees = append(trees, l.Record.trees()...)
	}
	return refs, trees, true, nil
}
