package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// The filter's process is this test binary under another role, with the server that it
// starts in a second variable.
const roleVariable, echoVariable = "SKALD_LAUNCH_TEST_ROLE", "SKALD_LAUNCH_TEST_ECHO"

func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(roleVariable), " "); role {
	case "filter":
		n, _ := strconv.Atoi(arg)
		filter(n)
	default:
		code := m.Run()
		removeAnchors()
		os.Exit(code)
	}
}

// filter is the launcher's filter with n secrets.
func filter(n int) {
	up := startProgram(exec.Command(os.Getenv(echoVariable)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := New(Options{Name: "bench", Connector: "bench", Client: os.Stdin, Out: os.Stdout, Log: io.Discard, Receipts: io.Discard,
		Now: time.Now, Redactor: keystore.NewRedactor(secrets(n)),
		Upstream: &Upstream{Input: up.stdin, Output: up.stdout, Stop: func() { up.stdin.Close(); up.cmd.Wait() }}})
	if f := os.Getenv("SKALD_LAUNCH_TEST_PROFILE"); f != "" {
		out, _ := os.Create(f)
		pprof.StartCPUProfile(out)
		defer pprof.StopCPUProfile()
	}
	s.Run(ctx)
}

// secrets gives n values of 40 characters.
func secrets(n int) (hs []keystore.Handle) {
	for i := range n {
		value := fmt.Sprintf("sk-%03d-%s", i, strings.Repeat(string(rune('A'+i%26))+"x7"+string(rune('a'+i/26)), 8))
		hs = append(hs, keystore.Handle{Name: fmt.Sprintf("KEY_%d", i), Value: keystore.NewSecret(value), Secret: true})
	}
	return hs
}
