package sandbox

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached has no console and takes no Ctrl-C of ours.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
