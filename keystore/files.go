package keystore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skald-connectors/internal/atomicfile"
)

func (s *Store) path(file string) string { return filepath.Join(s.o.Dir, file) }

func vaultFile(name string, gen int64) string { return vaultID(name, gen) + ".age" }

// readPrivate reads a file that only its owner may reach. A file that is not there gives an
// error that wraps fs.ErrNotExist, without a Kind.
func readPrivate(op, what, path string, limit int64) ([]byte, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && fi.Mode().IsRegular() && othersCanReach(fi) {
		return nil, &Error{Kind: Unsafe, Op: op, What: what, Err: errors.New("other users can reach its file")}
	}
	data, err := atomicfile.Read(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var unsafe *atomicfile.UnsafeError
	switch {
	case errors.As(err, &unsafe):
		return nil, &Error{Kind: Unsafe, Op: op, What: what, Err: err}
	case err != nil:
		return nil, &Error{Kind: Unreadable, Op: op, What: what, Err: err}
	}
	return data, nil
}

// writePrivate replaces a file whole and reads it back.
func writePrivate(op, what, path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o600); err != nil {
		return &Error{Kind: Unwritable, Op: op, What: what, Err: err}
	}
	back, err := readPrivate(op, what, path, int64(len(data)))
	if err != nil {
		return err
	}
	if !slices.Equal(back, data) {
		return &Error{Kind: Damaged, Op: op, What: what, Err: errors.New("the file system gave other bytes back")}
	}
	return nil
}

// prepareDir makes the folder, or judges it.
func (s *Store) prepareDir() error {
	if err := s.checkDir(); err != nil {
		return err
	}
	err := atomicfile.PrivateDir(s.o.Dir)
	var unsafe *atomicfile.UnsafeError
	switch {
	case errors.As(err, &unsafe):
		return &Error{Kind: Unsafe, Op: "opening key store", What: s.o.Dir, Err: err}
	case err != nil:
		return &Error{Kind: Unwritable, Op: "opening key store", What: s.o.Dir, Err: err}
	}
	return nil
}

// checkDir judges the folder without making or changing it. A missing one is fine.
func (s *Store) checkDir() error {
	fi, err := os.Lstat(s.o.Dir)
	var why string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &Error{Kind: Unreadable, Op: "opening key store", What: s.o.Dir, Err: err}
	case fi.Mode()&fs.ModeSymlink != 0:
		why = "it is a symbolic link"
	case !fi.IsDir():
		why = "it is not a folder"
	case !ownedByUs(fi):
		why = "it belongs to another user"
	case othersCanReach(fi):
		why = "other users can reach it"
	default:
		return nil
	}
	return &Error{Kind: Unsafe, Op: "opening key store", What: s.o.Dir, Err: errors.New(why)}
}

// vaults lists the vault files by activation. A folder that is not there has none.
func (s *Store) vaults() (map[string][]int64, error) {
	entries, err := os.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Kind: Unreadable, Op: "listing key store", What: s.o.Dir, Err: err}
	}
	found := map[string][]int64{}
	for _, e := range entries {
		if name, gen, ok := parseVaultFile(e.Name()); ok {
			found[name] = append(found[name], gen)
		}
	}
	for _, gens := range found {
		slices.Sort(gens)
	}
	return found, nil
}

// parseVaultFile is the reverse of vaultFile. Names may hold dots: the last
// part before ".age" is the generation.
func parseVaultFile(file string) (name string, gen int64, ok bool) {
	id, ok := strings.CutSuffix(file, ".age")
	dot := strings.LastIndexByte(id, '.')
	if !ok || dot < 0 {
		return "", 0, false
	}
	gen, err := strconv.ParseInt(id[dot+1:], 10, 64)
	ok = err == nil && gen > 0 && vaultFile(id[:dot], gen) == file && checkActivation(id[:dot]) == nil
	return id[:dot], gen, ok
}
