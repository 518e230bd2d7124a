package mount

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"skald-connectors/internal/atomicfile"
)

// seedFormat is the version of the file that remembers what seeding did.
const seedFormat = 1

// SeedRequest says what to seed into the engine's catalogue.
type SeedRequest struct {
	ConfigDir string
	// Names are the default connectors, in their order.
	Names []string
	// Installed tells whether an activation of that name is here.
	Installed func(name string) bool
	// Digests gives those that the record of a name has for the engine's file.
	Digests func(name string) []string
}

// SeedOutcome is the reading for one name: "mounted" (now, or by an earlier seeding:
// an entry that a person removed since is not brought back), "present", "conflict",
// "not_installed", or "refused" with the refusal.
type SeedOutcome struct {
	Name, Reading string
	// Changed says that this seeding wrote the entry; File and Digest are for the record.
	Changed bool
	// Removed says that an earlier seeding left the entry and a person took it out.
	Removed      bool
	File, Digest string
	Refused      *RefusedError
}

// The readings of SeedOutcome.
const (
	seedMounted      = "mounted"
	seedPresent      = "present"
	seedConflict     = "conflict"
	seedNotInstalled = "not_installed"
	seedRefused      = "refused"
)

// seedMemory is DIR/config.d/.skald-connectors-seed.json.
type seedMemory struct {
	Format   int               `json:"format"`
	Outcomes map[string]string `json:"outcomes"`
}

// Seed mounts each installed connector of the default list into the engine's
// catalogue, under one lock, and remembers each outcome. What was mounted or present
// once is the person's from then on.
//
// The error, a *RefusedError, refuses the whole seed: config_dir, locked, unreadable,
// unexpected_shape or write_failed.
func (m *Mounter) Seed(ctx context.Context, r SeedRequest) ([]SeedOutcome, error) {
	t, err := m.engineTarget(Request{ConfigDir: r.ConfigDir, Name: "any"})
	if err != nil {
		return nil, err
	}
	unlock, err := m.locked(ctx, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	memory, err := readSeed(t)
	if err != nil {
		return nil, err
	}
	tree, err := t.catalogue(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]SeedOutcome, 0, len(r.Names))
	for _, name := range r.Names {
		o := m.seedOne(ctx, t, tree, memory.Outcomes[name], name, r)
		if !left(memory.Outcomes[name]) {
			memory.Outcomes[name] = o.Reading
		}
		out = append(out, o)
	}
	return out, writeSeed(t, memory)
}

// catalogue reads the engine's file once, so that one that cannot be edited refuses
// the whole seed.
func (t *target) catalogue(ctx context.Context) (any, error) {
	cur, _, err := t.steady(ctx)
	if err != nil {
		return nil, err
	}
	e, tree, err := t.edit(cur)
	if err == nil {
		_, err = e.set(cur, "any", t.entry("any")) // the shape is judged by trying
		if _, taken := e.place.find(tree, "any"); taken {
			err = nil
		} else if err != nil {
			err = t.refused(err, cur)
		}
	}
	return tree, err
}

func (m *Mounter) seedOne(ctx context.Context, t *target, tree any, was, name string, r SeedRequest) SeedOutcome {
	o := SeedOutcome{Name: name, File: t.file}
	if left(was) {
		if _, found := t.place.find(tree, name); found {
			o.Reading = seedPresent
		} else {
			o.Reading, o.Removed = was, true
		}
		return o
	}
	if !r.Installed(name) {
		o.Reading = seedNotInstalled
		return o
	}
	req := Request{Client: Engine, Name: name, ConfigDir: r.ConfigDir}
	if r.Digests != nil {
		req.Digests = r.Digests(name)
	}
	res, err := m.mountLocked(ctx, req)
	var refused *RefusedError
	switch {
	case err == nil && res.Changed:
		o.Reading, o.Changed, o.Digest = seedMounted, true, res.Digest
	case err == nil:
		o.Reading, o.Digest = seedPresent, res.Digest
	case errors.As(err, &refused) && refused.Reason == Conflict:
		o.Reading, o.Refused = seedConflict, refused
	default:
		o.Reading, o.Refused = seedRefused, refused
	}
	return o
}

// left tells whether an outcome means that the entry was there when seeding ended.
func left(outcome string) bool { return outcome == seedMounted || outcome == seedPresent }

func seedFile(t *target) string {
	return filepath.Join(filepath.Dir(t.file), "."+ourProgram+"-seed.json")
}

// readSeed gives what is remembered. A file that cannot be understood is a refusal:
// without it, what a person removed would come back.
func readSeed(t *target) (seedMemory, error) {
	memory := seedMemory{Format: seedFormat, Outcomes: map[string]string{}}
	path := seedFile(t)
	data, err := atomicfile.Read(path, stateLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return memory, nil
	}
	if err != nil {
		return memory, refuseFor(Unreadable, path, err)
	}
	if err := json.Unmarshal(data, &memory); err != nil {
		return memory, refusef(Unreadable, path, "it is not what seeding wrote: %v", err)
	}
	if memory.Format != seedFormat {
		return memory, refusef(Unreadable, path, "it has format %d and this program knows %d", memory.Format, seedFormat)
	}
	if memory.Outcomes == nil {
		memory.Outcomes = map[string]string{}
	}
	return memory, nil
}

func writeSeed(t *target, memory seedMemory) error {
	data, err := json.MarshalIndent(memory, "", "  ")
	if err == nil {
		data = append(data, '\n')
		if old, readErr := atomicfile.Read(seedFile(t), stateLimit); readErr == nil && string(old) == string(data) {
			return nil
		}
		err = atomicfile.Write(seedFile(t), data, 0o600)
	}
	if err != nil {
		return refuseFor(WriteFailed, seedFile(t), err)
	}
	return nil
}
