// Command table reads what `go test -bench` prints, passes it on, and ends with one row for each goal of the project:
// what was measured, what is the goal, and where it must not get to.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// A goal is one row. Of several benchmarks that match, the worst counts.
type goal struct {
	job, anchor string
	bench       string // regular expression, anchored: package folder, dot, name of the benchmark without "Benchmark" and processors
	unit        string
	per         string  // the benchmark that the value is divided by, if any
	inverse     bool    // the value is a time and the goal a rate
	least       bool    // the goal is a lower bound
	goal, never float64 // never: 0 = none
}

var goals = []goal{
	{job: "small call, median", anchor: "io.Copy relay", bench: `launch.SmallCall/.*`, unit: "ratio", goal: 1.3, never: 1.5},
	{job: "small call, p99", anchor: "io.Copy relay", bench: `launch.SmallCall/.*`, unit: "p99ratio", goal: 1.3, never: 1.5},
	{job: "small call, median (stretch)", anchor: "relay in C", bench: `launch.SmallCall/.*`, unit: "cratio", goal: 1.3},
	{job: "processor time of a call", anchor: "io.Copy relay", bench: `launch.SmallCall/.*`, unit: "cpuratio", goal: 1.35, never: 1.6},
	{job: "1 MiB reply, 10 secrets", anchor: "io.Copy relay", bench: `launch.LargeReply/secrets=10`, unit: "ratio", goal: .7, never: 1},
	{job: "1 MiB reply, 100 secrets", anchor: "io.Copy relay", bench: `launch.LargeReply/secrets=100`, unit: "ratio", goal: .8, never: 1},
	{job: "notifications a second, one write each", anchor: "io.Copy relay", bench: `launch.Notifications/burst/.*`, unit: "ratio", inverse: true, least: true, goal: 1, never: .85},
	{job: "notifications a second, batched", anchor: "io.Copy relay", bench: `launch.Notifications/burst-batched/.*`, unit: "ratio", inverse: true, least: true, goal: .9, never: .6},
	{job: "memory of run, its own (MiB)", bench: `cmd/skald-connectors.RunStart/.*`, unit: "MiB-own", goal: 12},
	{job: "peak above idle, any reply (MiB)", bench: `launch.Peak/.*`, unit: "MiB-more", goal: 4},
	{job: "start behind run, Node's reference server", anchor: "the server", bench: `cmd/skald-connectors.RunStart/everything`, unit: "x-direct", goal: 1.15},
	{job: "sandbox, each back end (ms more)", anchor: "bare start", bench: `sandbox.Start/(landlock|bubblewrap)`, unit: "ms/more", goal: 25},
	{job: "sandbox with the filter (ms more)", anchor: "bare start", bench: `sandbox.Start/.*(judged|forwarder)`, unit: "ms/more", goal: 50},
	{job: "redaction, 100 secrets of 24 (MB/s)", bench: `keystore.Redact/bytes/100x24`, unit: "MB/s", least: true, goal: 3000},
	{job: "redaction, 10 secrets of 8 (MB/s)", bench: `keystore.Redact/bytes/10x8`, unit: "MB/s", least: true, goal: 900},
	{job: "inspection, small message", anchor: "json.Unmarshal", bench: `launch.Inspect/small/scan`, unit: "MB/s", per: `launch.Inspect/small/unmarshal`, least: true, goal: 20},
	{job: "inspection, 1 MiB", anchor: "json.Unmarshal", bench: `launch.Inspect/1MiB/scan`, unit: "MB/s", per: `launch.Inspect/1MiB/unmarshal`, least: true, goal: 20},
	{job: "verify a tree of 10,000 files", anchor: "raw hash loop", bench: `catalog.Verify`, unit: "x/raw", goal: 1.3},
	{job: "search, cold, 10,000 entries", anchor: "empty test program", bench: `fetch.ColdProcess/10000/.*`, unit: "ratio", goal: 2.5},
	{job: "search, cold, 100,000 entries", anchor: "empty Go process", bench: `cmd/skald-connectors.Cold/search.*`, unit: "x-empty", goal: 7},
	{job: "info, cold, 100,000 entries", anchor: "empty Go process", bench: `cmd/skald-connectors.Cold/info.*`, unit: "x-empty", goal: 1.7},
	{job: "update check (304)", anchor: "curl's bare 304", bench: `fetch.UpdateCheck/.*`, unit: "ratio", goal: 1.1},
	{job: "check the index, build its cache", anchor: "encoding/json", bench: `fetch.BuildCache`, unit: "ratio", goal: .5},
	{job: "memory meanwhile, whole process", anchor: "the index", bench: `fetch.PeakMemory/.*`, unit: "memory/index", goal: 1.6},
	{job: "size of the cache", anchor: "the index", bench: `fetch.BuildCache`, unit: "cache/index", goal: .25},
	{job: "download of 18 connectors, 32 at a time", anchor: "curl --parallel", bench: `fetch.Install/parallel=32`, unit: "ratio", goal: .85},
	{job: "one connector over TLS", anchor: "one by one", bench: `fetch.Install/one_connector,_TLS,_against_one_by_one`, unit: "ratio", goal: .55},
}

