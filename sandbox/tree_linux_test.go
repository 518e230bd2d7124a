package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// awkwardHere are the awkward children that exist on Linux only.
var awkwardHere = map[string]func(args []string){"parent": parent, "nested": nested, "untraced": untraced, "holder": holder}

// prepareHere readies this process before any test.
func prepareHere() error {
	if os.Getenv(isolatedMark) == "new" {
		return raiseLoopback()
	}
	return nil
}

// marker is a variable that every process of one test carries.
func marker() string { return fmt.Sprintf("SKALD_TEST_MARKER=%d", rand.Uint64()) }

// carrying lists the living processes with marker in their environment.
func carrying(t testing.TB, marker string) []int {
	t.Helper()
	if !living(os.Getpid()) {
		t.Fatal("processes cannot be listed")
	}
	return carryingNow(marker)
}

func carryingNow(marker string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if bytes.Contains(env, []byte(marker)) && living(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func nothingLeft(t testing.TB, marker string) {
	t.Helper()
	if pids := carrying(t, marker); len(pids) > 0 {
		t.Errorf("still there: %v", pids)
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func TestEscapedGrandchildIsEnded(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		m := marker()
		p := Policy{Limits: Limits{Grace: 50 * time.Millisecond}}
		got, err := runIn(t.Context(), s, p, childOf(t, []string{m}, "double"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Code != 0 || got.Left != 0 {
			t.Errorf("got %+v", got)
		}
		within(t, got.Elapsed, 5*time.Second)
		nothingLeft(t, m)
	})
}

func TestEscapedGrandchildOfProcess(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		m := marker()
		p := start(t, s, childOf(t, []string{m}, "double"))
		line(t, p, "ready") // written by the grandchild
		if got := p.Close(Ladder{Stdin: 10 * time.Second}); got.Code != 0 || got.Left != 0 {
			t.Errorf("got %+v", got)
		}
		nothingLeft(t, m)
		if _, err := io.ReadAll(p.Stdout); err != nil {
			t.Error(err)
		}
	})
}

func TestForkStormIsEnded(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		m := marker()
		storm := `storm() { if [ $1 = 0 ]; then exec setsid sleep 300; fi; storm $(($1-1)) & storm $(($1-1)) & wait; }
trap '' TERM; echo ready; storm 6`
		p := start(t, s, shell(t, []string{m}, storm))
		line(t, p, "ready")
		eventually(t, "the storm has begun", func() bool { return len(carrying(t, m)) > 10 })
		got := p.Close(Ladder{})
		if got.Signal != "SIGKILL" || got.Left != 0 {
			t.Errorf("got %+v", got)
		}
		nothingLeft(t, m)
	})
}

func TestNothingIsEverLeft(t *testing.T) {
	m := marker()
	scripts := []string{
		"exit 0",
		"sleep 300 & exit 0",
		"setsid sleep 300 & exit 1",
		"(setsid sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 &) ; kill -KILL $$",
		"trap '' TERM; setsid setsid sleep 300 & wait",
	}
	s := plainSandbox(t)
	rounds := make(chan int)
	var wg sync.WaitGroup
	for range 10 { // at once, so that trees which are not kept apart would end each other
		wg.Go(func() {
			for round := range rounds {
				own := fmt.Sprintf("%s.%d.", m, round)
				p := Policy{Limits: Limits{Wall: 200 * time.Millisecond, Grace: 20 * time.Millisecond}}
				got, err := runIn(t.Context(), s, p, shell(t, []string{own}, scripts[round%len(scripts)]), nil)
				if err != nil || got.Left != 0 {
					t.Errorf("round %d: %+v, %v", round, got, err)
				}
				nothingLeft(t, own)
			}
		})
	}
	for round := range 50 {
		rounds <- round
	}
	close(rounds)
	wg.Wait()
	nothingLeft(t, m)
}

func TestTreesAreKeptApart(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		m := marker()
		stays := start(t, s, childOf(t, []string{m}, "echo"))
		if got, err := runIn(t.Context(), s, Policy{}, childOf(t, nil, "exit", "5"), nil); err != nil || got.Code != 5 {
			t.Fatalf("got %+v, %v", got, err)
		}
		if _, err := io.WriteString(stays.Stdin, "alive\n"); err != nil {
			t.Fatal(err)
		}
		line(t, stays, "alive")
	})
}

func TestDescriptorsAreNotInherited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	// As if this program had been started with it.
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	got, err := plainSandbox(t).Run(t.Context(), Policy{}, shell(t, nil, "ls /proc/$$/fd"), nil)
	if err != nil {
		t.Fatal(err)
	}
	// 10 is the shell's own copy where it keeps one.
	if fds := strings.Fields(string(got.Stdout)); len(fds) != 3 || strings.Join(fds, "") != "012" {
		t.Errorf("descriptors %v", fds)
	}
	if err := exercise(closeOnExecEach, w); err != nil {
		t.Error(err)
	}
}

// exercise checks that mark sets close-on-exec on f.
func exercise(mark func(), f *os.File) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		return err
	}
	mark()
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		return fmt.Errorf("descriptor stays open over exec: %d, %w", flags, err)
	}
	return nil
}

