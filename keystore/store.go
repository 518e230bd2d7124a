package keystore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"skald-connectors/internal/atomicfile"
)

const (
	// storeLock guards keystore.json and the making of the key; each
	// activation has its own lock besides. An activation's lock is taken first.
	storeLock = ".lock"
	// removeWait ends Remove's wait for a lock: it has no context.
	removeWait = 30 * time.Second
	// putTries bounds how often a key that is forgotten meanwhile is made anew.
	putTries = 3
)

// Store is the key store of one home folder. Open one per process and share
// it: after a keychain call timed out, the Store makes no further one.
// It may be used by several goroutines. Errors are *Error, or wrap the error
// of a context or of one of the caller's functions.
type Store struct {
	o     Options
	guard *guard
	work  int           // scrypt work factor of new passphrases
	gate  chan struct{} // held while the key is opened or made
	// cached is the opened key; gate guards it.
	cached *key
}

// Open prepares a Store. It reads and writes nothing.
func Open(o Options) *Store {
	work := o.Work
	if work == 0 {
		work = workFactor
	}
	return &Store{o: o, guard: newGuard(o), work: work, gate: make(chan struct{}, 1)}
}

// Put writes generation gen of the handles of name, and chooses the backend
// and makes the vault key when there is none. A generation that is there with
// the same handles is left; one with others is a Conflict: generations are
// written once and then changed by Update only.
func (s *Store) Put(ctx context.Context, name string, gen int64, hs []Handle) error {
	if err := cmp.Or(checkActivation(name), checkGeneration(name, gen), checkHandles(hs)); err != nil {
		return err
	}
	if err := s.prepareDir(); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, name+storeLock)
	if err != nil {
		return err
	}
	defer unlock()
	for try := 1; ; try++ {
		err := s.put(ctx, name, gen, hs)
		if !errors.Is(err, errForgotten) || try == putTries {
			return err
		}
	}
}

func (s *Store) put(ctx context.Context, name string, gen int64, hs []Handle) error {
	var k *key
	err := s.gated(ctx, func() (err error) {
		_, k, err = s.ready(ctx)
		return err
	})
	if err != nil {
		return err
	}
	old, err := s.readVault(k, name, gen)
	switch {
	case isKind(err, NotFound):
		return s.commit(ctx, k, &vault{name: name, gen: gen, handles: hs})
	case err != nil:
		return err
	case !sameHandles(old.handles, hs):
		return &Error{Kind: Conflict, Op: "writing vault", What: vaultID(name, gen), Err: errors.New("it is there with other handles")}
	}
	return nil
}

// Load gives the handles of generation gen of name, in the order in which they were put.
func (s *Store) Load(ctx context.Context, name string, gen int64) ([]Handle, error) {
	v, _, err := s.load(ctx, name, gen)
	if err != nil {
		return nil, err
	}
	return v.handles, nil
}

// Update reads the handles of generation gen of name, lets change decide, and
// writes what it returns, all under the activation's lock: no other process
// comes between. Nothing is written when change fails or changes nothing.
// change must not call the Store for the same name.
func (s *Store) Update(ctx context.Context, name string, gen int64, change func([]Handle) ([]Handle, error)) error {
	if err := cmp.Or(checkActivation(name), checkGeneration(name, gen), s.exists(name, gen)); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, name+storeLock)
	if err != nil {
		return err
	}
	defer unlock()
	v, k, err := s.load(ctx, name, gen)
	if err != nil {
		return err
	}
	hs, err := change(slices.Clone(v.handles))
	if err != nil {
		return fmt.Errorf("changing vault %q: %w", vaultID(name, gen), err)
	}
	if err := checkHandles(hs); err != nil || sameHandles(v.handles, hs) {
		return err
	}
	v.handles = hs
	return s.commit(ctx, k, v)
}

// Generations lists the generations of name that are here, rising.
func (s *Store) Generations(name string) ([]int64, error) {
	if err := cmp.Or(checkActivation(name), s.checkDir()); err != nil {
		return nil, err
	}
	found, err := s.vaults()
	return found[name], err
}

