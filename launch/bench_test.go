package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The figures are ratios to an anchor that runs in the same rounds (A B A B …): relay,
// a Go program that only copies bytes between the same processes. Where there is a C
// compiler, cratio is the one to a relay in C.

// peer is a started process with its pipes.
type peer struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	in     *bufio.Reader
	id     int
}

// start starts what a client speaks to: echo, relay, c relay, or filter N.
func start(tb testing.TB, role string) *peer {
	tb.Helper()
	a, err := buildAnchors()
	if err != nil {
		tb.Fatal(err)
	}
	switch role {
	case "echo":
		return startProgram(exec.Command(a.echo))
	case "relay":
		return startProgram(exec.Command(a.relay, a.echo))
	case "c relay":
		return startProgram(exec.Command(a.inC, a.echo))
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, echoVariable+"="+a.echo)
	return startProgram(cmd)
}

func startProgram(cmd *exec.Cmd) *peer {
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	theirIn.Close()
	theirOut.Close()
	return &peer{cmd: cmd, stdin: stdin, stdout: stdout, in: bufio.NewReaderSize(stdout, 1<<16)}
}

// used is the processor time of its threads so far, without that of its children; 0 where the system does not tell.
func (p *peer) used() (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, thread := range threads {
		var ns int64
		if text, err := os.ReadFile(thread); err == nil {
			_, _ = fmt.Sscan(string(text), &ns)
		}
		sum += time.Duration(ns)
	}
	return sum
}

func (p *peer) end() {
	p.stdin.Close()
	io.Copy(io.Discard, p.stdout)
	p.cmd.Wait()
}

// call sends one request and reads until its answer; it gives the lines read.
func (p *peer) call(tool, arguments string) (lines int) {
	p.id++
	fmt.Fprintf(p.stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", p.id, tool, arguments)
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, p.id)
	for {
		head, err := p.in.Peek(len(answer))
		if err != nil {
			panic(err)
		}
		done := string(head) == answer
		for {
			_, err := p.in.ReadSlice('\n')
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull {
				panic(err)
			}
		}
		if lines++; done {
			return lines
		}
	}
}

func (p *peer) greet() {
	p.id++
	fmt.Fprintf(p.stdin, `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n", p.id)
	if _, err := p.in.ReadString('\n'); err != nil {
		panic(err)
	}
}

// anchoredRoles are what is measured in turns: an anchor, the filter, and where it could
// be built a second anchor.
func anchoredRoles(b *testing.B, secrets int) []string {
	b.Helper()
	a, err := buildAnchors()
	if err != nil {
		b.Fatal(err)
	}
	roles := []string{"relay", fmt.Sprintf("filter %d", secrets)}
	if a.inC != "" {
		roles = append(roles, "c relay")
	}
	return roles
}

// compare runs one job on relay and filter in turns, and reports the medians'
// ratio, also to a relay in C; with p99 also that of the slowest hundredth.
func compare(b *testing.B, secrets int, times int, job func(p *peer)) {
	b.Helper()
	roles := anchoredRoles(b, secrets)
	var peers []*peer
	for _, role := range roles {
		p := start(b, role)
		p.greet()
		job(p)
		peers = append(peers, p)
	}
	taken := make([][]float64, len(roles))
	before := make([]time.Duration, len(roles))
	for i, p := range peers {
		before[i] = p.used()
	}
	for b.Loop() {
		for i, p := range peers {
			for range times {
				began := time.Now()
				job(p)
				taken[i] = append(taken[i], float64(time.Since(began).Nanoseconds()))
			}
		}
	}
	spent := make([]float64, len(roles))
	for i, p := range peers {
		spent[i] = float64(p.used() - before[i])
		slices.Sort(taken[i])
		p.end()
	}
	at := func(i int, share float64) float64 { return taken[i][int(float64(len(taken[i]))*share)] }
	b.ReportMetric(at(1, .5)/at(0, .5), "ratio")
	b.ReportMetric(at(1, .99)/at(0, .99), "p99ratio")
	if spent[0] > 0 {
		b.ReportMetric(spent[1]/spent[0], "cpuratio")
	}
	if len(roles) > 2 {
		b.ReportMetric(at(1, .5)/at(2, .5), "cratio")
	}
	b.ReportMetric(at(0, .5), "relay-ns")
	b.ReportMetric(at(1, .5), "filter-ns")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart is the time from the start of the process to the answer to
// initialize.
func BenchmarkStart(b *testing.B) {
	roles := anchoredRoles(b, 10)
	taken := make([][]float64, len(roles))
	for b.Loop() {
		for i, role := range roles {
			began := time.Now()
			p := start(b, role)
			p.greet()
			taken[i] = append(taken[i], float64(time.Since(began).Nanoseconds()))
			p.end()
		}
	}
	for i := range taken {
		slices.Sort(taken[i])
	}
	median := func(i int) float64 { return taken[i][len(taken[i])/2] }
	b.ReportMetric(median(1)/median(0), "ratio")
	if len(roles) > 2 {
		b.ReportMetric(median(1)/median(2), "cratio")
	}
	b.ReportMetric(0, "ns/op")
}

var secretCounts = []int{0, 1, 10, 100}

func BenchmarkSmallCall(b *testing.B) {
	for _, n := range secretCounts {
		b.Run(fmt.Sprintf("secrets=%d", n), func(b *testing.B) {
			compare(b, n, 200, func(p *peer) { p.call("small", `{"text":"ping"}`) })
		})
	}
}

func BenchmarkLargeReply(b *testing.B) {
	for _, n := range secretCounts {
		b.Run(fmt.Sprintf("secrets=%d", n), func(b *testing.B) {
			compare(b, n, 10, func(p *peer) { p.call("big", `{}`) })
		})
	}
}

func BenchmarkNotifications(b *testing.B) {
	for _, tool := range []string{"burst", "burst-batched"} {
		for _, n := range []int{0, 10} {
			b.Run(fmt.Sprintf("%s/secrets=%d", tool, n), func(b *testing.B) {
				compare(b, n, 2, func(p *peer) {
					if got := p.call(tool, `{"n":2000}`); got != 2001 {
						b.Fatalf("%d lines of 2001", got)
					}
				})
			})
		}
	}
}

// BenchmarkPeak is how much more memory the filter holds at its peak than when it is idle, after replies of 1 and of
// 32 MiB.
func BenchmarkPeak(b *testing.B) {
	for _, tool := range []string{"big", "huge"} {
		b.Run(tool, func(b *testing.B) {
			p := start(b, "filter 10")
			p.greet()
			p.call("small", `{}`)
			idle := p.holds("VmRSS:")
			for b.Loop() {
				p.call(tool, `{}`)
			}
			b.ReportMetric(float64(p.holds("VmHWM:")-idle)/1024, "MiB-more")
			b.ReportMetric(float64(p.holds("RssAnon:"))/1024, "MiB-own")
			p.end()
		})
	}
}

// holds is a line of the process's status in KiB; 0 where the system does not tell.
func (p *peer) holds(name string) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if _, after, ok := strings.Cut(string(status), name); ok {
		_, _ = fmt.Sscan(after, &kib)
	}
	return kib
}
