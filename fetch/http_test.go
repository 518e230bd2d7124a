package fetch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 19, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		value, date string
		wait        time.Duration
		ok          bool
	}{
		{"", "", 0, false},
		{"0", "", 0, true},
		{"7", "", 7 * time.Second, true},
		{" 7 ", "", 7 * time.Second, true},
		{"-5", "", 0, false},
		{"1.5", "", 0, false},
		{"soon", "", 0, false},
		{"99999999", "", 365 * 24 * time.Hour, true},
		{"99999999999999999999999999", "", 365 * 24 * time.Hour, true},
		{"Sun, 19 Jul 2026 12:00:09 GMT", "", 9 * time.Second, true},
		{"Sun, 19 Jul 2026 11:00:00 GMT", "", 0, true},
		{"Sun, 19 Jul 2026 14:00:05 GMT", "Sun, 19 Jul 2026 14:00:00 GMT", 5 * time.Second, true},
		{"Sunday, 19-Jul-26 12:00:09 GMT", "", 9 * time.Second, true},
		{"Sun Jul 19 12:00:09 2026", "", 9 * time.Second, true},
	} {
		h := http.Header{"Retry-After": {row.value}, "Date": {row.date}}
		wait, ok := retryAfter(h, now)
		if wait != row.wait || ok != row.ok {
			t.Errorf("%q (date %q): %v %v, want %v %v", row.value, row.date, wait, ok, row.wait, row.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "120", "-1", "1e9", "99999999999999999999", "Sun, 19 Jul 2026 12:00:09 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"} {
		f.Add(s, "Sun, 19 Jul 2026 12:00:00 GMT")
		f.Add(s, "")
	}
	now := time.Date(2026, 7, 19, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		wait, ok := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if wait < 0 || !ok && wait != 0 {
			t.Errorf("%q, %q: %v %v", value, date, wait, ok)
		}
		if d := backoff(3, min(wait, retryAfterMost)); d <= 0 || d > retryAfterMost {
			t.Errorf("%q: waits %v", value, d)
		}
	})
}

func TestWaitsThatAreAskedFor(t *testing.T) {
	for _, row := range []struct {
		code        int
		value, want string
		tries       int64
		least, most time.Duration
	}{
		{503, "", "unreachable", retries + 1, 0, 3 * retryMost},
		{429, "0", "unreachable", retries + 1, 500 * time.Millisecond, 3 * retryMost},
		{429, "-5", "unreachable", retries + 1, 0, 3 * retryMost},
		{503, "1.5", "unreachable", retries + 1, 0, 3 * retryMost},
		{503, "junk", "unreachable", retries + 1, 0, 3 * retryMost},
		{429, "10", "unreachable", retries + 1, 30 * time.Second, 31 * time.Second},
		{503, "30", "unreachable", retries + 1, 90 * time.Second, 91 * time.Second},
		{503, "31", "unreachable", 1, 0, 0},
		{429, "99999999", "unreachable", 1, 0, 0},
		{404, "5", "other", 1, 0, 0},
		{301, "", "other", 1, 0, 0}, // without a Location
	} {
		t.Run(fmt.Sprintf("%d %q", row.code, row.value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &switching{now: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Retry-After", row.value)
					w.WriteHeader(row.code)
				})}
				bubble(t, h, func(m *Marketplace) {
					began := time.Now()
					_, err := m.Index(t.Context(), Refresh)
					took := time.Since(began)
					if got := errorKind(err); got != row.want || h.seen.Load() != row.tries || took < row.least || took > row.most {
						t.Errorf("%s (%v), %d tries in %v; want %s, %d, %v to %v", got, err, h.seen.Load(), took, row.want, row.tries, row.least, row.most)
					}
				})
			})
		})
	}
}

func TestWaitIsToldAndCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "25")
			w.WriteHeader(503)
		})
		bubble(t, h, func(m *Marketplace) {
			ctx, cancel := context.WithCancel(t.Context())
			told := make(chan Event, 1)
			m.src.(*webSource).c.note = func(e Event) { told <- e }
			go func() {
				<-told
				time.Sleep(time.Second)
				cancel()
			}()
			began := time.Now()
			_, err := m.Index(ctx, Refresh)
			if took := time.Since(began); err == nil || took != time.Second {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
}

func TestRecoversFromABrokenTransfer(t *testing.T) {
	tr, _ := demo()
	synctest.Test(t, func(t *testing.T) {
		bad := 2
		var mu sync.Mutex
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now := bad
			if strings.HasSuffix(r.URL.Path, ".py") && bad > 0 {
				bad--
			} else {
				now = 0
			}
			mu.Unlock()
			switch now {
			case 2:
				closesEarly(goodFile, 30)(w, r)
			case 1:
				dribbles(goodFile, time.Hour)(w, r)
			default:
				tr.ServeHTTP(w, r)
			}
		})
		bubble(t, h, func(m *Marketplace) {
			var mu sync.Mutex // m.note is set behind what makes its calls come one at a time
			var last Event
			m.note = func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				last = e
			}
			b, err := bundle(m, "demo")
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if read(t, b, "server.py") != goodFile || last.Bytes != last.TotalBytes || last.Files != 2 {
				t.Errorf("last event %+v", last)
			}
		})
	})
}
