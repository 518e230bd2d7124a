package form

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput throws away what the terminal has received and nobody has read.
func flushInput(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
