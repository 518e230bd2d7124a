//go:build unix

package sandbox

import "golang.org/x/sys/unix"

func running(pid int) bool { return unix.Kill(pid, 0) != unix.ESRCH }
