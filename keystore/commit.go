package keystore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errForgotten says that Forget ran between opening the key and writing with it.
var errForgotten = errors.New("the vault key was forgotten meanwhile")

// exists tells a vault that is not there without touching the key.
func (s *Store) exists(name string, gen int64) error {
	if err := s.checkDir(); err != nil {
		return err
	}
	if _, err := os.Lstat(s.path(vaultFile(name, gen))); errors.Is(err, fs.ErrNotExist) {
		return &Error{Kind: NotFound, Op: "reading vault", What: vaultID(name, gen)}
	}
	return nil // whatever else is wrong, reading will say
}

// load opens the key and reads a vault, and holds its counter to the record.
func (s *Store) load(ctx context.Context, name string, gen int64) (*vault, *key, error) {
	if err := cmp.Or(checkActivation(name), checkGeneration(name, gen), s.exists(name, gen)); err != nil {
		return nil, nil, err
	}
	st, err := s.loadState()
	if err != nil {
		return nil, nil, err
	}
	if st == nil {
		return nil, nil, &Error{Kind: KeyMissing, Op: "opening key store", What: stateFile,
			Err: errors.New("there are vaults, and the record of their key is gone")}
	}
	var k *key
	err = s.gated(ctx, func() (err error) {
		k, err = s.opened(ctx, st)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	// The record was read first and is written last, so it is never ahead of an honest vault …
	v, err := s.readVault(k, name, gen)
	if err != nil || v.counter >= st.counters[vaultID(name, gen)] {
		return v, k, err
	}
	// … unless the vault was removed and put again between: look once more, undisturbed.
	v, err = s.readSettled(ctx, k, name, gen)
	return v, k, err
}

func (s *Store) readSettled(ctx context.Context, k *key, name string, gen int64) (*vault, error) {
	unlock, err := s.lock(ctx, storeLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	st, err := s.loadState()
	if err != nil {
		return nil, err
	}
	v, err := s.readVault(k, name, gen)
	if err != nil {
		return nil, err
	}
	if st != nil && v.counter < st.counters[vaultID(name, gen)] {
		return nil, &Error{Kind: Replaced, Op: "reading vault", What: vaultID(name, gen),
			Err: fmt.Errorf("it is state %d, state %d was written last", v.counter, st.counters[vaultID(name, gen)])}
	}
	return v, nil
}

// readVault decrypts one vault file and holds it to its name.
func (s *Store) readVault(k *key, name string, gen int64) (*vault, error) {
	const op = "reading vault"
	id := vaultID(name, gen)
	sealed, err := readPrivate(op, id, s.path(vaultFile(name, gen)), maxVaultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Kind: NotFound, Op: op, What: id}
	}
	if err != nil {
		return nil, err
	}
	plain, err := k.open(sealed)
	if err != nil {
		return nil, &Error{Kind: Damaged, Op: op, What: id, Err: err}
	}
	v, err := parseVault(plain)
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		return nil, &Error{Kind: Newer, Op: op, What: id, Err: err}
	case err != nil:
		return nil, &Error{Kind: Damaged, Op: op, What: id, Err: err}
	case v.name != name || v.gen != gen:
		return nil, &Error{Kind: Replaced, Op: op, What: id, Err: fmt.Errorf("its content is %q", vaultID(v.name, v.gen))}
	}
	return v, nil
}

// commit writes a vault and then its counter, under the store lock: a kill
// between leaves the record behind the vault, which is allowed; the other way
// round it would look rolled back.
func (s *Store) commit(ctx context.Context, k *key, v *vault) error {
	unlock, err := s.lock(ctx, storeLock)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.loadState()
	if err != nil {
		return err
	}
	id := vaultID(v.name, v.gen)
	if st == nil || st.recipient != k.recipient() {
		return &Error{Kind: Conflict, Op: "writing vault", What: id, Err: errForgotten}
	}
	v.counter = max(v.counter, st.counters[id]) + 1
	if err := s.writeVault(k, v); err != nil {
		return err
	}
	st.counters[id] = v.counter
	return s.saveState(st)
}

func (s *Store) writeVault(k *key, v *vault) error {
	const op = "writing vault"
	id := vaultID(v.name, v.gen)
	plain, err := v.plaintext()
	if err != nil {
		return &Error{Kind: Invalid, Op: op, What: id, Err: errVault}
	}
	sealed, err := k.seal(plain)
	if err == nil && len(sealed) > maxVaultFile {
		err = errors.New("it would be too large")
	}
	if err != nil {
		return &Error{Kind: Invalid, Op: op, What: id, Err: err}
	}
	return writePrivate(op, id, s.path(vaultFile(v.name, v.gen)), sealed)
}

// Describe says where the vault key is kept and how many vaults there are,
// without touching the key.
func (s *Store) Describe() (Description, error) {
	st, err := s.loadState()
	if err != nil {
		return Description{}, err
	}
	found, err := s.vaults()
	if err != nil {
		return Description{}, err
	}
	d := Description{}
	for _, gens := range found {
		d.Vaults += len(gens)
	}
	if st == nil {
		return d, nil
	}
	d.Backend = st.backend
	switch st.backend {
	case BackendKeychain:
		d.Where = fmt.Sprintf("item %q of service %q in the system's keychain", st.item, keychainService)
	case BackendPassphrase:
		d.Where = fmt.Sprintf("%q, under a passphrase", s.path(stateFile))
	case BackendKeyfile:
		d.Where = fmt.Sprintf("key file %q", filepath.Clean(s.keyPath(st)))
	}
	return d, nil
}

// Forget deletes the vault key and its record when no vault is left, and does
// nothing otherwise. A key file that the user provided stays.
func (s *Store) Forget(ctx context.Context) error {
	if st, err := s.loadState(); err != nil || st == nil {
		return err
	}
	return s.gated(ctx, func() error { return s.forget(ctx) }) // the gate before the lock, as in create
}

func (s *Store) forget(ctx context.Context) error {
	unlock, err := s.lock(ctx, storeLock)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.loadState()
	if err != nil || st == nil {
		return err
	}
	if unused, err := s.unused(st); err != nil || !unused {
		return err
	}
	s.cached = nil
	dropLogin(st.recipient)
	switch {
	case st.backend == BackendKeychain:
		if err := s.guard.delete(ctx, st.item); err != nil && !isKind(err, NotFound) {
			return err
		}
		if _, err := s.guard.get(ctx, st.item); err == nil {
			return &Error{Kind: Unwritable, Op: "forgetting vault key", What: st.item, Err: errors.New("the keychain still has it")}
		} else if !isKind(err, NotFound) {
			return err
		}
	case st.backend == BackendKeyfile && st.made:
		if err := s.unlink(s.keyPath(st)); err != nil {
			return err
		}
	}
	return s.unlink(s.path(stateFile))
}

func (s *Store) unlink(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Kind: Unwritable, Op: "forgetting vault key", What: path, Err: err}
	}
	return nil
}
