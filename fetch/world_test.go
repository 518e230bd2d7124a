package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// A tree is a marketplace: paths to bytes.
type tree map[string][]byte

// connector adds a connector to the tree and returns its index entry.
func (t tree) connector(id string, files map[string]string) map[string]any {
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	if _, ok := all["connector.json"]; !ok {
		all["connector.json"] = fmt.Sprintf(`{"id": %q, "name": "Name of %s", "type": "mcp_local", "scope": "user", "version": 1,
 "mcp_config": {"command": "python3", "args": ["server.py"]}, "docs": [{"lang": "en", "description": "d", "llm_short_description": "s"}]}`, id, id)
	}
	if _, ok := all["server.py"]; !ok {
		all["server.py"] = "print('" + id + "')\n"
	}
	var pins []any
	for _, p := range slices.Sorted(maps.Keys(all)) {
		t[id+"/"+p] = []byte(all[p])
		pins = append(pins, pin(p, all[p]))
	}
	return map[string]any{
		"id": id, "name": "Name of " + id, "type": "mcp_local", "scope": "user", "version": 1, "folder": id,
		"user_description": "Works with " + id + ".", "tags": []string{"tag-" + id, "all"}, "requires": []string{"PYTHON"}, "files": pins,
	}
}

func pin(p, data string) map[string]any {
	return map[string]any{"path": p, "sha256": digestOf(data), "size": len(data)}
}

func digestOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// index writes connectors.json.
func (t tree) index(entries ...map[string]any) tree {
	src, err := json.MarshalIndent(map[string]any{"version": 1, "connectors": entries}, "", "  ")
	if err != nil {
		panic(err)
	}
	t["connectors.json"] = src
	return t
}

// demo is a marketplace with one connector, and its entry.
func demo() (tree, map[string]any) {
	t := tree{}
	e := t.connector("demo", map[string]string{"server.py": goodFile})
	return t.index(e), e
}

// ServeHTTP makes a tree a web server with ETags.
func (t tree) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, ok := t[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	tag := `"` + digestOf(string(data))[:12] + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Write(data)
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 7, 19, 12, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func options(t testing.TB, location string) Options {
	return Options{Location: location, CacheDir: filepath.Join(t.TempDir(), "cache"), Now: newClock().now}
}

func open(t testing.TB, o Options) *Marketplace {
	t.Helper()
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w, ok := m.src.(*webSource); ok {
			w.c.http.CloseIdleConnections()
		}
	})
	return m
}

// serve starts a loopback web server.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// eachKind runs a test over the three kinds of marketplace.
func eachKind(t *testing.T, tr tree, run func(t *testing.T, o Options)) {
	t.Run("web", func(t *testing.T) { run(t, options(t, serve(t, tr))) })
	t.Run("folder", func(t *testing.T) { run(t, options(t, writeTree(t, tr))) })
	t.Run("file URL", func(t *testing.T) {
		run(t, options(t, (&url.URL{Scheme: "file", Path: filepath.ToSlash(writeTree(t, tr))}).String()))
	})
	t.Run("builtin", func(t *testing.T) {
		fsys := fstest.MapFS{}
		for p, data := range tr {
			fsys[p] = &fstest.MapFile{Data: data}
		}
		o := options(t, "builtin")
		o.Builtin = fsys
		run(t, o)
	})
}

func writeTree(t testing.TB, tr tree) string {
	dir := t.TempDir()
	for p, data := range tr {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// snapshot lists the files below dir with their digests, to see what a refusal left behind. Locks are no content.
func snapshot(t testing.TB, dir string) string {
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) == ".lock" {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, p))
		fmt.Fprintf(&b, "%s %s\n", p, digestOf(string(data)))
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b.String()
}

func get(t testing.TB, m *Marketplace, mode Freshness) *Index {
	t.Helper()
	ix, err := m.Index(context.Background(), mode)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// bundle gets the bundle of id the way a caller does.
func bundle(m *Marketplace, id string) (*Bundle, error) {
	ctx := context.Background()
	ix, err := m.Index(ctx, Refresh)
	if err != nil {
		return nil, err
	}
	e, err := ix.Lookup(id)
	if err != nil {
		return nil, err
	}
	return m.Bundle(ctx, ix, e)
}

func read(t testing.TB, b *Bundle, p string) string {
	t.Helper()
	r, err := b.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pipeNet is a network in memory, for tests in a synctest bubble.
type pipeNet struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeNet() *pipeNet { return &pipeNet{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipeNet) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipeNet) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipeNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble runs a marketplace on a server in memory; both end with the test function.
func bubble(t *testing.T, h http.Handler, run func(m *Marketplace)) {
	n := newPipeNet()
	s := &http.Server{Handler: h}
	go s.Serve(n)
	defer s.Close()
	tr := &http.Transport{DialContext: n.dial}
	defer tr.CloseIdleConnections()
	o := options(t, "http://market.example")
	o.AllowHTTP, o.Client, o.Now = true, &http.Client{Transport: tr}, time.Now
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	run(m)
}