// figures are the values that were read: package.benchmark → unit → value.
type figures map[string]map[string]float64

var processors = regexp.MustCompile(`-\d+$`)

// line takes in one line of output; pkg is the folder of the package that it belongs to.
func (f figures) line(text string, pkg *string) {
	if name, ok := strings.CutPrefix(text, "pkg: "); ok {
		_, *pkg, _ = strings.Cut(strings.TrimSpace(name), "/")
	}
	words := strings.Fields(text)
	if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
		return
	}
	name := *pkg + "." + processors.ReplaceAllString(strings.TrimPrefix(words[0], "Benchmark"), "")
	f[name] = map[string]float64{}
	for i := 2; i+1 < len(words); i += 2 {
		if v, err := strconv.ParseFloat(words[i], 64); err == nil {
			f[name][words[i+1]] = v
		}
	}
}

// worst is the worst value of the benchmarks that g means.
func (f figures) worst(g goal) (worst float64, found bool) {
	want := regexp.MustCompile("^" + g.bench + "$")
	for name, units := range f {
		v, ok := units[g.unit]
		if !ok || !want.MatchString(name) {
			continue
		}
		if g.per != "" {
			by := f[g.per][g.unit]
			if by == 0 {
				continue // it was not run
			}
			v /= by
		}
		if g.inverse {
			v = 1 / v
		}
		if !found || g.least && v < worst || !g.least && v > worst {
			worst, found = v, true
		}
	}
	return worst, found
}

// verdict says in a word how far a value is from what was set.
func (g goal) verdict(v float64) string {
	beyond := func(bound float64) bool { return g.least && v < bound || !g.least && v > bound }
	switch {
	case !beyond(g.goal):
		return "met"
	case g.never != 0 && beyond(g.never):
		return "WORSE THAN EVER ALLOWED"
	}
	return "missed"
}

func (g goal) bound(v float64) string {
	if v == 0 {
		return ""
	}
	return map[bool]string{true: "≥ ", false: "≤ "}[g.least] + strconv.FormatFloat(v, 'g', 4, 64)
}

func run(in io.Reader, out io.Writer) error {
	got, pkg := figures{}, ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		got.line(lines.Text(), &pkg)
	}
	fmt.Fprintf(out, "\n| %-42s | %-18s | %9s | %-8s | %-8s | |\n|%s|%s|%s|%s|%s|-|\n", "job", "anchor", "measured", "goal", "never",
		strings.Repeat("-", 44), strings.Repeat("-", 20), strings.Repeat("-", 11), strings.Repeat("-", 10), strings.Repeat("-", 10))
	for _, g := range goals {
		measured, word := "", "not run"
		if v, ok := got.worst(g); ok {
			measured, word = strconv.FormatFloat(v, 'f', 2, 64), g.verdict(v)
		}
		fmt.Fprintf(out, "| %-42s | %-18s | %9s | %-8s | %-8s | %s |\n", g.job, g.anchor, measured, g.bound(g.goal), g.bound(g.never), word)
	}
	return lines.Err()
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-benchmarks" { // for the test that they exist
		for _, g := range goals {
			fmt.Println(g.bench)
		}
		return
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reading the benchmarks:", err)
		os.Exit(1)
	}
}
