package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stageWord is the hidden first argument under which this program is its own
// helper inside a sandbox.
const stageWord = "__sandbox"

// mainArgs is the one thing that this package keeps of the process: the arguments that Main was called with.
var mainArgs atomic.Pointer[[]string]

// mainCalled tells whether the way from the beginning of this process leads through Main.
func mainCalled() bool {
	args := mainArgs.Load()
	return args != nil && slices.Equal(*args, ownArguments())
}

// ownArguments are those that this process was started with, its name left out.
func ownArguments() []string {
	const argumentsLimit = 4 << 20
	text := strings.TrimSuffix(string(firstBytes("/proc/self/cmdline", argumentsLimit)), "\x00")
	return strings.Split(text, "\x00")[1:]
}

// stageFailed is the exit status of a stage that could not do its orders; the
// cause goes over the wire.
const stageFailed = 125

// Main is called first of all by the program with its arguments, the program's
// name left out. When they are those of the helper inside a sandbox it does that
// work and tells the exit status; on success it does not return, since the
// connector's program takes the place of this one. It reads no variable and
// prints nothing. (This is so on Linux; elsewhere handled is always false.)
//
// Open starts no helper in a process in which Main was not called with the
// process's own arguments: a program that forgot to would run as itself in the
// place of its helper, and again in the place of that one's.
func Main(args []string) (code int, handled bool) {
	if len(args) == 0 || args[0] != stageWord {
		if mainArgs.Load() == nil || !mainCalled() {
			mainArgs.Store(new(slices.Clone(args)))
		}
		return 0, false
	}
	if len(args) > 1 && args[1] == tryConnect {
		return triedConnect(), true
	}
	// All restrictions belong to a thread, and exec takes those of the thread that
	// calls it.
	runtime.LockOSThread()
	unix.CloseOnExec(stageFD)
	w := &wire{fd: stageFD}
	code, err := runStage(w)
	if err != nil {
		r := report{Stage: "failed", Text: err.Error()}
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			r.Errno = int(errno)
		}
		if errors.Is(err, errStart) {
			r.Stage = "start"
		}
		_ = w.tell(r)
		return stageFailed, true
	}
	return code, true
}

// tryConnect asks for a connection that is never granted.
const tryConnect = "connect"

func triedConnect() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 2
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 1}); err != unix.EACCES {
		return 1
	}
	return 0
}

// errStart marks that the program itself could not be started.
var errStart = errors.New("the program cannot be started")

func runStage(w *wire) (int, error) {
	var o orders
	if err := unpack(w, &o); err != nil {
		return 0, fmt.Errorf("reading the orders: %w", err)
	}
	var fds []int
	if o.Forward {
		var err error
		if fds, err = openForward(o.Ports); err != nil {
			return 0, err
		}
	}
	if err := w.tell(report{Stage: "here"}, fds...); err != nil {
		return 0, err
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if _, err := w.Read(make([]byte, 1)); err != nil {
		return 0, err
	}
	if err := os.Chdir(string(o.Dir)); err != nil {
		return 0, fmt.Errorf("%w: working folder: %w", errStart, err)
	}
	for _, r := range o.Resources {
		if err := lower(0, r.Resource, r.Value); err != nil {
			return 0, fmt.Errorf("the limit on %s: %w", r.Name, err)
		}
	}
	o.Mark.put(0)
	if o.Guard {
		return guard(w, &o)
	}
	if err := bind(w, &o); err != nil {
		return 0, err
	}
	err := syscall.Exec(string(o.Path), stringsOf(o.Argv), stringsOf(o.Env))
	return 0, fmt.Errorf("%w: %w", errStart, err)
}

// bind puts the calling thread under the restrictions of o and reports it.
func bind(w *wire, o *orders) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if o.Landlock > 0 {
		if err := o.Paths.restrict(o.Landlock); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	questions, err := o.Calls.install()
	if err != nil {
		return fmt.Errorf("the filter for system calls: %w", err)
	}
	if questions < 0 {
		return w.tell(report{Stage: "bound"})
	}
	defer unix.Close(questions)
	return w.tell(report{Stage: "bound"}, questions)
}

// dropCapabilities leaves none, in no set.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// Refused where we lack the right to: then there is nothing to drop, or
		// no_new_privs keeps it from being gained.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// guard starts the program from a thread that is restricted, stays outside the
// restrictions itself, and ends with the program's status. When the parent is
// killed, or it is asked to itself, it ends all that descends from it.
func guard(w *wire, o *orders) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the reaper: %w", err)
	}
	// TERM goes to the program, not to its guard. It is caught, not ignored, since
	// an ignored signal stays ignored over exec.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	orphaned := make(chan os.Signal, 1)
	signal.Notify(orphaned, orphanSignal)
	ending := make(chan struct{})
	go func() {
		<-orphaned
		close(ending)
		endDescendants()
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	}()
	if err := bind(w, o); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(string(o.Path), stringsOf(o.Argv), &syscall.ProcAttr{
		Env: stringsOf(o.Env), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errStart, err)
	}
	_ = unix.Close(w.fd) // the program runs
	for _, fd := range []int{0, 1, 2} {
		_ = unix.Close(fd) // its streams end with it
	}
	code := await(pid)
	stayFor(ending)
	return code, nil
}

// orphanWait is far longer than the kernel takes from closing the files of a
// killed parent to telling its death.
const orphanWait = 200 * time.Millisecond

// stayFor keeps the guard until it is through with what the program left, if the
// parent is gone. A program that ends with its input ends a little before the
// parent's death is told, and is itself the first that is ended then: without
// this the guard would go with it, and the rest would live on.
func stayFor(ending <-chan struct{}) {
	for end := time.Now().Add(orphanWait); hasChildren() && time.Now().Before(end); {
		select {
		case <-ending:
		case <-time.After(endPause):
		}
	}
	select {
	case <-ending:
		select {} // ended by the other side, with all the rest
	default:
	}
}

// orphanSignal tells the guard that its parent is gone: the guard is started with
// it as the signal at the parent's death.
const orphanSignal = syscall.SIGUSR1

// await reaps until pid has ended and returns its status as a shell would tell it.
func await(pid int) int {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return stageFailed
		case got != pid:
		case ws.Signaled():
			return signalBase + int(ws.Signal())
		default:
			return ws.ExitStatus()
		}
	}
}
