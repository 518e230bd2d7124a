//go:build linux

package main

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stubborn is put in front of the test server: it takes no notice of the end of
// its input and of TERM, and leaves children in sessions of their own that hold
// its pipes.
const stubborn = `
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", os.path.abspath(__file__)])
        os._exit(0)
`

// TestStubbornConnectorsEnd ends sessions in five ways, side by side, with a
// connector that does all it can to stay.
func TestStubbornConnectorsEnd(t *testing.T) {
	needPython(t)
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	market := hostileMarket(t, shipped{id: "stubborn", files: map[string]string{"server.py": stubborn + string(server) + "\nwhile True: time.sleep(60)\n"}})
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+market)
	p.do("install", "stubborn", "--yes")
	ends := []struct {
		name string
		end  func(*serving)
	}{
		{"end of input", func(s *serving) { _ = s.in.Close() }},
		{"TERM", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }},
		{"INT", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGINT) }},
		{"HUP", func(s *serving) { _ = s.cmd.Process.Signal(syscall.SIGHUP) }},
		{"KILL", func(s *serving) { _ = s.cmd.Process.Kill() }},
		{"TERM twice", func(s *serving) {
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			time.Sleep(100 * time.Millisecond) // two at once are one
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
		}},
	}
	all := make([]*serving, len(ends))
	for i := range ends {
		all[i] = p.run("stubborn")
		all[i].greet()
	}
	if left := p.processes(); len(left) < len(ends)*3 {
		t.Errorf("%d processes run, fewer than expected: %q", len(left), left)
	}
	began := time.Now()
	var wait sync.WaitGroup
	took := make([]time.Duration, len(ends))
	for i, e := range ends {
		e.end(all[i])
		wait.Go(func() { all[i].end(); took[i] = time.Since(began) })
	}
	wait.Wait()
	for i, e := range ends {
		if limit := 12 * time.Second; took[i] > limit {
			t.Errorf("%s: it ended after %s", e.name, took[i])
		}
	}
	if took[5] > 4*time.Second {
		t.Errorf("a second signal took %s", took[5])
	}
	for len(p.processes()) > 0 {
		if time.Since(began) > 16*time.Second {
			t.Fatalf("left: %s", strings.Join(p.processes(), "\n"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
