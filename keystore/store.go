package keystore

import "context"

// Store is the key store of one home folder. Open one per process and share
// it: after a keychain call timed out, the Store makes no further one.
// It may be used by several goroutines.
type Store struct {
	o Options
}

// Open prepares a Store. It reads and writes nothing.
func Open(o Options) *Store { return &Store{o: o} }

// Put writes a new generation of the handles of name.
func (s *Store) Put(ctx context.Context, name string, gen int64, hs []Handle) error { return nil }

// Load gives the handles of a generation of name.
func (s *Store) Load(ctx context.Context, name string, gen int64) ([]Handle, error) { return nil, nil }

// Update changes the handles of a generation of name under the lock.
func (s *Store) Update(ctx context.Context, name string, gen int64, change func([]Handle) ([]Handle, error)) error {
	return nil
}

// Generations lists the generations of name that are here, rising.
func (s *Store) Generations(name string) ([]int64, error) { return nil, nil }

// Remove deletes the vault files of name except the generations to keep.
func (s *Store) Remove(name string, keep ...int64) error { return nil }

// Unlock opens the vault key now, asking for what it needs.
func (s *Store) Unlock(ctx context.Context) error { return nil }

// Describe says where the vault key is kept, without touching it.
func (s *Store) Describe() (Description, error) { return Description{}, nil }

// Forget deletes the vault key when no vault is left.
func (s *Store) Forget(ctx context.Context) error { return nil }
