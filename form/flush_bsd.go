//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package form

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput throws away what the terminal has received and nobody has read.
func flushInput(in *os.File) {
	const readSide = 1 // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, readSide)
}
