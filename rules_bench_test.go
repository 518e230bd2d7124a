package skaldconnectors_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchTable: each row of the table that `make bench` ends with names benchmarks that exist, and says what is met.
func TestBenchTable(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	if text, err := exec.Command("go", "build", "-o", table, "./testdata/bench/table").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	names, err := exec.Command(table, "-benchmarks").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(names)) {
		dir, bench, _ := strings.Cut(strings.TrimSpace(name), ".")
		bench, _, _ = strings.Cut(bench, "/")
		files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		found := false
		for _, f := range files {
			src, err := os.ReadFile(f)
			found = found || err == nil && strings.Contains(string(src), "func Benchmark"+bench+"(b *testing.B)")
		}
		if !found {
			t.Errorf("%s has no benchmark %s", dir, bench)
		}
	}
	cmd := exec.Command(table)
	cmd.Stdin = strings.NewReader(`pkg: skald-connectors/launch
BenchmarkSmallCall/secrets=0-2   60  1.10 ratio  1.40 p99ratio  1.70 cpuratio
BenchmarkSmallCall/secrets=10-2  60  1.20 ratio  1.20 p99ratio  1.30 cpuratio
BenchmarkNotifications/burst/secrets=0-8  60  0.5 ratio
BenchmarkInspect/small/scan 10 100 ns/op 400 MB/s
BenchmarkInspect/small/unmarshal 10 100 ns/op 10 MB/s
BenchmarkInspect/1MiB/scan 10 100 ns/op 400 MB/s
PASS
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string]string{
		"small call, median  ": "1.20 | ≤ 1.3    | ≤ 1.5    | met", "small call, p99": "1.40 | ≤ 1.3    | ≤ 1.5    | missed",
		"processor time": "1.70 | ≤ 1.35   | ≤ 1.6    | WORSE", "notifications a second, one": "2.00 | ≥ 1      | ≥ 0.85   | met",
		"inspection, small": "40.00 | ≥ 20     |          | met", "inspection, 1 MiB": "| not run", "info, cold": "| not run",
	} {
		row := ""
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "| "+job) {
				row = line
			}
		}
		if !strings.Contains(row, want) {
			t.Errorf("%s: %q does not hold %q", job, row, want)
		}
	}
}
