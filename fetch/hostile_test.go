package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// errorKind names what a caller would branch on.
func errorKind(err error) string {
	var (
		pin    *PinError
		broken *BrokenError
		lost   *NotFoundError
		away   *UnreachableError
		page   *WebPageError
		hop    *RedirectError
	)
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &page):
		return "page"
	case errors.As(err, &hop):
		return "redirect"
	case errors.As(err, &pin):
		return "pin"
	case errors.As(err, &broken):
		return "broken"
	case errors.As(err, &lost):
		return "not found"
	case errors.As(err, &away):
		return "unreachable"
	}
	return "other"
}

// goodFile is the file that goes wrong; at a byte a second it takes longer than the rate window.
var goodFile = strings.Repeat("print('demo')\n", 10)

func endless(w http.ResponseWriter, r *http.Request) {
	junk := make([]byte, 64<<10)
	for r.Context().Err() == nil {
		if _, err := w.Write(junk); err != nil {
			return
		}
	}
}

func gzipped(data string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write([]byte(data))
		z.Close()
	}
}

func bomb(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	zeros := make([]byte, 1<<20)
	for range 64 {
		z.Write(zeros)
	}
	z.Close()
}

func page(contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, "\n<!DOCTYPE html><html><body>Please sign in</body></html>")
	}
}

func says(data string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, data) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

func chunked(data string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		fmt.Fprint(w, data)
	}
}

// closesEarly promises all of data and sends a part.
func closesEarly(data string, sent int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		fmt.Fprint(w, data[:sent])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// dribbles sends a byte at a time, gap apart.
func dribbles(data string, gap time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := range len(data) {
			if _, err := fmt.Fprint(w, data[i:i+1]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(gap):
			case <-r.Context().Done():
				return
			}
		}
	}
}

func hangs(head bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if head {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

var hostileAnswers = []struct {
	name    string
	handler func(good string) http.HandlerFunc
	file    string // what is wrong when a file is answered like this
	index   string // what is wrong when the index is
}{
	{"good", says, "none", "none"},
	{"good, chunked", chunked, "none", "none"},
	{"web page", func(string) http.HandlerFunc { return page("text/html") }, "page", "page"},
	{"web page called JSON", func(string) http.HandlerFunc { return page("application/json") }, "page", "page"},
	{"511", func(string) http.HandlerFunc { return status(511) }, "page", "page"},
	{"empty", func(string) http.HandlerFunc { return says("") }, "pin", "other"},
	{"another shape", func(string) http.HandlerFunc { return says(`{"error": "nope"}`) }, "pin", "other"},
	{"one byte more", func(good string) http.HandlerFunc { return says(good + "\n") }, "pin", "none"},
	{"one byte more, chunked", func(good string) http.HandlerFunc { return chunked(good + "\n") }, "pin", "none"},
	{"one byte less", func(good string) http.HandlerFunc { return says(good[:len(good)-1]) }, "pin", "other"},
	{"one byte less, chunked", func(good string) http.HandlerFunc { return chunked(good[:len(good)-1]) }, "pin", "other"},
	{"one byte flipped", func(good string) http.HandlerFunc { return says("\x00" + good[1:]) }, "pin", "other"},
	{"gzip", gzipped, "other", "other"},
	{"gzip bomb", func(string) http.HandlerFunc { return bomb }, "other", "other"},
	{"404", func(string) http.HandlerFunc { return status(404) }, "other", "other"},
	{"403", func(string) http.HandlerFunc { return status(403) }, "other", "other"},
	{"204", func(string) http.HandlerFunc { return status(204) }, "other", "other"},
	{"304 unasked", func(string) http.HandlerFunc { return status(304) }, "other", "other"},
	{"503", func(string) http.HandlerFunc { return status(503) }, "unreachable", "unreachable"},
	{"closes early", func(good string) http.HandlerFunc { return closesEarly(good, len(good)/2) }, "unreachable", "unreachable"},
	{"stops at the last byte", func(good string) http.HandlerFunc { return closesEarly(good, len(good)-1) }, "unreachable", "unreachable"},
	{"closes after all of it", func(good string) http.HandlerFunc { return closesEarly(good, len(good)) }, "none", "none"},
	{"a byte a second", func(good string) http.HandlerFunc { return dribbles(good, time.Second) }, "unreachable", "unreachable"},
	{"silent", func(string) http.HandlerFunc { return hangs(false) }, "unreachable", "unreachable"},
	{"silent after the head", func(string) http.HandlerFunc { return hangs(true) }, "unreachable", "unreachable"},
	{"endless", func(string) http.HandlerFunc { return endless }, "pin", "other"},
}

// answering serves a tree with one path answered by h.
func answering(tr tree, path string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			h(w, r)
			return
		}
		tr.ServeHTTP(w, r)
	})
}

// slowMost is the longest that any of the answers may keep us; most of it is waiting twice for a silent server.
const slowMost = 2*(rateWindow+idleLimit) + 3*retryMost

