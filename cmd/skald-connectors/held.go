package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/internal/atomicfile"
)

// What a session held back is kept in calls/NAME.jsonl.held, so that list and
// doctor can tell without starting anything:
//
//	{"format":1,"held":{"TOOL":"DIGEST"}}
//
// It is what the last session saw, and no more: a tool counts as held while the
// record does not have that digest, so accepting it needs no second writer, and a
// file that cannot be read or written is as good as none.
type heldFile struct {
	Format int               `json:"format"`
	Held   map[string]string `json:"held"`
}

// heldLimit bounds the file: the most tools of a connector, with long names.
const heldLimit = 4 << 20

func heldPath(home, name string) string {
	_, calls := (&activate.Activator{Home: home}).JournalPaths(name)
	return calls + ".held"
}

// heldNow names the tools of an activation that its last session held back and
// that are not accepted since.
func heldNow(home string, r *record.Record) []string {
	data, err := atomicfile.Read(heldPath(home, r.Name), heldLimit)
	var file heldFile
	if err != nil || json.Unmarshal(data, &file) != nil || file.Format != 1 {
		return nil
	}
	for _, t := range r.Tools {
		if digest, has := file.Held[t.Name]; has && digest == t.Digest {
			delete(file.Held, t.Name)
		}
	}
	return slices.Sorted(maps.Keys(file.Held))
}

// heldKeeper writes what a session holds back, away from the session.
type heldKeeper struct {
	path string
	mu   sync.Mutex
	next *heldFile // not written yet
}

func (k *heldKeeper) set(held map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = &heldFile{1, held}
}

// flush writes what there is to write, where it is not what is there.
func (k *heldKeeper) flush() error {
	k.mu.Lock()
	file := k.next
	k.next = nil
	k.mu.Unlock()
	if file == nil {
		return nil
	}
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	old, err := atomicfile.Read(k.path, heldLimit)
	if err == nil && string(old) == string(data) || err != nil && len(file.Held) == 0 {
		return nil
	}
	if err := atomicfile.Write(k.path, data, 0o600); err != nil {
		return fmt.Errorf("noting the tools that are held back: %w", err)
	}
	return nil
}
