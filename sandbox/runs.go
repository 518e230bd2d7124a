package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A private folder carries the process id of the program that made it, so that
// the next one sees what a killed program left.

func runPrefix() string { return strconv.Itoa(os.Getpid()) + "-" }

// sweepRuns removes the folders whose makers are gone. A number that was given
// to another process keeps its folder until that one ends too.
func sweepRuns(runs string) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "-")
		if pid, err := strconv.Atoi(number); err == nil && pid != os.Getpid() && !running(pid) {
			removeAll(filepath.Join(runs, e.Name()))
		}
	}
}

// removeAll removes dir, also folders in it that lack the right to it. Links are
// removed, not followed.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