func TestLimitsHoldFromTheFirstInstruction(t *testing.T) {
	p := Policy{Limits: Limits{Memory: 1 << 30, FileSize: 1 << 20, Files: 77, Processes: 500, CPU: 1500 * time.Millisecond}}
	got, err := plainSandbox(t).Run(t.Context(), p, shell(t, nil, "cat /proc/$$/limits"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Max core file size": "0", "Max data size": "1073741824", "Max file size": "1048576",
		"Max open files": "77", "Max processes": "500", "Max cpu time": "2"} {
		if !hasLimit(string(got.Stdout), name, want) {
			t.Errorf("%s is not %s:\n%s", name, want, got.Stdout)
		}
	}
}

func hasLimit(table, name, want string) bool {
	for l := range strings.Lines(table) {
		if rest, ok := strings.CutPrefix(l, name); ok {
			f := strings.Fields(rest)
			return f[0] == want && f[1] == want
		}
	}
	return false
}

func TestFileSizeLimitBites(t *testing.T) {
	p := Policy{Limits: Limits{FileSize: 4096}}
	got, err := plainSandbox(t).Run(t.Context(), p, shell(t, nil, "exec dd if=/dev/zero of=big bs=8192 count=1"), nil)
	if err != nil || got.Signal != "SIGXFSZ" && got.Code == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// untraced runs a command where the kernel refuses to trace, as some containers
// do, and prints the limits that it had.
func untraced([]string) {
	if err := refuseTracing(); err != nil {
		fmt.Println("skip:", err)
		return
	}
	s, _ := New(None)
	c := Command{Argv: []string{"/bin/sh", "-c", "read go; cat /proc/$$/limits; setsid sleep 300 & exit 0"}, Dir: "/", Env: append(os.Environ(), "PATH=/usr/bin:/bin")}
	// The input arrives when the limits are in place.
	r, err := s.Run(context.Background(), Policy{Limits: Limits{Files: 77, Grace: time.Millisecond}}, c, strings.NewReader("go\n"))
	fmt.Printf("%s\nerr %v left %d\n", r.Stdout, err, r.Left)
}

// refuseTracing installs a filter for all threads under which ptrace gives EPERM.
func refuseTracing() error {
	const load, jumpEqual, answer = 0x20, 0x15, 0x06 // BPF: word at an offset, compare, return
	code := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: jumpEqual, Jf: 1, K: unix.SYS_PTRACE},
		{Code: answer, K: 0x00050000 | uint32(unix.EPERM)}, // SECCOMP_RET_ERRNO
		{Code: answer, K: 0x7fff0000},                      // SECCOMP_RET_ALLOW
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	const modeFilter, allThreads = 1, 1
	// All threads get no_new_privs together with the filter.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, modeFilter, allThreads, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}

func TestWithoutTracing(t *testing.T) {
	m := marker()
	got, err := plainSandbox(t).Run(t.Context(), Policy{}, childOf(t, []string{m}, "untraced"), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := string(got.Stdout)
	if why, ok := strings.CutPrefix(out, "skip: "); ok {
		t.Skip("no filter here: " + why)
	}
	if got.Code != 0 || !hasLimit(out, "Max open files", "77") || !hasLimit(out, "Max core file size", "0") || !strings.HasSuffix(out, "\nerr <nil> left 0\n") {
		t.Errorf("got %s%s", out, got.Stderr)
	}
	nothingLeft(t, m)
}

// parent starts an echo and a stubborn child from a thread that then dies, shows
// that the echo lives, and waits for its own end.
func parent(args []string) {
	s, _ := New(None)
	exe := os.Args[0]
	began := make(chan *Process)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p, err := s.Start(context.Background(), Policy{}, Command{Argv: []string{exe, "child", "echo"}, Dir: "/", Env: args})
		if err != nil {
			os.Exit(1)
		}
		began <- p
	}()
	p := <-began
	if _, err := s.Start(context.Background(), Policy{}, Command{Argv: []string{exe, "child", "stubborn"}, Dir: "/", Env: args}); err != nil {
		os.Exit(1)
	}
	runtime.GC()
	fmt.Fprintln(p.Stdin, "alive")
	fmt.Print(bufio.NewReader(p.Stdout).ReadString('\n'))
	fmt.Println()
	forever()
}

func TestKilledParentTakesTheChildAlong(t *testing.T) {
	m := marker()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	proc, err := os.StartProcess(exe, []string{exe, "child", "parent", m}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(r).ReadString('\n'); err != nil || got != "alive\n" {
		t.Errorf("read %q, %v", got, err)
	}
	if pids := carrying(t, m); len(pids) != 2 {
		t.Errorf("processes %v, want two", pids)
	}
	if err := proc.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = proc.Wait()
	eventually(t, "both children are gone", func() bool { return len(carrying(t, m)) == 0 })
}

// nested is a program of ours inside a tree of ours: it leaves an escaped
// process behind that its own sandbox would find, and does not end it.
func nested(args []string) {
	s, _ := New(None)
	_, err := s.Start(context.Background(), Policy{}, Command{Argv: []string{os.Args[0], "child", "double"}, Dir: "/", Env: os.Environ()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ready()
}

func TestOuterTreeHoldsInnerTrees(t *testing.T) {
	m := marker()
	p := start(t, plainSandbox(t), childOf(t, []string{m}, "nested"))
	line(t, p, "ready")
	eventually(t, "the escaped process is there", func() bool { return len(carrying(t, m)) >= 2 })
	if got := p.Close(Ladder{}); got.Left != 0 {
		t.Errorf("got %+v", got)
	}
	nothingLeft(t, m)
}

func TestMarks(t *testing.T) {
	outer := drawMark(unix.RLIM_INFINITY)
	inner := drawMark(outer.Hard)
	if inner.Hard != outer.Hard || inner.Soft >= inner.Hard || !inner.Outer || outer.Outer {
		t.Errorf("outer %+v, inner %+v", outer, inner)
	}
	if got := drawMark(1); got != (mark{}) {
		t.Errorf("no room, but %+v", got)
	}
	if outer.on(os.Getpid()) || (mark{}).on(os.Getpid()) {
		t.Error("this program carries a mark")
	}
}
