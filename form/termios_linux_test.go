package form

import "golang.org/x/sys/unix"

const (
	tcgets   = unix.TCGETS
	fionread = unix.TIOCINQ
)
