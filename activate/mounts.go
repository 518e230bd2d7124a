package activate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"skald-connectors/activate/record"
	"skald-connectors/manifest"
	"skald-connectors/mount"
)

// Mount puts the entry of an activation into one file of a client and notes it
// in the record. The file comes first: an entry that no record knows yet is
// still ours by what it starts. Errors: *record.NotInstalledError,
// *mount.RefusedError.
func (a *Activator) Mount(ctx context.Context, r mount.Request) (res mount.Result, err error) {
	if r.DryRun {
		rec, err := a.Records().Read(r.Name)
		if err != nil {
			return res, err
		}
		r.Digests = append(r.Digests, a.digestsOf(rec, r)...)
		return a.Mounts.Mount(ctx, r)
	}
	err = a.onRecord(ctx, r.Name, func(present *record.Record) error {
		r.Digests = append(r.Digests, a.digestsOf(present, r)...)
		a.step("mount-file")
		if res, err = a.Mounts.Mount(ctx, r); err != nil {
			return err
		}
		return a.noteMounts(ctx, present, withMount(present.Mounts, record.MountRef{Client: r.Client, File: res.File, Digest: res.Digest}))
	})
	return res, err
}

// Unmount takes the entry of an activation out of one file of a client, and out
// of the record, if there is one that can be read. An entry that is not there is
// no error.
func (a *Activator) Unmount(ctx context.Context, r mount.Request) (mount.Result, error) {
	if err := manifest.ValidID(r.Name); err != nil {
		return mount.Result{}, &record.NotInstalledError{Name: r.Name}
	}
	if !r.DryRun && a.Records().Taken(r.Name) {
		unlock, err := a.lockName(ctx, r.Name)
		if err != nil {
			return mount.Result{}, err
		}
		defer unlock()
	}
	rec, err := a.Records().Read(r.Name)
	if err != nil {
		rec = nil // what it starts shows whether an entry is ours
	}
	return a.unmount(ctx, rec, r)
}

// unmount is Unmount for a caller that holds the lock of the name.
func (a *Activator) unmount(ctx context.Context, rec *record.Record, r mount.Request) (mount.Result, error) {
	if rec != nil {
		r.Digests = append(r.Digests, a.digestsOf(rec, r)...)
	}
	if !r.DryRun {
		a.step("unmount-file")
	}
	res, err := a.Mounts.Unmount(ctx, r)
	if err != nil || rec == nil || r.DryRun {
		return res, err
	}
	rest := slices.DeleteFunc(slices.Clone(rec.Mounts), func(m record.MountRef) bool { return m.Client == r.Client && m.File == res.File })
	return res, a.noteMounts(ctx, rec, rest)
}

// noteMounts writes the mounts of a record, where they are others than before.
func (a *Activator) noteMounts(ctx context.Context, present *record.Record, mounts []record.MountRef) error {
	if slices.Equal(present.Mounts, mounts) {
		return nil
	}
	_, err := a.rewrite(ctx, present, "mount-record", func(next *record.Record) error {
		next.Mounts = mounts
		return nil
	})
	if err == nil {
		present.Mounts = mounts
	}
	return err
}

// NoteMounts puts what a seeding wrote into the record of name.
func (a *Activator) NoteMounts(ctx context.Context, name string, refs ...record.MountRef) error {
	return a.onRecord(ctx, name, func(present *record.Record) error {
		mounts := present.Mounts
		for _, ref := range refs {
			mounts = withMount(mounts, ref)
		}
		return a.noteMounts(ctx, present, mounts)
	})
}

func withMount(list []record.MountRef, ref record.MountRef) []record.MountRef {
	out := slices.DeleteFunc(slices.Clone(list), func(m record.MountRef) bool { return m.Client == ref.Client && m.File == ref.File })
	return append(out, ref)
}

func (a *Activator) digestsOf(rec *record.Record, r mount.Request) []string {
	var out []string
	for _, m := range rec.Mounts {
		if m.Client == r.Client && (m.File == r.File || r.ConfigDir != "" && m.File == a.Mounts.EngineFile(r.ConfigDir)) && m.Digest != "" {
			out = append(out, m.Digest)
		}
	}
	return out
}

// MountsOf lists where an activation is mounted: what its record says, and what
// the files of the clients that are here hold besides, as requests for Unmount.
// It needs no record.
func (a *Activator) MountsOf(name string) []mount.Request {
	var out []mount.Request
	if rec, err := a.Records().Read(name); err == nil {
		for _, m := range rec.Mounts {
			out = append(out, requestOf(name, m))
		}
	}
	a.oursInClients(func(client, file string, e mount.Entry) {
		known := slices.ContainsFunc(out, func(r mount.Request) bool { return r.Client == client && r.File == file })
		if e.Name == name && !known {
			out = append(out, mount.Request{Client: client, Name: name, File: file})
		}
	})
	return out
}

