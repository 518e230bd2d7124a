package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// All figures are ratios of medians over interleaved rounds: machines are shared and noisy. Run with -benchtime 9x.

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return d[len(d)/2].Seconds()
}

// compare times ours and anchor in turn and reports their ratio.
func compare(b *testing.B, ours, anchor func()) {
	var a, c []time.Duration
	for b.Loop() {
		began := time.Now()
		ours()
		a = append(a, time.Since(began))
		began = time.Now()
		anchor()
		c = append(c, time.Since(began))
	}
	b.ReportMetric(median(a)*1e3, "ms-ours")
	b.ReportMetric(median(c)*1e3, "ms-anchor")
	b.ReportMetric(median(a)/median(c), "ratio")
	b.ReportMetric(0, "ns/op")
}

func must(b *testing.B, c *exec.Cmd) {
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// installer runs a process that gets bundles into an empty cache, the index being there already.
func installer(b *testing.B, location string, env ...string) func() {
	warm := filepath.Join(b.TempDir(), "warm")
	run := func(cache string, more ...string) {
		c := part(b, "install", append(append(env, more...), "LOCATION="+location, "CACHE="+cache)...)
		must(b, c)
	}
	run(warm, "ONLY=index")
	i := 0
	return func() {
		i++
		cache := filepath.Join(b.TempDir(), fmt.Sprint(i))
		b.StopTimer()
		if err := os.CopyFS(cache, os.DirFS(warm)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		run(cache)
	}
}

func BenchmarkInstall(b *testing.B) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("no curl here")
	}
	plain, secure := startServer(b)
	config := filepath.Join(b.TempDir(), "curl.cfg")
	var lines strings.Builder
	for p := range benchTree() {
		if p != indexName {
			fmt.Fprintf(&lines, "url = %s/%s\noutput = %s\n", plain, p, filepath.Join(b.TempDir(), "out", p))
		}
	}
	if err := os.WriteFile(config, []byte(lines.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	anchor := func() {
		must(b, exec.Command(curl, "--silent", "--fail", "--create-dirs", "--parallel", "--parallel-immediate", "--parallel-max", "32", "--config", config))
	}
	for _, n := range []string{"8", "16", "32", "64"} {
		b.Run("parallel="+n, func(b *testing.B) { compare(b, installer(b, plain, "PARALLEL="+n), anchor) })
	}
	b.Run("TLS, HTTP/1.1", func(b *testing.B) { compare(b, installer(b, secure), anchor) })
	b.Run("TLS, HTTP/2", func(b *testing.B) { compare(b, installer(b, secure, "PROTO=h2"), anchor) })
	b.Run("one connector, TLS, against one by one", func(b *testing.B) {
		compare(b, installer(b, secure, "ONLY=c07"), installer(b, secure, "ONLY=c07", "PARALLEL=1"))
	})
	b.Run("one connector, TLS, HTTP/2, against one by one", func(b *testing.B) {
		compare(b, installer(b, secure, "ONLY=c07", "PROTO=h2"), installer(b, secure, "ONLY=c07", "PARALLEL=1"))
	})
}

// partLookup does one thing with the cached index of 100,000 entries and ends.
func partLookup() int {
	if os.Getenv("DO") == "nothing" {
		return 0
	}
	m, err := Open(Options{Location: "https://market.example", CacheDir: os.Getenv("CACHE"), Now: time.Now})
	if err != nil {
		return fail(err)
	}
	ix, err := m.Index(context.Background(), Offline)
	if err != nil {
		return fail(err)
	}
	if id, ok := strings.CutPrefix(os.Getenv("DO"), "lookup "); ok {
		_, err = ix.Lookup(id)
	} else {
		_, err = ix.Search(Query{Words: strings.Fields(os.Getenv("DO")), Limit: 20})
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

// cacheOf fills a cache with an index, as if market.example had given it.
func cacheOf(b *testing.B, body []byte) Options {
	b.Helper()
	o := options(b, "https://market.example")
	o.Now = time.Now
	o.Client = &http.Client{Transport: handlerTransport{says(string(body))}}
	get(b, open(b, o), Refresh)
	return o
}

// handlerTransport answers from a handler, without a network.
type handlerTransport struct{ h http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := newRecorder()
	t.h.ServeHTTP(w, r)
	return w.Result(r), nil
}

func BenchmarkColdProcess(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		o := cacheOf(b, syntheticIndex(n))
		for _, do := range []string{"lookup " + syntheticID(n/3), "calendar", "invoice travel", "care", "no such word at all"} {
			b.Run(fmt.Sprintf("%d/%s", n, do), func(b *testing.B) {
				run := func(do string) func() {
					return func() { must(b, part(b, "lookup", "CACHE="+o.CacheDir, "DO="+do)) }
				}
				compare(b, run(do), run("nothing"))
			})
		}
	}
}

func BenchmarkWarm(b *testing.B) {
	o := cacheOf(b, syntheticIndex(100_000))
	m := open(b, o)
	b.Run("open and lookup", func(b *testing.B) {
		for b.Loop() {
			if _, err := get(b, m, Offline).Lookup(syntheticID(77_777)); err != nil {
				b.Fatal(err)
			}
		}
	})
	ix := get(b, m, Offline)
	for _, word := range []string{"calendar", "zzzz", "e", ""} {
		b.Run("search "+word, func(b *testing.B) {
			for b.Loop() {
				if _, err := ix.Search(Query{Words: []string{word}, Limit: 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBuildCache measures checking a new index and building its cache against a full parse.
func BenchmarkBuildCache(b *testing.B) {
	body := syntheticIndex(100_000)
	o := options(b, "https://market.example")
	o.Now = time.Now
	o.Client = &http.Client{Transport: handlerTransport{serveBytes(body)}}
	i := 0
	compare(b, func() {
		i++
		o.CacheDir = filepath.Join(b.TempDir(), fmt.Sprint(i))
		get(b, open(b, o), Refresh)
	}, func() {
		var all struct{ Connectors []map[string]any }
		if err := json.Unmarshal(body, &all); err != nil || len(all.Connectors) != 100_000 {
			b.Fatal(err)
		}
	})
	b.ReportMetric(peak(b, o)/float64(len(body)), "memory/index")
	side, _ := filepath.Glob(filepath.Join(o.CacheDir, "index", "*."+sideKind))
	info, err := os.Stat(side[0])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(len(body)), "cache/index")
}

// peak is the memory that one reading takes from the system at most, the index on the server's side left out.
func peak(b *testing.B, o Options) float64 {
	o.CacheDir = filepath.Join(b.TempDir(), "peak")
	m := open(b, o)
	debug.FreeOSMemory()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var top uint64
		for {
			select {
			case <-done:
				most <- top
				return
			case <-time.After(2 * time.Millisecond):
				runtime.ReadMemStats(&now)
				top = max(top, now.HeapSys-now.HeapReleased)
			}
		}
	}()
	get(b, m, Refresh)
	close(done)
	return float64(<-most) - float64(before.HeapSys-before.HeapReleased)
}
