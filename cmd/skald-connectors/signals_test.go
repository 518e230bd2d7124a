package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInterruptOfALookUp: what only looks something up watches for signals from when it waits for the network.
func TestInterruptOfALookUp(t *testing.T) {
	self, err := exec.LookPath(program) // testscript put the test binary there
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	for _, args := range [][]string{{"search", "mail"}, {"info", "mail"}, {"--json", "info", "mail"}} {
		dir := t.TempDir()
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "SKALD_CONNECTORS_HOME="+filepath.Join(dir, "home"), "SKALD_CONNECTORS_INDEX="+server.URL)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			_ = cmd.Process.Kill() // else the server waits for it
			_ = cmd.Wait()
			t.Skip("no interrupts here:", err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%q: exit %d: %s", args, code, &errs)
		}
	}
}

func TestSignalsAreWatchedLazily(t *testing.T) {
	ctx, stop := withSignals(context.Background(), []string{"info", "mail"})
	started := false
	w := ctx.(*watching)
	begin := w.start
	w.start = func() { started = true; begin() }
	child, cancel := context.WithCancelCause(ctx)
	if !started {
		t.Error("a context made of it is not watched")
	}
	cancel(errInterrupted)
	if ctx.Err() != nil || !errors.Is(context.Cause(child), errInterrupted) {
		t.Error("the child's end is the parent's")
	}
	stop()
	<-ctx.Done()
	late, stop := withSignals(context.Background(), []string{"version"})
	stop()
	<-late.Done() // watches nothing any more, and is over
}
