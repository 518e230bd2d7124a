//go:build unix

package fetch

import (
	"os"
	"syscall"
)

func fileSizeSignals() []os.Signal { return []os.Signal{syscall.SIGXFSZ} }

func limitFileSize(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
