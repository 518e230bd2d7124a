//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkRunStart measures the time from the start of `run` to its first answer
// to initialize against the server alone, in interleaved rounds: a small server in
// Python without and with the sandbox, the reference server for Node without; and the
// memory that the launcher holds then, of its own and with the pages of its program
// file, which all sessions share.
func BenchmarkRunStart(b *testing.B) {
	needPython(b)
	dir := b.TempDir()
	self, market := buildFor(b, dir, "."), filepath.Join(dir, "market")
	if err := copyMarket("testdata/market", market); err != nil {
		b.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	env := append(os.Environ(), "SKALD_CONNECTORS_HOME="+home, "SKALD_CONNECTORS_INDEX="+market, "SKALD_CONNECTORS_KEYSTORE=keyfile", "THE_PASSWORD=correct horse")
	for _, mode := range []string{"none", "auto"} {
		runQuietly(b, env, self, "install", "mail", "--as", mode, "--yes", "--sandbox", mode, "--set", "MAIL_HOST=h", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD")
	}
	work, err := filepath.Glob(filepath.Join(home, "work", "none", "*", "server.py"))
	if err != nil || len(work) != 1 {
		b.Fatal(work, err)
	}
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() // behind a version manager's shim
	if err != nil {
		b.Fatal(err)
	}
	alone := []string{strings.TrimSpace(string(python)), work[0]}
	for _, mode := range []string{"none", "auto"} {
		b.Run(mode, func(b *testing.B) { compareStarts(b, env, alone, []string{self, "run", mode}) })
	}
	b.Run("node", func(b *testing.B) {
		alone := peerCommand(b, "mcp-server-everything", "@modelcontextprotocol/server-everything")
		market := hostileMarket(b, shipped{id: "everything", change: func(m map[string]any) {
			m["mcp_config"] = map[string]any{"command": alone[0], "args": alone[1:]}
		}})
		runQuietly(b, env, self, "--index", market, "install", "everything", "--yes", "--allow-command", "--sandbox", "none")
		compareStarts(b, env, alone, []string{self, "run", "everything"})
	})
}

func compareStarts(b *testing.B, env, alone, through []string) {
	b.Helper()
	var ours, theirs []time.Duration
	var most memory
	for b.Loop() {
		one, _ := firstAnswer(b, env, alone)
		two, held := firstAnswer(b, env, through)
		theirs, ours = append(theirs, one), append(ours, two)
		most = memory{own: max(most.own, held.own), all: max(most.all, held.all)}
	}
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x-direct")
	b.ReportMetric(float64(median(ours).Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(most.own)/1024, "MiB-own")
	b.ReportMetric(float64(most.all)/1024, "MiB-resident")
}

// memory is what a process holds, in KiB; 0 where that is not known.
type memory struct {
	own int // no other process has it
	all int // with the pages of files
}

func memoryOf(pid int) (m memory) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for name, to := range map[string]*int{"RssAnon:": &m.own, "VmRSS:": &m.all} {
		if _, after, ok := strings.Cut(string(status), name); ok {
			_, _ = fmt.Sscan(after, to)
		}
	}
	return m
}

// firstAnswer starts a server and waits for its answer to initialize.
func firstAnswer(b *testing.B, env, argv []string) (took time.Duration, held memory) {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n")
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	took = time.Since(began)
	held = memoryOf(cmd.Process.Pid)
	_ = in.Close()
	_ = cmd.Wait()
	return took, held
}
