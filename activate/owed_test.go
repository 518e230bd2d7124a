package activate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skald-connectors/install"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// One vault that nobody can read keeps no other from being given back, and stays.
func TestDamagedOwedVault(t *testing.T) {
	ctx, home := context.Background(), t.TempDir()
	dir := filepath.Join(home, "keystore")
	a := &Activator{Home: home, Store: install.Open(home), Keys: keystore.Open(keystore.Options{Dir: dir, Want: keystore.BackendKeyfile})}
	for _, name := range []string{"aaa", "bbb", strings.Repeat("c", 64)} {
		if err := a.keepRoom(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "owed__aaa.1.age"), []byte("no vault"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := a.payAllOwed(ctx)
	if bad, ok := errors.AsType[*keystore.Error](err); !ok || bad.Kind != keystore.Damaged || !strings.Contains(err.Error(), "owed__aaa") {
		t.Errorf("got %v, want that the first is damaged", err)
	}
	names, err := a.Keys.Names()
	if err != nil || len(names) != 1 || names[0] != "owed__aaa" {
		t.Errorf("left are %q, %v; want the damaged one", names, err)
	}

	// A later one of the same activation is given back all the same.
	if err := a.keepRoom(ctx, "aaa"); err != nil {
		t.Fatal(err)
	}
	if err := a.payAllOwed(ctx); err != nil {
		t.Error(err)
	}
	if gens, err := a.Keys.Generations("owed__aaa"); err != nil || len(gens) != 1 || gens[0] != 1 {
		t.Errorf("left are %v, %v; want the damaged one", gens, err)
	}
	list, err := a.DamagedOwed(ctx)
	if err != nil || len(list) != 1 || list[0].Vault != "owed__aaa" || list[0].Generation != 1 || list[0].Err == nil {
		t.Errorf("damaged are %v, %v", list, err)
	}
}

// The note in the form and the redactor have one limit.
func TestShortSecretIsNoted(t *testing.T) {
	field := manifest.Field{Name: "KEY", Secret: true}
	for _, value := range []string{"Xq7-Xq7", "Xq7-Xq7-", "Xq7-Xq7-X"} {
		_, notes, err := field.Check(value)
		if err != nil {
			t.Fatal(err)
		}
		r := keystore.NewRedactor([]keystore.Handle{{Name: "KEY", Value: keystore.NewSecret(value), Secret: true}})
		struck := !strings.Contains(r.String("it said "+value+" today"), value)
		if noted := len(notes) > 0; noted == struck {
			t.Errorf("%d characters: noted %v, struck out %v", len(value), noted, struck)
		}
	}
}
