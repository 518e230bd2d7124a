package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A liar is a marketplace on an https server that answers what a test wants, and one machine with the real program that uses it.
type liar struct {
	t          *testing.T
	dir        string // the tree that is served
	home, keys string
	server     *httptest.Server
	ca         string
	ahead      time.Duration // of the clock
	public     bool          // it is the public marketplace
	builtin    fs.FS         // the tree inside the program

	mu   sync.Mutex
	lies map[string]http.HandlerFunc // by path
}

func newLiar(t *testing.T) *liar {
	t.Helper()
	needPython(t)
	l := &liar{t: t, dir: filepath.Join(t.TempDir(), "market"), lies: map[string]http.HandlerFunc{}}
	l.home, l.keys = filepath.Join(t.TempDir(), "home"), t.TempDir()
	if err := copyMarket("testdata/market", l.dir); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(l.dir))
	l.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		lie := l.lies[r.URL.Path]
		l.mu.Unlock()
		if lie != nil {
			lie(w, r)
			return
		}
		if data, err := os.ReadFile(filepath.Join(l.dir, filepath.FromSlash(r.URL.Path))); err == nil {
			w.Header().Set("ETag", fmt.Sprintf("\"%x\"", sha256.Sum256(data))) // the time of a file is too coarse here
		}
		files.ServeHTTP(w, r)
	}))
	l.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.server.StartTLS()
	t.Cleanup(l.server.Close)
	l.ca = filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, l.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.server.Certificate().Raw})))
	return l
}

// signed makes it a signed marketplace whose key is pinned on the machine.
func (l *liar) signed() *liar {
	l.t.Helper()
	l.must("catalog", "keygen", l.key("a"), "--no-password")
	l.sign()
	l.must("marketplace", "add", l.server.URL, "--key", l.key("a")+".pub", "--name", "liar")
	return l
}

func (l *liar) key(name string) string { return filepath.Join(l.keys, name+".key") }

// sign publishes the tree as it is.
func (l *liar) sign() { l.t.Helper(); l.must("catalog", "sign", l.dir, "--key", l.key("a")) }

// lie answers a path with h from now on; nil: the truth.
func (l *liar) lie(path string, h http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies[path] = h
}

// on runs a command on the machine.
func (l *liar) on(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	var out, errs bytes.Buffer
	env := append(os.Environ(), "HOME="+l.t.TempDir(), "SKALD_CONNECTORS_HOME="+l.home, "SKALD_CONNECTORS_KEYSTORE=keyfile", "SSL_CERT_FILE="+l.ca, "SSL_CERT_DIR=")
	h := hooks{now: func() time.Time { return time.Now().Add(l.ahead) }, builtin: l.builtin, keychain: noKeychain{}, work: testWork}
	if l.public {
		h.public = l.server.URL
	} else {
		env = append(env, "SKALD_CONNECTORS_INDEX="+l.server.URL)
	}
	code = runWith(context.Background(), args, env, strings.NewReader(""), &out, &errs, h)
	return code, out.String(), errs.String()
}

func (l *liar) must(args ...string) string {
	l.t.Helper()
	code, out, errs := l.on(args...)
	if code != exitDone {
		l.t.Fatalf("%q: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// refused runs a command that has to end with that code and those words, and to leave nothing of what it was sent: the state is as
// before, and the cache has no other index and no wrong file.
func (l *liar) refused(code int, says string, args ...string) {
	l.t.Helper()
	before := l.everything()
	got, _, errs := l.on(args...)
	if text := strings.Join(strings.Fields(errs), " "); got != code || !strings.Contains(text, says) {
		l.t.Errorf("%q: exit %d, want %d and %q:\n%s", args, got, code, says, errs)
	}
	if strings.ContainsFunc(errs, func(r rune) bool { return r < 0x20 && r != '\n' || r == 0x7f }) {
		l.t.Errorf("a control character: %q", errs)
	}
	if after := l.everything(); after != before {
		l.t.Errorf("%q left something:\nbefore\n%safter\n%s", args, before, after)
	}
}

// everything is each file of the home with its digest, without locks, the time of the last index, and folders.
func (l *liar) everything() string {
	l.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreMissing(err)
		}
		rel, _ := filepath.Rel(l.home, path)
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(rel, "locks/") || strings.HasPrefix(rel, "sandbox/") || strings.HasSuffix(rel, ".lock") || strings.HasPrefix(rel, "cache/index/") && strings.HasSuffix(rel, ".json") {
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.HasPrefix(rel, "cache/sha256/") { // a right file beside a wrong one may stay
			if name := d.Name(); len(name) == 64 && name != fmt.Sprintf("%x", sha256.Sum256(data)) {
				l.t.Errorf("%s is not what it is called", rel)
			}
			return err
		}
		fmt.Fprintf(&b, "%s %x\n", rel, sha256.Sum256(data))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// file reads a file of the tree that is served.
func (l *liar) file(path string) []byte {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, filepath.FromSlash(path)))
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

// flipped answers with the file of that path, one byte of it another one.
func (l *liar) flipped(path string, at int) http.HandlerFunc {
	data := bytes.Clone(l.file(path))
	data[(at+len(data))%len(data)] ^= 1
	return saying(data)
}

func saying(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

func missing(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func leading(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+r.URL.Path, http.StatusFound) }
}

// TestThreatModelNamesTests: the table of docs/threat-model.md names tests and scripts that are there.
func TestThreatModelNamesTests(t *testing.T) {
	_, table, found := strings.Cut(string(readFile(t, "../../docs/threat-model.md")), "| attack | tests |\n|---|---|\n")
	if !found {
		t.Fatal("docs/threat-model.md has no table of tests")
	}
	var code strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			code.Write(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| **") {
			break
		}
		cells := strings.Split(row, "|")
		for i, part := range strings.Split(cells[2], "`") {
			if i%2 == 0 || strings.Contains(part, "/") {
				continue
			}
			names++
			scripts, _ := filepath.Glob("testdata/*/" + part + ".txtar")
			more, _ := filepath.Glob("testdata/*/script/" + part + ".txtar")
			if !strings.Contains(code.String(), "\nfunc "+part+"(") && len(scripts)+len(more) == 0 {
				t.Errorf("there is no test and no script %q", part)
			}
		}
	}
	if names < 40 {
		t.Errorf("only %d names", names)
	}
}
