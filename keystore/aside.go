package keystore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skald-connectors/internal/atomicfile"
)

// asideTries bounds how many damaged files of one vault are kept side by side.
const asideTries = 100

// SetAside renames a vault that is damaged, or not the one last written, out of the way, and gives the name of the file: it is
// kept for a person, and no vault any more. One that can be read stays, and so does one that cannot be judged: the
// name is then "", and the error says why.
func (s *Store) SetAside(ctx context.Context, name string, gen int64) (file string, err error) {
	if err := cmp.Or(checkActivation(name), checkGeneration(name, gen), s.exists(name, gen)); err != nil {
		return "", err
	}
	unlock, err := s.lock(ctx, name+storeLock)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, _, err := s.load(ctx, name, gen); !isKind(err, Damaged) && !isKind(err, Replaced) {
		return "", err
	}
	unlockStore, err := s.lock(ctx, storeLock)
	if err != nil {
		return "", err
	}
	defer unlockStore()
	st, err := s.loadState()
	if err == nil {
		err = s.uncount(st, name, gen)
	}
	if err != nil {
		return "", err
	}
	if file, err = s.rename(name, gen); err != nil {
		return "", &Error{Kind: Unwritable, Op: "setting vault aside", What: vaultID(name, gen), Err: err}
	}
	return file, nil
}

// rename takes the first name that is free.
func (s *Store) rename(name string, gen int64) (string, error) {
	for n := range asideTries {
		file := vaultFile(name, gen) + ".damaged"
		if n > 0 {
			file = fmt.Sprintf("%s-%d", file, n+1)
		}
		if _, err := os.Lstat(s.path(file)); errors.Is(err, fs.ErrNotExist) {
			return file, atomicfile.Cause(os.Rename(s.path(vaultFile(name, gen)), s.path(file)))
		}
	}
	return "", fmt.Errorf("%d damaged ones are kept already", asideTries)
}
