package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// begin starts the program with its limits and its mark in place before its
// first instruction: the kernel stops a traced child right after execve, we set
// them from outside and let go. So no helper program has to run in between, and
// none has to be shipped. Where tracing is refused (hardened kernels, some
// containers) they are set a moment after the start instead, which
// limitsNotHeld says where it can be known. A program that is setuid or carries
// capabilities runs without them when it is started traced: wanted here, but a
// back end that needs one (an old bubblewrap) must start it otherwise.
//
// It runs on the bound thread: the tracer is a thread too.
func (c *child) begin(path string, cmd Command, files [3]*os.File, l Limits) error {
	m, err := newMark()
	if err != nil {
		return err
	}
	c.mark = m
	traced := true
	c.proc, err = startProcess(path, cmd, files[:], syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Ptrace: true})
	if errors.Is(err, syscall.EPERM) {
		traced = false
		c.proc, err = startProcess(path, cmd, files[:], syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	}
	if err != nil {
		return err
	}
	c.pid = c.proc.Pid
	if traced && !stopped(c.pid) {
		return nil // killed from outside before it could run
	}
	if err := c.limit(l); err != nil {
		_ = c.proc.Kill()
		_, _ = c.proc.Wait()
		return err
	}
	if traced {
		_ = syscall.PtraceDetach(c.pid) // fails only when it has been killed meanwhile
	}
	return nil
}

// stopped waits for the stop after execve; false means that the child has ended.
// Nothing is reaped.
func stopped(pid int) bool {
	const trapped, stop = 4, 5 // CLD_TRAPPED, CLD_STOPPED
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && (info.Code == trapped || info.Code == stop)
		}
	}
}

// limit sets the limits and the mark of the stopped child.
func (c *child) limit(l Limits) error {
	for _, r := range l.resources() {
		err := lower(c.pid, r.Resource, r.Value)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return &UnenforceableError{What: "the limit on " + r.Name, Why: err.Error()}
		}
	}
	c.mark.put(c.pid)
	return nil
}

type resource struct {
	Name     string
	Resource int
	Value    uint64
}

// resources are the limits that are asked for; no core dumps, always: a dump
// would hold the secrets of the environment.
func (l Limits) resources() []resource {
	all := []resource{
		{"memory", unix.RLIMIT_DATA, uint64(max(l.Memory, 0))},
		{"file size", unix.RLIMIT_FSIZE, uint64(max(l.FileSize, 0))},
		{"open files", unix.RLIMIT_NOFILE, uint64(max(l.Files, 0))},
		{"processes", unix.RLIMIT_NPROC, uint64(max(l.Processes, 0))},
		{"processor time", unix.RLIMIT_CPU, uint64((max(l.CPU, 0) + time.Second - 1) / time.Second)},
	}
	asked := []resource{{"core dumps", unix.RLIMIT_CORE, 0}}
	for _, r := range all {
		if r.Value > 0 {
			asked = append(asked, r)
		}
	}
	return asked
}

// lower sets both limits to value, or leaves the hard one where that is lower.
func lower(pid, res int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, res, nil, &old); err != nil {
		return err
	}
	value = min(value, old.Max)
	return unix.Prlimit(pid, res, &unix.Rlimit{Cur: value, Max: value}, nil)
}

// limitsNotHeld lists what of l does not hold here.
func limitsNotHeld(l Limits) []string {
	var list []string
	if l.Processes > 0 && os.Geteuid() == 0 {
		list = append(list, "number of processes: the limit does not bind root")
	}
	if scope := yamaScope(); scope == "3" || scope == "2" && os.Geteuid() != 0 {
		list = append(list, "limits in the first moment: this kernel lets us set them only after the start")
	}
	return list
}

func yamaScope() string {
	scope := firstBytes("/proc/sys/kernel/yama/ptrace_scope", 1)
	return string(scope)
}

func closeOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		closeOnExecEach() // kernels before 5.11
	}
}

func wrongFormat(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

// newMark draws the mark of one tree.
func newMark() (mark, error) {
	var own unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &own); err != nil {
		return mark{}, fmt.Errorf("reading our own limits: %w", err)
	}
	return drawMark(own.Max), nil
}
