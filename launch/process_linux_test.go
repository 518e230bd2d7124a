package launch

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// memoryOf gives a figure of /proc/PID/status in bytes.
func memoryOf(tb testing.TB, pid int, name string) int {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		tb.Fatalf("no %s in %s", name, status)
	}
	kib, _ := strconv.Atoi(string(found[1]))
	return kib << 10
}

// TestMemoryIsFlat sends large replies through a filter in a process of its
// own, over real pipes.
func TestMemoryIsFlat(t *testing.T) {
	p := start(t, "filter 10")
	defer p.end()
	p.greet()
	for range 50 {
		p.call("small", `{}`)
	}
	p.call("big", `{}`)
	idle := memoryOf(t, p.cmd.Process.Pid, "VmRSS")
	for range 3 {
		p.call("huge", `{}`)
		p.call("burst", `{"n":1000}`)
	}
	peak := memoryOf(t, p.cmd.Process.Pid, "VmHWM")
	t.Logf("after a reply of 1 MiB %.1f MiB, peak with replies of 32 MiB %.1f MiB", float64(idle)/(1<<20), float64(peak)/(1<<20))
	if peak-idle > 8<<20 { // the goal is 4 MiB; the test binary's collector is not the program's
		t.Errorf("the peak is %d bytes above", peak-idle)
	}
}
