//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package form

import "golang.org/x/sys/unix"

const (
	tcgets   = unix.TIOCGETA
	fionread = 0x4004667f // _IOR('f', 127, int)
)
