package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// executable finds the program at path, trying the endings of the system's own
// PATHEXT when path has none of them. The user's PATHEXT is not asked: the other
// endings on it are documents that an interpreter opens.
func executable(path string) (string, error) {
	endings := []string{".com", ".exe", ".bat", ".cmd"}
	for _, known := range endings {
		if strings.EqualFold(filepath.Ext(path), known) {
			endings = []string{""}
			break
		}
	}
	for _, ending := range endings {
		fi, err := os.Stat(path + ending)
		if err == nil && fi.Mode().IsRegular() {
			return path + ending, nil
		}
	}
	if fi, err := os.Stat(path); err == nil {
		if fi.IsDir() {
			return "", &fs.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
		}
		return "", &fs.PathError{Op: "exec", Path: path, Err: fs.ErrPermission}
	}
	return "", &fs.PathError{Op: "exec", Path: path, Err: fs.ErrNotExist}
}

func isPathName(name string) bool { return strings.EqualFold(name, "PATH") }
