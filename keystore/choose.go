package keystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ready gives the record and the key, and makes both when there are none yet.
func (s *Store) ready(ctx context.Context) (*state, *key, error) {
	st, err := s.loadState()
	if err != nil {
		return nil, nil, err
	}
	if st != nil {
		k, err := s.opened(ctx, st)
		if err == nil || !isKind(err, KeyMissing) {
			return st, k, err
		}
		if unused, verr := s.unused(st); verr != nil || !unused {
			return nil, nil, errors.Join(err, verr)
		}
	}
	return s.create(ctx)
}

// unused reports that no vault depends on a key: none is here, and none is
// recorded to be somewhere else. Only then may a key be made.
func (s *Store) unused(st *state) (bool, error) {
	found, err := s.vaults()
	return len(found) == 0 && (st == nil || len(st.counters) == 0), err
}

// create chooses a backend, makes the key in it and records both.
func (s *Store) create(ctx context.Context) (*state, *key, error) {
	unlock, err := s.lock(ctx, storeLock)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	old, err := s.loadState()
	if err != nil {
		return nil, nil, err
	}
	if old != nil { // made by another process, or its key is gone
		k, err := s.opened(ctx, old)
		if err == nil || !isKind(err, KeyMissing) {
			return old, k, err
		}
	}
	if unused, err := s.unused(old); err != nil || !unused {
		return nil, nil, errors.Join(&Error{Kind: KeyMissing, Op: "opening key store", What: stateFile,
			Err: errors.New("there are vaults, and the record of their key is gone")}, err)
	}
	st, k, err := s.choose(ctx, old)
	if err != nil {
		return nil, nil, err
	}
	st.recipient, st.counters, st.chosenAt = k.recipient(), map[string]int64{}, s.now()
	if err := s.saveState(st); err != nil {
		return nil, nil, err
	}
	if st.make != nil {
		if err := st.make(); err != nil {
			return nil, nil, errors.Join(err, s.unlink(s.path(stateFile)))
		}
	}
	s.cached = k
	return st, k, nil
}

// choose takes what is recorded or wanted, else the keychain, else what the
// person consents to. Only the last is a question.
func (s *Store) choose(ctx context.Context, old *state) (*state, *key, error) {
	want := s.o.Want
	if old != nil {
		want = old.backend
	}
	if want != "" {
		return s.makeKey(ctx, want)
	}
	st, k, cause := s.makeKey(ctx, BackendKeychain)
	if cause == nil || ctx.Err() != nil {
		return st, k, cause
	}
	refused := &Error{Kind: NotChosen, Op: "choosing key store", Err: cause}
	if s.o.Consent == nil {
		return nil, nil, refused
	}
	options := []Backend{BackendPassphrase, BackendKeyfile}
	picked, err := s.o.Consent(ctx, cause, options)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("choosing key store: %w", err)
	case picked == "":
		return nil, nil, refused
	case picked != BackendPassphrase && picked != BackendKeyfile:
		return nil, nil, &Error{Kind: NotChosen, Op: "choosing key store", What: string(picked), Err: errors.New("it was not offered")}
	}
	return s.makeKey(ctx, picked)
}

func (s *Store) makeKey(ctx context.Context, b Backend) (*state, *key, error) {
	switch b {
	case BackendKeychain:
		return s.keyInKeychain(ctx)
	case BackendPassphrase:
		return s.keyUnderPassphrase(ctx)
	case BackendKeyfile:
		return s.keyInFile()
	}
	return nil, nil, &Error{Kind: Invalid, Op: "choosing key store", What: string(b)}
}

// keyInKeychain puts a new key into the keychain and reads it back. The item
// is named after the folder, so a key that an interrupted run left is found
// again: a key in the keychain is adopted, never overwritten.
func (s *Store) keyInKeychain(ctx context.Context) (*state, *key, error) {
	dir, err := filepath.Abs(s.o.Dir)
	if err != nil {
		return nil, nil, &Error{Kind: Unreadable, Op: "opening key store", What: s.o.Dir, Err: err}
	}
	st := &state{backend: BackendKeychain, item: "vault-key-" + sha256Hex([]byte(dir))[:16]}
	text, err := s.guard.get(ctx, st.item)
	if err == nil {
		k, err := parseKey(text)
		if err != nil {
			err = &Error{Kind: Damaged, Op: "adopting vault key", What: st.item, Err: err}
		}
		return st, k, err
	}
	if !isKind(err, NotFound) {
		return nil, nil, err
	}
	k, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if err := s.guard.set(ctx, st.item, k.text()); err != nil {
		return nil, nil, err
	}
	if back, err := s.guard.get(ctx, st.item); err != nil || back != k.text() {
		cause := errors.Join(errors.New("the keychain does not give back what it was given"), err, s.guard.delete(ctx, st.item))
		return nil, nil, &Error{Kind: Unavailable, Op: "storing vault key", What: st.item, Err: cause}
	}
	return st, k, nil
}

func (s *Store) keyUnderPassphrase(ctx context.Context) (*state, *key, error) {
	const op = "setting passphrase"
	if s.o.Passphrase == nil {
		return nil, nil, &Error{Kind: Locked, Op: op, Err: errors.New("nobody is here to give one")}
	}
	ask := PassphraseAsk{New: true, Attempt: 1}
	for {
		p, err := s.o.Passphrase(ctx, ask)
		if err != nil {
			return nil, nil, fmt.Errorf("asking for a passphrase: %w", err)
		}
		if p.IsZero() {
			if !s.o.Interactive || ask.Attempt == passphraseTries {
				return nil, nil, &Error{Kind: Invalid, Op: op, Err: errors.New("it is empty")}
			}
			ask.Attempt, ask.Problem = ask.Attempt+1, "a passphrase cannot be empty"
			continue
		}
		k, err := newKey()
		if err != nil {
			return nil, nil, err
		}
		wrapped, err := k.wrap(p, s.work)
		return &state{backend: BackendPassphrase, wrapped: wrapped}, k, err
	}
}

// keyInFile says what makes the key file, or adopts the one that the user put there. It is written behind the record: a
// file that a kill left without one would be taken for the user's for ever, and a record without its key and any vault
// is replaced or removed.
func (s *Store) keyInFile() (*state, *key, error) {
	st := &state{backend: BackendKeyfile, keyFile: "vault.key"}
	if s.o.KeyFile != "" {
		st.keyFile = s.o.KeyFile
		if !filepath.IsAbs(st.keyFile) {
			return nil, nil, &Error{Kind: Invalid, Op: "making key file", What: st.keyFile, Err: errors.New("its path is not absolute")}
		}
	}
	path := s.keyPath(st)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		k, err := s.readKeyFile(path)
		return st, k, err
	}
	k, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	st.made = true
	st.make = func() error { return writePrivate("making key file", path, path, []byte(k.text()+"\n")) }
	return st, k, nil
}
