//go:build unix

package sandbox

import "syscall"

// detached is a session of its own: no signal of our terminal reaches it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