// Remove deletes the vault files of name except the generations to keep. It
// does not need the vault key. What is not there is no error.
func (s *Store) Remove(name string, keep ...int64) error {
	if err := checkActivation(name); err != nil {
		return err
	}
	gens, err := s.Generations(name)
	if err != nil || len(gens) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	unlock, err := s.lock(ctx, name+storeLock)
	if err != nil {
		return err
	}
	defer unlock()
	unlockStore, err := s.lock(ctx, storeLock)
	if err != nil {
		return err
	}
	defer unlockStore()
	return s.remove(name, keep)
}

func (s *Store) remove(name string, keep []int64) error {
	st, err := s.loadState()
	if err != nil {
		return err
	}
	gens, err := s.Generations(name)
	if err != nil {
		return err
	}
	gens = slices.DeleteFunc(gens, func(gen int64) bool { return slices.Contains(keep, gen) })
	full := s.uncount(st, name, gens...)
	for _, gen := range gens {
		if err := os.Remove(s.path(vaultFile(name, gen))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &Error{Kind: Unwritable, Op: "removing vault", What: vaultID(name, gen), Err: err}
		}
	}
	if full != nil { // with the room that they took
		return s.saveState(st)
	}
	return nil
}

// uncount strikes vaults from the record before their files go: a kill in between leaves a vault that nothing counts, and
// never a count of one that is gone, which would keep the key for ever.
func (s *Store) uncount(st *state, name string, gens ...int64) error {
	if st == nil || len(gens) == 0 {
		return nil
	}
	for _, gen := range gens {
		delete(st.counters, vaultID(name, gen))
	}
	return s.saveState(st)
}

// Unlock opens the vault key now, asking for what it needs. It makes none:
// with nothing recorded it is NotChosen.
func (s *Store) Unlock(ctx context.Context) error {
	st, err := s.loadState()
	if err != nil {
		return err
	}
	if st == nil {
		return &Error{Kind: NotChosen, Op: "opening key store", Err: errors.New("nothing is stored yet")}
	}
	return s.gated(ctx, func() error {
		_, err := s.opened(ctx, st)
		return err
	})
}

// UnlockLogin is Unlock, and opens a passphrase store for the other processes of
// this user too, until the login ends. kept is false where this system has no
// place for that; a keychain and a key file are open for them anyway.
func (s *Store) UnlockLogin(ctx context.Context) (kept bool, err error) {
	if err := s.Unlock(ctx); err != nil {
		return false, err
	}
	st, err := s.loadState()
	if err != nil || st == nil || st.backend != BackendPassphrase {
		return false, err
	}
	err = s.gated(ctx, func() error {
		kept = s.cached != nil && keepLogin(s.cached) == nil
		return nil
	})
	return kept, err
}

// LockLogin ends that again, and tells whether there was anything to end.
func (s *Store) LockLogin() (was bool, err error) {
	st, err := s.loadState()
	if err != nil || st == nil {
		return false, err
	}
	return dropLogin(st.recipient), nil
}

// lock takes a lock file of the folder and tells the person when it must wait.
func (s *Store) lock(ctx context.Context, file string) (func(), error) {
	waiting := func(holder string) {
		if s.o.Notice == nil {
			return
		}
		if holder == "" {
			holder = "another process"
		}
		s.o.Notice("waiting for " + holder + " to finish with the key store")
	}
	unlock, err := atomicfile.Lock(ctx, s.path(file), waiting)
	if err == nil || ctx.Err() != nil {
		return unlock, err
	}
	return nil, &Error{Kind: Unwritable, Op: "locking key store", What: s.o.Dir, Err: err}
}

// gated runs do while no other goroutine opens or makes the key.
func (s *Store) gated(ctx context.Context, do func() error) error {
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the vault key: %w", ctx.Err())
	}
	defer func() { <-s.gate }()
	return do()
}
