package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// pruneAge is how long a download is kept that nothing installed names.
	pruneAge = 30 * 24 * time.Hour
	// pruneBytes bounds all of them together: the largest connectors some fifteen times.
	pruneBytes = 1 << 30
	// pruneFresh protects what another process has just downloaded and is about to install.
	pruneFresh = time.Hour
	// pruneEvery is how often it is worth looking.
	pruneEvery = 24 * time.Hour
	prunedName = ".pruned" // its time says when that was
)

// Prune removes downloads from the cache below cacheDir: those older than a month, and then the oldest until a gibibyte is
// left. keep names what stays in any case, SHA-256 in lower-case hex. It looks once a day, and says how many bytes it freed.
func Prune(cacheDir string, keep map[string]bool, now time.Time) (freed int64, err error) {
	root, err := os.OpenRoot(filepath.Join(cacheDir, filesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("pruning the cache: %w", err)
	}
	defer root.Close()
	if info, err := root.Lstat(prunedName); err == nil && now.Sub(info.ModTime()) < pruneEvery && !info.ModTime().After(now) {
		return 0, nil
	}
	list, total := candidates(root, keep)
	for _, d := range list {
		age := now.Sub(d.when)
		if age < pruneFresh || age < pruneAge && total <= pruneBytes {
			continue
		}
		if root.Remove(d.path) == nil {
			total -= d.size
			freed += d.size
		}
	}
	_ = root.Remove(prunedName)
	if err := putFile(root, prunedName, nil); err != nil {
		return freed, fmt.Errorf("pruning the cache: %w", err)
	}
	_ = root.Chtimes(prunedName, now, now)
	return freed, nil
}

// A cachedDownload is one that nothing protects.
type cachedDownload struct {
	path string
	size int64
	when time.Time
}

// candidates lists what may go, oldest first, with the size of everything.
func candidates(root *os.Root, keep map[string]bool) (list []cachedDownload, total int64) {
	_ = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !isDigest(d.Name()) {
			return nil // a folder that cannot be read hides nothing else
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		total += info.Size()
		if !keep[d.Name()] {
			list = append(list, cachedDownload{p, info.Size(), info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(list, func(a, b cachedDownload) int { return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.path, b.path)) })
	return list, total
}