// oursInClients shows each entry of this home in the files of the clients that are here.
func (a *Activator) oursInClients(show func(client, file string, e mount.Entry)) {
	for _, c := range a.Mounts.Clients() {
		if !c.Detected || c.Problem != "" {
			continue
		}
		states, _ := a.Mounts.Inspect(c.ID, "")
		for _, s := range states {
			for _, e := range s.Entries {
				if isOurs(e) {
					show(c.ID, s.File, e)
				}
			}
		}
	}
}

// isOurs tells an entry that mount writes for this home, as far as an entry shows.
func isOurs(e mount.Entry) bool {
	return e.Activation != "" && e.Name == e.Activation && !e.Elsewhere
}

// LeftInClients names the activations that are in no list and still have entries in the files of the clients that are here: of an
// uninstall that could not take them out, or whose record was lost.
func (a *Activator) LeftInClients(listed []record.Listed) []string {
	if a.Mounts == nil {
		return nil
	}
	var names []string
	a.oursInClients(func(_, _ string, e mount.Entry) {
		if !slices.ContainsFunc(listed, func(l record.Listed) bool { return l.Name == e.Name }) {
			names = append(names, e.Name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// requestOf is what a record says of a mount.
func requestOf(name string, m record.MountRef) mount.Request {
	r := mount.Request{Client: m.Client, Name: name, File: m.File, Digests: []string{m.Digest}}
	if m.Client == mount.Engine {
		r.File, r.ConfigDir = "", filepath.Dir(filepath.Dir(m.File))
	}
	return r
}

// unmountAll takes an activation out of every client, before its record goes. An entry
// that is not ours any more stays and is no error.
func (a *Activator) unmountAll(ctx context.Context, name string) (items []string, err error) {
	if a.Mounts == nil {
		return nil, nil
	}
	rec, rerr := a.Records().Read(name)
	if rerr != nil {
		rec = nil
	}
	for _, r := range a.MountsOf(name) {
		res, uerr := a.unmount(ctx, rec, r)
		var refused *mount.RefusedError
		switch {
		case errors.As(uerr, &refused) && refused.Reason == mount.Conflict:
		case uerr != nil:
			err = errors.Join(err, fmt.Errorf("taking it out of %s: %w", r.Client, uerr))
		case res.Changed:
			items = append(items, "its entry in "+res.File)
		}
	}
	return items, err
}

// removeLeft finishes the removal of an activation whose record is gone already
// and whose entries could not be taken out then.
func (a *Activator) removeLeft(ctx context.Context, name string) (*Removed, error) {
	if manifest.ValidID(name) != nil {
		return nil, &record.NotInstalledError{Name: name}
	}
	items, err := a.unmountAll(ctx, name)
	if len(items) == 0 && err == nil {
		return nil, &record.NotInstalledError{Name: name}
	}
	return &Removed{Name: name, Items: items, Kept: []string{}}, err
}

// ForgetMount takes a mount out of the record and touches no file: the entry is gone, or
// another one has its place.
func (a *Activator) ForgetMount(ctx context.Context, name, client, file string) error {
	return a.onRecord(ctx, name, func(present *record.Record) error {
		rest := slices.DeleteFunc(slices.Clone(present.Mounts), func(m record.MountRef) bool { return m.Client == client && m.File == file })
		return a.noteMounts(ctx, present, rest)
	})
}

// Drift compares every record with what the files of the clients hold.
func (a *Activator) Drift(listed []record.Listed) []mount.Finding {
	var recorded []mount.Request
	names := map[string]bool{}
	for _, l := range listed {
		names[l.Name] = true // a record that cannot be read is an activation too
		if l.Record == nil {
			continue
		}
		for _, m := range l.Record.Mounts {
			r := requestOf(l.Name, m)
			r.File = m.File
			recorded = append(recorded, r)
		}
	}
	return a.Mounts.Drift(recorded, func(name string) bool { return names[name] })
}

// Heal puts the shipped files of an activation's work folder back, from the version folder.
func (a *Activator) Heal(ctx context.Context, name string) error {
	return a.onRecord(ctx, name, func(present *record.Record) error {
		return a.Store.Heal(ctx, name, present.Ref(), present.Pins())
	})
}
