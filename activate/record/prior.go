package record

import (
	"encoding/json"
	"fmt"

	"skald-connectors/install"
)

// Prior is the record of the version that is kept for a rollback; nil without one. A
// record that was read has none that cannot be read.
func (r *Record) Prior() (*Record, error) {
	if len(r.Previous) == 0 {
		return nil, nil
	}
	p := &Record{}
	if err := json.Unmarshal(r.Previous, p); err != nil {
		return nil, fmt.Errorf("its previous version: %w", err)
	}
	p.Previous = nil
	if err := p.check(r.Name); err != nil {
		return nil, fmt.Errorf("its previous version: %w", err)
	}
	return p, nil
}

// KeepPrior makes r remember p, the record that it replaces, for a rollback.
func (r *Record) KeepPrior(p *Record) error {
	kept := *p
	kept.Schema, kept.Previous = recordSchema, nil
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("keeping the previous version of %q: %w", r.Name, err)
	}
	r.Previous = data
	return nil
}

// Restored is the record of a rollback from r to p: p's version and settings, with
// what the user has said of the activation since. Members that this program does not
// know stay as r has them.
func (r *Record) Restored(p *Record) *Record {
	next := *p
	next.Previous, next.extra = nil, r.extra
	next.Mounts, next.InstalledAt, next.Pinned = r.Mounts, r.InstalledAt, r.Pinned
	next.PassOver = max(r.Version, r.PassOver)
	next.Grant = r.Grant
	next.Sandbox.Mode, next.Sandbox.Grants, next.Sandbox.Withheld = r.Sandbox.Mode, r.Sandbox.Grants, r.Sandbox.Withheld
	next.Tools = append([]ToolRef{}, p.Tools...)
	for i, t := range next.Tools {
		next.Tools[i].Granted = next.Grant.Allows(t.Name)
	}
	return &next
}

// both is the record and the one that it keeps.
func (r *Record) both() []*Record {
	if p, err := r.Prior(); err == nil && p != nil {
		return []*Record{r, p}
	}
	return []*Record{r}
}

// Refs names the version folders that the record needs, its own first.
func (r *Record) Refs() (out []install.Ref) {
	for _, x := range r.both() {
		out = append(out, x.Ref())
	}
	return out
}

// Generations names the vaults that the record needs.
func (r *Record) Generations() (out []int64) {
	for _, x := range r.both() {
		if x.Vault > 0 {
			out = append(out, x.Vault)
		}
	}
	return out
}

// Trees names the dependency trees that the record needs.
func (r *Record) Trees() (out []string) {
	for _, x := range r.both() {
		for _, d := range x.Deps {
			out = append(out, d.Hash)
		}
	}
	return out
}
