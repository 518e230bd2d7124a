package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/internal/atomicfile"
)

// What a session, or an upgrade, held back is kept in calls/NAME.jsonl.held, so that list and
// doctor can tell without starting anything:
//
//	{"format":1,"version":"DIGEST OF THE VERSION FOLDER","held":{"TOOL":"DIGEST"}}
//
// Of several sessions, the one that saw the whole list of tools last is right; one that
// saw a part of it only adds to what is there. What was seen of another version than the
// record's says nothing. A tool counts as held while the record does not have that
// digest, so accepting it needs no second writer, and a file that cannot be read or
// written is as good as none.
type heldFile struct {
	Format  int               `json:"format"`
	Version string            `json:"version"`
	Held    map[string]string `json:"held"`
}

// heldFormat is that of the file above.
const heldFormat = 1

// heldLimit bounds the file: the most tools of a connector, with long names.
const heldLimit = 4 << 20

// heldWait bounds the wait for another session that writes the file.
const heldWait = time.Second

func heldPath(home, name string) string {
	_, calls := (&activate.Activator{Home: home}).JournalPaths(name)
	return calls + ".held"
}

// heldNow names the tools of an activation that are held back and that are not accepted
// since.
func heldNow(home string, r *record.Record) []string {
	held, _ := readHeld(heldPath(home, r.Name), r.Digest)
	for _, t := range r.Tools {
		if digest, has := held[t.Name]; has && digest == t.Digest {
			delete(held, t.Name)
		}
	}
	return slices.Sorted(maps.Keys(held))
}

// readHeld gives what is noted of a version; ok is false when nothing is.
func readHeld(path, version string) (held map[string]string, ok bool) {
	data, err := atomicfile.Read(path, heldLimit)
	var file heldFile
	if err != nil || json.Unmarshal(data, &file) != nil || file.Format != heldFormat || file.Version != version {
		return nil, false
	}
	return file.Held, true
}

// heldIsNewer tells that a newer program wrote the file: it stays as it is.
func heldIsNewer(path string) bool {
	var file struct{ Format int }
	data, err := atomicfile.Read(path, heldLimit)
	return err == nil && json.Unmarshal(data, &file) == nil && file.Format > heldFormat
}

// heldKeeper writes what a session holds back, away from the session.
type heldKeeper struct {
	path string
	mu   sync.Mutex
	next *seenTools // not written yet
}

// seenTools is one look: what was held back, and whether all tools were seen.
type seenTools struct {
	held  map[string]string
	whole bool
}

func (k *heldKeeper) set(held map[string]string, whole bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := &seenTools{held, whole}
	if k.next != nil && !whole {
		seen = &seenTools{seen.added(k.next.held), k.next.whole}
	}
	k.next = seen
}

// flush writes what there is to write, where it is not what is there. of says which
// version was seen, "" = none that counts any more.
func (k *heldKeeper) flush(of func() string) error {
	k.mu.Lock()
	seen := k.next
	k.next = nil
	k.mu.Unlock()
	if seen == nil {
		return nil
	}
	version := of()
	if version == "" {
		return nil
	}
	if old, ok := readHeld(k.path, version); maps.Equal(old, seen.added(old)) && (ok || len(seen.held) == 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), heldWait)
	defer cancel()
	unlock, err := atomicfile.Lock(ctx, k.path+".lock", nil)
	if err == nil {
		defer unlock()
		if heldIsNewer(k.path) {
			return nil
		}
		old, _ := readHeld(k.path, version)
		var data []byte
		if data, err = json.Marshal(heldFile{heldFormat, version, seen.added(old)}); err == nil {
			err = atomicfile.Write(k.path, data, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("noting the tools that are held back: %w", err)
	}
	return nil
}

// noteHeld notes what an upgrade holds back: list and doctor tell it before a session has seen it. The upgrade is done, and says it
// as well, so that a failure undoes nothing.
func noteHeld(home string, out *activate.Upgraded) {
	if len(out.Held) == 0 {
		return
	}
	seen := map[string]string{}
	for _, t := range out.Held {
		seen[t.Name] = t.Digest
	}
	path := heldPath(home, out.Record.Name)
	if atomicfile.PrivateDir(filepath.Dir(path)) == nil {
		k := &heldKeeper{path: path}
		k.set(seen, true)
		_ = k.flush(func() string { return out.Record.Digest })
	}
}

// toolNames is never nil.
func toolNames(tools []record.ToolRef) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// added is what is held back after this look, when it was old before.
func (s *seenTools) added(old map[string]string) map[string]string {
	if s.whole {
		return s.held
	}
	all := map[string]string{}
	maps.Copy(all, old)
	maps.Copy(all, s.held)
	return all
}
