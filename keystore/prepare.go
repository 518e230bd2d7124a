package keystore

import (
	"context"
	"maps"
	"slices"
)

// Names lists the activations that have vault files here, sorted, without
// touching the key.
func (s *Store) Names() ([]string, error) {
	if err := s.checkDir(); err != nil {
		return nil, err
	}
	found, err := s.vaults()
	return slices.Sorted(maps.Keys(found)), err
}

// Prepare opens the vault key, or chooses a backend and makes the key where
// there is none: whoever will store values later learns now that it can be
// done, before a person types them. Forget undoes it while no vault exists.
func (s *Store) Prepare(ctx context.Context) error {
	if err := s.prepareDir(); err != nil {
		return err
	}
	return s.gated(ctx, func() error {
		_, _, err := s.ready(ctx)
		return err
	})
}
