//go:build unix

package fetch

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAPipeIsNoBundle: opening one would wait for its other end, and no signal ends that.
func TestAPipeIsNoBundle(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.tar")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *BundleFileError
	if _, err := openTarFile(name); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}
