package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// coldEntries is the size of the marketplace that interactive commands are
// measured on.
const coldEntries = 100_000

// BenchmarkCold measures whole processes against an empty Go process, in
// interleaved rounds: the median ratio is what counts.
func BenchmarkCold(b *testing.B) {
	dir := b.TempDir()
	empty, self := buildFor(b, dir, "./testdata/empty"), buildFor(b, dir, ".")
	srv := httptest.NewServer(http.HandlerFunc(bigMarket()))
	env := append(os.Environ(), "HOME="+dir, "SKALD_CONNECTORS_HOME="+filepath.Join(dir, "home"), "SKALD_CONNECTORS_INDEX="+srv.URL)
	for _, id := range []string{"c050000", "c099999"} { // fills the caches
		runQuietly(b, env, self, "info", id)
	}
	runQuietly(b, env, self, "--index", "builtin", "install", "http-fetch", "--yes")
	srv.Close()
	for _, args := range [][]string{{"info", "c050000"}, {"info", "c099999"}, {"list"}, {"search", "needle"}, {"version"}} {
		b.Run(strings.Join(args, "_"), func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				theirs = append(theirs, timed(b, env, empty))
				ours = append(ours, timed(b, env, self, args...))
			}
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x-empty")
			b.ReportMetric(float64(median(ours).Microseconds())/1000, "ms-median")
		})
	}
}

func buildFor(b *testing.B, dir, pkg string) string {
	b.Helper()
	out := filepath.Join(dir, "bin-"+filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	copied := out + "-copy" // pages of a file that was written in one go lie together, as those of a download do
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		b.Fatal(err)
	}
	return copied
}

func runQuietly(b *testing.B, env []string, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%q: %v\n%s", args, err, text)
	}
}

func timed(b *testing.B, env []string, name string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%q: %v", args, err)
	}
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// bigMarket answers an index of coldEntries entries and every connector.json.
func bigMarket() func(http.ResponseWriter, *http.Request) {
	manifestOf := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"name":"Connector","type":"mcp_local","scope":"user","version":1,"auth":{"type":"none"},"mcp_config":{"command":"python3","args":["server.py"]}}`, id)
	}
	var index bytes.Buffer
	index.WriteString(`{"version": 1, "connectors": [`)
	for i := range coldEntries {
		id := fmt.Sprintf("c%06d", i)
		text := "Reads, writes and searches the things of a service that has a long description for people who read lists."
		if i%1000 == 7 {
			text += " A needle is here."
		}
		m := manifestOf(id)
		sum := sha256.Sum256([]byte(m))
		fmt.Fprintf(&index, `%s{"id":%q,"name":"Connector %d","type":"mcp_local","scope":"user","user_description":%q,"requires":["PYTHON"],"tags":["one","two"],"folder":%q,"version":1,"version_string":"1.0.0","files":[{"path":"connector.json","sha256":%q,"size":%d}`,
			map[bool]string{true: "", false: ","}[i == 0], id, i, text, id, hex.EncodeToString(sum[:]), len(m))
		for j := range 5 {
			fmt.Fprintf(&index, `,{"path":"file_number_%d.py","sha256":%q,"size":20000}`, j, hex.EncodeToString(sum[:]))
		}
		index.WriteString("]}")
	}
	index.WriteString("]}")
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/connectors.json" {
			_, _ = w.Write(index.Bytes())
			return
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		_, _ = w.Write([]byte(manifestOf(id)))
	}
}