// TestOurOwnReason: a connection that we closed under a read is not the news.
func TestOurOwnReason(t *testing.T) {
	for _, tt := range []struct{ cause, err, want error }{
		{errStalled, net.ErrClosed, errStalled},
		{errDrip, context.Canceled, errDrip},
		{errNoAnswer, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: net.ErrClosed}, errNoAnswer},
		{nil, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tt.cause != nil {
			cancel(tt.cause)
		}
		if got := because(ctx, tt.err); got != tt.want {
			t.Errorf("%v ended by %v: %v, want %v", tt.err, tt.cause, got, tt.want)
		}
		cancel(nil)
	}
}

func TestHostileFile(t *testing.T) {
	for _, row := range hostileAnswers {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, _ := demo()
				bubble(t, answering(tr, "/demo/server.py", row.handler(goodFile)), func(m *Marketplace) {
					get(t, m, Refresh)
					_, err := m.filesOnly(t, "demo", "connector.json")
					if err != nil {
						t.Fatal(err)
					}
					before, began := snapshot(t, m.o.CacheDir), time.Now()
					_, err = bundle(m, "demo")
					if got := errorKind(err); got != row.file {
						t.Errorf("%s (%v), want %s", got, err, row.file)
					}
					if took := time.Since(began); took > 2*slowMost {
						t.Errorf("it took %v", took)
					}
					if after := snapshot(t, m.o.CacheDir); err != nil && withoutPointer(after) != withoutPointer(before) {
						t.Errorf("the refusal left something behind\nbefore:\n%safter:\n%s", before, after)
					}
				})
			})
		})
	}
}

// filesOnly gets the files but one into the cache.
func (m *Marketplace) filesOnly(t *testing.T, id string, paths ...string) (*Index, error) {
	ix := get(t, m, Refresh)
	e, err := ix.Lookup(id)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		f, _ := e.Pin(p)
		if _, err := m.files(context.Background(), e, append(e.Files[:0:0], f)); err != nil {
			return nil, err
		}
	}
	return ix, nil
}

// withoutPointer drops the line of the pointer, whose time may move.
func withoutPointer(snapshot string) string {
	var b strings.Builder
	for line := range strings.Lines(snapshot) {
		if !strings.Contains(line, ".json ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestHostileIndex(t *testing.T) {
	for _, row := range hostileAnswers {
		if row.name == "endless" {
			continue // TestIndexLimit: the index's limit is a hundred times that of a file
		}
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, _ := demo()
				good := string(tr["connectors.json"])
				h := &switching{now: row.handler(good)}
				bubble(t, h, func(m *Marketplace) {
					before := snapshot(t, m.o.CacheDir)
					began := time.Now()
					_, err := m.Index(t.Context(), Refresh)
					if got := errorKind(err); got != row.index {
						t.Errorf("without a cache: %s (%v), want %s", got, err, row.index)
					}
					if took := time.Since(began); took > slowMost {
						t.Errorf("it took %v", took)
					}
					if after := snapshot(t, m.o.CacheDir); err != nil && after != before {
						t.Errorf("the refusal left something behind:\n%s", after)
					}
					if row.index == "none" {
						return
					}
					h.set(tr)
					digest := get(t, m, Refresh).Digest()
					h.set(row.handler(good))
					before = snapshot(t, m.o.CacheDir)
					ix := get(t, m, Refresh)
					if row.name != "304 unasked" && (ix.Digest() != digest || !ix.FromCache() || errorKind(ix.Err()) != row.index) {
						t.Errorf("with a cache: from cache %v, %v", ix.FromCache(), ix.Err())
					}
					if after := snapshot(t, m.o.CacheDir); row.name != "304 unasked" && after != before {
						t.Errorf("the good index was touched:\n%s", after)
					}
				})
			})
		})
	}
}

func TestIndexThatContradictsItself(t *testing.T) {
	tr, _ := demo()
	good := string(tr["connectors.json"])
	for _, twin := range []string{"connectors", "Connectors", "CONNECTORS"} {
		tr["connectors.json"] = []byte(`{"` + twin + `": [], ` + good[1:])
		eachKind(t, tr, func(t *testing.T, o Options) {
			_, err := open(t, o).Index(t.Context(), Refresh)
			if errorKind(err) != "broken" {
				t.Errorf("%s: %v", twin, err)
			}
			if left := snapshot(t, o.CacheDir); left != "" {
				t.Errorf("%s: left behind\n%s", twin, left)
			}
		})
	}
	tr["connectors.json"] = []byte(good)
	h := &switching{now: tr}
	o := options(t, serve(t, h))
	m := open(t, o)
	get(t, m, Refresh)
	h.set(says(`{"connectors": [], "connectors": []}`))
	if _, err := m.Index(t.Context(), Refresh); errorKind(err) != "broken" {
		t.Errorf("an index that cannot be trusted fell back to the old one: %v", err)
	}
}
