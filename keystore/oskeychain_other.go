//go:build !((dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd)

package keystore

import (
	"errors"
	"os/exec"
	"runtime"
)

// ready has nothing to look at here: the call itself answers.
func (osKeychain) ready() error { return nil }

// lockedHere knows the exit codes of macOS's security tool for "interaction
// is not allowed", "authorisation failed" and "cancelled by the user" (the low bytes of -25308, -25293 and -128).
func lockedHere(err error) bool {
	var exit *exec.ExitError
	if runtime.GOOS != "darwin" || !errors.As(err, &exit) {
		return false
	}
	code := exit.ExitCode()
	return code == 36 || code == 51 || code == 128
}
