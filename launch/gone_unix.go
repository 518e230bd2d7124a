//go:build unix

package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp tells whether nobody can read any more what is written to stream: the
// other end of a pipe is closed.
func hungUp(stream any) (gone bool) {
	c, ok := stream.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd)}} // errors are always told
		n, err := unix.Poll(polled, 0)
		gone = err == nil && n > 0 && polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}
