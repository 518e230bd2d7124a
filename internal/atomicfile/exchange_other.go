//go:build !linux && !darwin

package atomicfile

import "os"

func finishIf(f *os.File, target string, old []byte) error { return compareAndRename(f, target, old) }
