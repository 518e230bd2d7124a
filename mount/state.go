package mount

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"skald-connectors/internal/atomicfile"
)

// stateFormat is the version of the files in Options.State.
const stateFormat = 1

// stateLimit bounds a state file: one short row for each of our entries.
const stateLimit = 4 << 20

// state remembers one client file: what it held before our entries came (in the
// .backup file), which came, and what we left. It only serves to give a file back
// byte for byte; without it an entry is edited out.
type state struct {
	Format int     `json:"format"`
	Client string  `json:"client"`
	File   string  `json:"file"`
	Made   bool    `json:"made"`   // there was no file
	Last   string  `json:"last"`   // sha256 of the bytes as we left them
	Layers []layer `json:"layers"` // our entries, in their order
	base   []byte  // the bytes from before
}

type layer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// left tells whether the bytes are those that we left.
func (st *state) left(cur []byte) bool {
	return st != nil && cur != nil && st.Last == sumOf(cur)
}

// stateKey names the state of a file by its path.
func stateKey(real string) string { return sumOf([]byte(real))[:16] }

func (m *Mounter) statePath(t *target, ext string) string {
	return filepath.Join(m.o.State, stateKey(t.real)+ext)
}

// load gives the state of a file, nil when there is none that can be used: then
// entries are edited out, which is always possible.
func (m *Mounter) load(t *target) *state {
	data, err := atomicfile.Read(m.statePath(t, ".json"), stateLimit)
	if err != nil {
		return nil
	}
	st := &state{}
	if json.Unmarshal(data, st) != nil || st.Format != stateFormat {
		return nil
	}
	if !st.Made {
		if st.base, err = atomicfile.Read(m.statePath(t, ".backup"), fileLimit); err != nil {
			return nil
		}
		if st.base == nil {
			st.base = []byte{}
		}
	}
	return st
}

// newer tells that a newer program wrote the state of a file: it is not used, and it stays as it is, with the backup.
func (m *Mounter) newer(t *target) bool {
	var st struct {
		Format int `json:"format"`
	}
	data, err := atomicfile.Read(m.statePath(t, ".json"), stateLimit)
	return err == nil && json.Unmarshal(data, &st) == nil && st.Format > stateFormat
}

// keep writes the backup, before the file is changed.
func (m *Mounter) keep(t *target, n next) (backup string, err error) {
	if n.state == nil || n.state.base == nil || m.newer(t) {
		return "", nil
	}
	backup = m.statePath(t, ".backup")
	return backup, atomicfile.Write(backup, n.state.base, 0o600)
}

// note writes what is remembered, after the file was changed. Nothing but the exact
// way back depends on it, so that its failure undoes nothing.
func (m *Mounter) note(t *target, n next) {
	path := m.statePath(t, ".json")
	if m.newer(t) {
		return
	}
	if n.state == nil {
		for _, p := range []string{path, m.statePath(t, ".backup")} {
			if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return
			}
		}
		return
	}
	n.state.Format = stateFormat
	if data, err := json.MarshalIndent(n.state, "", "  "); err == nil {
		atomicfile.Write(path, append(data, '\n'), 0o600)
	}
}
