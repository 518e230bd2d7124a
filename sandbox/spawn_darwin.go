package sandbox

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mark does not exist here: a process that leaves the group is lost.
type mark struct{}

// begin starts the program. macOS has no signal at the parent's death and no way
// to set the limits of another process, so neither is done.
func (c *child) begin(path string, cmd Command, files [3]*os.File, _ Limits) (err error) {
	c.proc, err = startProcess(path, cmd, files[:], syscall.SysProcAttr{})
	if err == nil {
		c.pid = c.proc.Pid
	}
	return err
}

// others counts the living processes of the group besides the started one.
func (c *child) others() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return 0
	}
	const zombie = 5 // SZOMB
	n := 0
	list, _ := unix.SysctlKinfoProcSlice("kern.proc.pgrp", c.pid) // an empty group is an error
	for _, p := range list {
		if int(p.Proc.P_pid) != c.pid && p.Proc.P_stat != zombie {
			n++
		}
	}
	return n
}

// outside has nobody to signal: only the group is known.
func (c *child) outside(syscall.Signal) {}

// limitsNotHeld lists what of l does not hold here.
func limitsNotHeld(l Limits) []string {
	list := []string{
		"core dumps: this system lets us not turn them off",
		"end of the tree: a process that leaves the group, and all when this program is killed, live on",
	}
	if l.Memory > 0 || l.FileSize > 0 || l.Files > 0 || l.Processes > 0 || l.CPU > 0 {
		list = append(list, "memory, files, processes, processor time: this system lets us not limit them")
	}
	return list
}

func closeOnExec() { closeOnExecEach() }

func wrongFormat(err error) bool {
	const badArch, badMacho = syscall.Errno(86), syscall.Errno(88) // EBADARCH, EBADMACHO
	return errors.Is(err, syscall.ENOEXEC) || errors.Is(err, badArch) || errors.Is(err, badMacho)
}
