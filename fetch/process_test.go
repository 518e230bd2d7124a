package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary is also the other processes that tests and benchmarks need: SKALD_FETCH_PART names the part.
func TestMain(m *testing.M) {
	switch os.Getenv("SKALD_FETCH_PART") {
	case "":
		os.Exit(m.Run())
	case "server":
		partServer()
	case "install":
		os.Exit(partInstall())
	case "lookup":
		os.Exit(partLookup())
	case "peak":
		os.Exit(partPeak())
	case "full disk":
		os.Exit(partFullDisk())
	}
}

// part starts this test binary as another process.
func part(t testing.TB, name string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), append(env, "SKALD_FETCH_PART="+name)...)
	return c
}

const (
	benchConnectors = 18
	benchFiles      = 6
	benchLatency    = 20 * time.Millisecond
)

// benchTree has connectors of 6 files, 20 to 50 KB each.
func benchTree() tree {
	tr := tree{}
	var entries []map[string]any
	for i := range benchConnectors {
		files := map[string]string{}
		for k := range benchFiles - 1 {
			name := fmt.Sprintf("file%d.py", k)
			if k == 0 {
				name = "server.py"
			}
			files[name] = strings.Repeat(fmt.Sprintf("# %d of %d, some text to move\n", k, i), 700+(i*benchFiles+k)%11*100)
		}
		entries = append(entries, tr.connector(fmt.Sprintf("c%02d", i), files))
	}
	return tr.index(entries...)
}

// partServer serves benchTree with a delay, and says where.
func partServer() {
	tr := benchTree()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(benchLatency)
		tr.ServeHTTP(w, r)
	})
	plain, secure := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	fmt.Println(plain.URL, secure.URL)
	io.Copy(io.Discard, os.Stdin) // until the parent is gone
}

// startServer gives the plain and the TLS address.
func startServer(t testing.TB) (plain, secure string) {
	c := part(t, "server")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	if _, err := fmt.Fscan(out, &plain, &secure); err != nil {
		t.Fatal(err)
	}
	return plain, secure
}

// partInstall gets bundles of all connectors, or of the one named, side by side.
func partInstall() int {
	o := Options{Location: os.Getenv("LOCATION"), CacheDir: os.Getenv("CACHE"), Now: time.Now}
	tr := newTransport(os.Getenv, nil, answerLimit)
	tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // a loopback server of the benchmark
	o.Env = os.Getenv
	if os.Getenv("PROTO") == "h2" {
		tr.Protocols.SetHTTP2(true)
		tr.Protocols.SetHTTP1(false)
	}
	if strings.HasPrefix(o.Location, "https:") {
		o.Client = &http.Client{Transport: tr}
	}
	m, err := Open(o)
	if err != nil {
		return fail(err)
	}
	if n := os.Getenv("PARALLEL"); n != "" {
		var slots int
		fmt.Sscan(n, &slots)
		m.slots = make(chan struct{}, slots)
	}
	ix, err := m.Index(context.Background(), Cached)
	if err != nil {
		return fail(err)
	}
	if os.Getenv("ONLY") == "index" {
		return 0
	}
	found, err := ix.Search(Query{Words: strings.Fields(os.Getenv("ONLY"))})
	if err != nil {
		return fail(err)
	}
	errs := make([]error, len(found))
	var wg sync.WaitGroup
	for i, e := range found {
		wg.Go(func() { _, errs[i] = m.Bundle(context.Background(), ix, e) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return fail(err)
		}
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func TestTwoProcesses(t *testing.T) {
	plain, _ := startServer(t)
	cache := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := part(t, "install", "LOCATION="+plain, "CACHE="+cache).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left := snapshot(t, cache)
	if n := strings.Count(left, "\n"); strings.Contains(left, tempPrefix) || n != 3+benchConnectors*benchFiles {
		t.Errorf("%d files in the cache:\n%s", n, left)
	}
}

func TestKilledProcessLeavesAUsableCache(t *testing.T) {
	plain, _ := startServer(t)
	cache := filepath.Join(t.TempDir(), "cache")
	for i := range 6 {
		c := part(t, "install", "LOCATION="+plain, "CACHE="+cache)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(15+10*i)*time.Millisecond, func() { c.Process.Kill() })
		c.Wait()
		timer.Stop()
	}
	if err := part(t, "install", "LOCATION="+plain, "CACHE="+cache).Run(); err != nil {
		t.Error(err)
	}
}

// partFullDisk tries to store more than the disk (here: the limit of a file's size) takes.
func partFullDisk() int {
	signal.Ignore(fileSizeSignals()...)
	if err := limitFileSize(2000); err != nil {
		fmt.Println("skip")
		return 0
	}
	m, err := Open(Options{Location: os.Getenv("LOCATION"), CacheDir: os.Getenv("CACHE"), Now: time.Now})
	if err != nil {
		return fail(err)
	}
	_, err = bundle(m, "demo")
	fmt.Println(err)
	return 0
}

func TestFullDisk(t *testing.T) {
	tr := tree{}
	tr.index(tr.connector("demo", map[string]string{"server.py": strings.Repeat("x", 20_000)}))
	cache := filepath.Join(t.TempDir(), "cache")
	h := &switching{now: tr}
	out, err := func() ([]byte, error) {
		c := part(t, "full disk", "LOCATION="+serve(t, h), "CACHE="+cache)
		return c.Output()
	}()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(out), "skip") {
		t.Skip("this system has no limit of a file's size")
	}
	if !strings.Contains(string(out), `getting "server.py" of connector "demo": file too large`) || h.seen.Load() > 3 {
		t.Errorf("%s after %d requests", out, h.seen.Load())
	}
	if left := snapshot(t, cache); strings.Contains(left, tempPrefix) || strings.Contains(left, digestOf(strings.Repeat("x", 20_000))) {
		t.Errorf("left behind:\n%s", left)
	}
}
