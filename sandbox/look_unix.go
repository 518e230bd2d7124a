//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable checks that path is a file that we may execute, and returns it.
func executable(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if fi.IsDir() {
		return "", &fs.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	}
	if !fi.Mode().IsRegular() || unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		return "", &fs.PathError{Op: "exec", Path: path, Err: syscall.EACCES}
	}
	return path, nil
}

func isPathName(name string) bool { return name == "PATH" }
