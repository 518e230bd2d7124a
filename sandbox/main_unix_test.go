//go:build linux || darwin

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awkward are the children of the tests: this binary, started again with
// "child" and one of these names.
var awkward = map[string]func(args []string){
	"exit":     func(args []string) { code, _ := strconv.Atoi(args[0]); syscall.Exit(code) },
	"stubborn": func([]string) { signal.Ignore(syscall.SIGTERM); ready() },
	"polite":   polite,
	"flood":    flood,
	"mute":     func([]string) { ready0(); os.Stdout.Close(); os.Stderr.Close(); forever() },
	"echo":     echo,
	"double":   double,
	"crowded":  crowded,
}

// What runs inside a sandbox has exactly the environment of its test, so it ends by
// syscall.Exit: os.Exit of a race build waits a second, which GORACE takes away
// elsewhere.
func TestMain(m *testing.M) {
	if code, handled := Main(os.Args[1:]); handled {
		syscall.Exit(code)
	}
	maps.Copy(awkward, awkwardHere)
	if err := prepareHere(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == "child" {
		awkward[os.Args[2]](os.Args[3:])
		syscall.Exit(0)
	}
	os.Exit(run(m))
}

// run runs the tests. What this machine enforces is found out once for all of them.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "skald-sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	machineDir = dir
	return m.Run()
}

// machineDir keeps what this machine enforces, between the tests of this process.
var machineDir string

func ready0() { fmt.Println("ready") }

func ready() { ready0(); forever() }

// forever outlives every limit of the tests, but not a broken test run.
func forever() { time.Sleep(5 * time.Minute) }

// polite writes a file on TERM, as a program does that saves its state.
func polite(args []string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ready0()
	<-term
	if err := os.WriteFile(args[0], []byte("saved"), 0o600); err != nil {
		os.Exit(1)
	}
}

func flood(args []string) {
	n, _ := strconv.ParseInt(args[0], 10, 64)
	block := []byte(strings.Repeat("x", 1<<16))
	for ; n > 0; n -= int64(len(block)) {
		if _, err := os.Stdout.Write(block[:min(n, int64(len(block)))]); err != nil {
			os.Exit(9)
		}
	}
	fmt.Print("\nlast line")
}

func echo([]string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(in.Text())
	}
}

// double leaves a process behind that has left parent, group and session, ignores
// TERM and holds standard output: double → middle → stubborn. It ends itself with
// its input.
func double(args []string) {
	next := []string{"double", "middle"}
	if len(args) > 0 {
		next = []string{"stubborn"}
	}
	cmd := exec.Command(os.Args[0], append([]string{"child"}, next...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if len(args) == 0 {
		_ = cmd.Wait()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// crowded starts a process where the limit of processes is reached.
func crowded([]string) {
	// A Go program that can make no thread either crashes, so make some first.
	var up, down sync.WaitGroup
	up.Add(16)
	for range 16 {
		down.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			up.Done()
			up.Wait()
		})
	}
	down.Wait()
	if os.Geteuid() == 0 { // the limit does not bind root
		if err := syscall.Setuid(65534); err != nil {
			fmt.Println(err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		fmt.Println(err)
	}
	s, _ := New(None)
	_, err := s.Run(context.Background(), Policy{}, Command{Argv: []string{"/bin/sh", "-c", "exit"}, Dir: "/"}, nil)
	fmt.Println(err)
}

// childOf is the command that starts this binary as an awkward child with exactly
// env.
func childOf(t testing.TB, env []string, args ...string) Command {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe, err = filepath.EvalSymlinks(exe)
	if err != nil {
		t.Fatal(err)
	}
	return Command{Argv: append([]string{exe, "child"}, args...), Dir: t.TempDir(), Env: env}
}

func shell(t testing.TB, env []string, script string, args ...string) Command {
	t.Helper()
	return Command{Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Dir: t.TempDir(), Env: append([]string{"PATH=/usr/bin:/bin"}, env...)}
}

// runIn and startIn grant the working folder, which is the test's own.
func runIn(ctx context.Context, s *Sandbox, p Policy, c Command, stdin io.Reader) (Result, error) {
	p.Own = append(p.Own, c.Dir)
	return s.Run(ctx, p, c, stdin)
}

func startIn(ctx context.Context, s *Sandbox, p Policy, c Command) (*Process, error) {
	p.Own = append(p.Own, c.Dir)
	return s.Start(ctx, p, c)
}

// openMode opens a real back end, or skips where this machine has it not.
func openMode(t testing.TB, mode Mode) *Sandbox {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Mode: mode, Self: exe, Dir: machineDir, Path: "/usr/bin:/bin"})
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" && runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return s
}

// eachSandbox runs one test under every back end of this machine: what a caller
// sees of a process does not depend on how it is confined.
func eachSandbox(t *testing.T, test func(t *testing.T, s *Sandbox)) {
	for _, mode := range []Mode{None, Landlock, Bubblewrap, Combined} {
		t.Run(string(mode), func(t *testing.T) { test(t, openMode(t, mode)) })
	}
}

func plainSandbox(t testing.TB) *Sandbox {
	t.Helper()
	s, err := New(None)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits for ok, which another process brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// within fails when the end took longer than limit.
func within(t testing.TB, elapsed, limit time.Duration) {
	t.Helper()
	if elapsed > limit {
		t.Errorf("took %v, more than %v", elapsed, limit)
	}
}
