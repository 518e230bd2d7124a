package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeSize is the largest pipe that any user may make: a large message then
// costs few changes between the programs.
const pipeSize = 1 << 20

// widen makes a pipe larger. What is no pipe, or may not be, stays as it is.
func widen(stream any) {
	c, ok := stream.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}
