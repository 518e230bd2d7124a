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
// to initialize against the server alone, in interleaved rounds, without and with
// the sandbox; and the memory that the launcher holds then.
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
	for _, mode := range []string{"none", "auto"} {
		b.Run(mode, func(b *testing.B) {
			var ours, theirs []time.Duration
			memory := 0
			for b.Loop() {
				alone, _ := firstAnswer(b, env, strings.TrimSpace(string(python)), work[0])
				through, rss := firstAnswer(b, env, self, "run", mode)
				theirs, ours, memory = append(theirs, alone), append(ours, through), max(memory, rss)
			}
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x-direct")
			b.ReportMetric(float64(median(ours).Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(memory)/1024, "MiB-resident")
		})
	}
}

// firstAnswer starts a server and waits for its answer to initialize; rss is what
// it holds then, in KiB, 0 where that is not known.
func firstAnswer(b *testing.B, env []string, name string, args ...string) (took time.Duration, rss int) {
	b.Helper()
	cmd := exec.Command(name, args...)
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
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
		if _, after, ok := strings.Cut(string(status), "VmRSS:"); ok {
			_, _ = fmt.Sscan(after, &rss)
		}
	}
	_ = in.Close()
	_ = cmd.Wait()
	return took, rss
}
