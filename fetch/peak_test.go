package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// partPeak reads an index as a process of its own, and prints the most memory that it ever had, in bytes.
func partPeak() int {
	o := Options{Location: os.Getenv("LOCATION"), CacheDir: os.Getenv("CACHE"), Now: time.Now, TrustDir: os.Getenv("TRUST")}
	if key := os.Getenv("KEY"); key != "" {
		o.Pinned = []string{key}
	}
	if os.Getenv("DO") != "nothing" {
		m, err := Open(o)
		if err == nil {
			_, err = m.Index(context.Background(), Refresh)
		}
		if err != nil {
			return fail(err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fail(err)
	}
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(most + " x")[0])
	if err != nil {
		return fail(err)
	}
	fmt.Println(kib << 10)
	return 0
}

// BenchmarkPeakMemory reports the greatest resident size of a process that fetches, judges and keeps an index of
// 100,000 entries, over the size of that index.
func BenchmarkPeakMemory(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("this system does not tell a process's greatest size")
	}
	now := time.Now()
	head := fmt.Sprintf("{\"type\": \"skald.index/v1\", \"keys_version\": 0, \"seq\": 1, \"issued\": %q, \"expires\": %q,", stamp(now), stamp(now.Add(time.Hour)))
	body := append([]byte(head), syntheticIndex(100_000)[1:]...)
	key := indexer(0)
	signature := key.block(body)
	location := serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/") {
		case indexName:
			http.ServeContent(w, r, indexName, now, bytes.NewReader(body))
		case signatureName:
			w.Write(signature)
		default:
			http.NotFound(w, r)
		}
	}))
	for _, row := range []struct{ name, do, key string }{{"nothing", "nothing", ""}, {"unsigned", "", ""}, {"signed", "", key.String()}} {
		b.Run(row.name, func(b *testing.B) {
			most := 0
			for b.Loop() {
				dir := b.TempDir()
				c := part(b, "peak", "LOCATION="+location, "CACHE="+filepath.Join(dir, "cache"), "TRUST="+filepath.Join(dir, "trust"), "KEY="+row.key, "DO="+row.do)
				c.Stderr = os.Stderr
				out, err := c.Output()
				if err != nil {
					b.Fatal(err)
				}
				n, err := strconv.Atoi(strings.TrimSpace(string(out)))
				if err != nil {
					b.Fatal(err)
				}
				most = max(most, n)
			}
			b.ReportMetric(float64(most)/1e6, "MB")
			b.ReportMetric(float64(most)/float64(len(body)), "memory/index")
		})
	}
}

// BenchmarkUpdateCheck measures the question whether the index is still the same, as a process of its own, against
// curl's; the answer, 304, takes 20 ms.
func BenchmarkUpdateCheck(b *testing.B) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("no curl here")
	}
	for _, n := range []int{1000, 100_000} {
		body, tag := syntheticIndex(n), fmt.Sprintf("%q", fmt.Sprint(n))
		var full atomic.Int32
		location := serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(benchLatency)
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == "" {
				full.Add(1)
			}
			http.ServeContent(w, r, indexName, time.Time{}, bytes.NewReader(body))
		}))
		cache := filepath.Join(b.TempDir(), "cache")
		ours := func() { must(b, part(b, "peak", "LOCATION="+location, "CACHE="+cache)) }
		ours() // fills the cache
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			compare(b, ours, func() {
				must(b, exec.Command(curl, "--silent", "--fail", "--output", os.DevNull, "--header", "If-None-Match: "+tag, location+"/"+indexName))
			})
		})
		if got := full.Load(); got != 1 {
			b.Errorf("the index was sent %d times", got)
		}
	}
}
