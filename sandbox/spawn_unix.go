//go:build linux || darwin

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a started process and the tree below it. It leads a session and a
// group of its own; until reap its pid, and so the number of the group, cannot
// be given to anybody else.
type child struct {
	pid   int
	proc  *os.Process
	mark  mark
	ended chan struct{} // closed when the process has ended, before it is reaped
	stage bool          // pid is not the program itself but what holds it (confine_linux.go)

	mu     sync.Mutex // keeps signals and reap apart
	reaped bool
}

const (
	// A program that is still open for writing somewhere (another goroutine forks
	// while we write it) cannot be executed for a moment.
	busyTries, busyPause = 20, 10 * time.Millisecond
)

// spawn starts path with nothing between it and us.
func spawn(path string, c Command, files [3]*os.File, l Limits) (*child, error) {
	ch := &child{ended: make(chan struct{})}
	err := ch.bound(func() error { return ch.begin(path, c, files, l) })
	if err == nil {
		return ch, nil
	}
	if _, ok := errors.AsType[*UnenforceableError](err); ok {
		return nil, err
	}
	return nil, explain(program(c), path, err)
}

// bound runs begin on a goroutine that is bound to one thread and stays until the
// end, because the parent-death signal is sent when the *thread* dies that
// forked; it is also the one that waits.
func (c *child) bound(begin func() error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := begin()
		started <- err
		if err == nil {
			awaitEnd(c.pid)
			close(c.ended)
		}
	}()
	return <-started
}

// startProcess forks and executes. The child gets a session of its own (so no
// terminal and a new group) and no descriptor but the three.
func startProcess(path string, c Command, files []*os.File, sys syscall.SysProcAttr) (*os.Process, error) {
	closeOnExec()
	sys.Setsid = true
	env := c.Env
	if env == nil {
		env = []string{} // nil would mean our own environment
	}
	attr := &os.ProcAttr{Dir: c.Dir, Env: env, Files: files, Sys: &sys}
	for try := 1; ; try++ {
		proc, err := os.StartProcess(path, c.Argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return proc, err
		}
		time.Sleep(busyPause)
	}
}

// closeOnExecEach marks the descriptors of this program one by one, also those
// that it was started with itself.
func closeOnExecEach() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // the table is bounded by our own limit
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// awaitEnd returns when pid has ended and leaves it to be reaped.
func awaitEnd(pid int) {
	const byPID = 1     // P_PID
	var info [16]uint64 // siginfo_t, 128 bytes at most
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info[0])), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// reap takes the exit status; only after ended.
func (c *child) reap() (code int, signal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	state, err := c.proc.Wait()
	if err != nil {
		return -1, ""
	}
	if signal := relayed(state.ExitCode()); c.stage && signal != "" {
		return -1, signal
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, unix.SignalName(ws.Signal())
	}
	return state.ExitCode(), ""
}

// group sends sig to the group of the child.
func (c *child) group(sig syscall.Signal) {
	now, err := unix.Getpgid(c.pid)
	if err != nil {
		now = c.pid // some systems no longer tell for a process that has ended
	}
	if target := groupTarget(c.pid, now, unix.Getpgrp()); target != 0 {
		_ = unix.Kill(target, sig) // gone is what we want
	}
}

// groupTarget is the argument of kill for the tree led by pid, whose group is
// now group: the group, the single process when the group is not its own, and 0
// (send nothing) when that would be everybody, init or ourselves.
func groupTarget(pid, group, own int) int {
	if pid <= 1 || pid == own {
		return 0
	}
	if group != pid {
		return pid
	}
	return -pid
}

// terminate asks every process of the tree to end. A stopped one is woken, else
// it would not hear.
func (c *child) terminate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if !c.stage { // else pid only passes the end on, and would take the program along
		c.group(unix.SIGTERM)
		c.group(unix.SIGCONT)
	}
	c.outside(unix.SIGTERM)
}

// signalBase is added to a signal's number in an exit status, as shells do.
const signalBase = 128

// relayed names the signal that an exit status tells of, or gives "". A program
// that ends with such a status itself is not told apart.
func relayed(code int) string {
	if code <= signalBase {
		return ""
	}
	return unix.SignalName(syscall.Signal(code - signalBase))
}

// kill ends every process of the tree that is found now. One that forks at that
// moment may slip through: callers look again until others is 0.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.group(unix.SIGKILL)
	c.outside(unix.SIGKILL)
}
