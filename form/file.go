package form

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxValue is the most that one value may have (format.md 4: 64 KiB).
const maxValue = 64 << 10

// readFile reads the file that an @path names. home replaces a leading "~/".
func readFile(path, home string) (string, error) {
	full := path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home == "" {
			return "", fmt.Errorf("%q: the home folder is not known; write the path in full", path)
		}
		full = filepath.Join(home, rest)
	}
	f, err := os.Open(full)
	if err != nil {
		return "", fileError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%q is not a file", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	switch {
	case err != nil:
		return "", fileError(path, err)
	case len(content) > maxValue:
		return "", fmt.Errorf("%q is larger than 64 KiB", path)
	case len(content) == 0:
		return "", fmt.Errorf("%q is empty", path)
	}
	return string(content), nil
}

// fileError keeps the reason and drops the operation, which the person did not ask for.
func fileError(path string, err error) error {
	var perr *os.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	return fmt.Errorf("reading %q: %w", path, err)
}
