//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package form

import "golang.org/x/sys/unix"

const tcgets = unix.TIOCGETA
