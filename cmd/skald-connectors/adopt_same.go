package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
)

// sameAs refuses to put the connector that was adopted before in the place of an entry that starts something else, or with
// another secret: nothing would be left of that one, since an adopted entry has no backup.
func (d *adoption) sameAs(ctx context.Context, act *activate.Activator, rec *record.Record, dir string) error {
	differs := func(what string) error {
		return withHint(usagef("adopting %q: it was adopted before, and the entry in %s has another %s", rec.Name, d.at[0].File, what),
			"rename the entry in that file and adopt it under the new name, or remove it there and %s mount %s", program, rec.Name)
	}
	now, err := json.Marshal(d.manifest(rec.Name))
	if err != nil {
		return fmt.Errorf("adopting %q: %w", rec.Name, err)
	}
	was, err := atomicfile.Read(filepath.Join(dir, rec.Name, "connector.json"), manifestLimit)
	if err != nil {
		return fmt.Errorf("adopting %q: %w", rec.Name, err)
	}
	if !sameProgram(was, now) {
		return differs("program, address or setting")
	}
	if len(d.given) == 0 {
		return nil
	}
	hs, err := act.Keys.Load(ctx, rec.Name, rec.Vault)
	if err != nil {
		return err
	}
	for name, given := range d.given {
		if !slices.ContainsFunc(hs, func(h keystore.Handle) bool { return h.Name == name && h.Value.Equal(given.Value) }) {
			return differs("value of " + name)
		}
	}
	return nil
}

// sameProgram compares two manifests of adopted entries, but for the folders, which depend on what is on the disk today.
func sameProgram(was, now []byte) bool {
	var x, y map[string]any
	if json.Unmarshal(was, &x) != nil || json.Unmarshal(now, &y) != nil {
		return false
	}
	delete(x, "permissions")
	delete(y, "permissions")
	return reflect.DeepEqual(x, y)
}
