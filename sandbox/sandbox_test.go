package sandbox

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files and the table of docs/sandbox.md anew")

func TestNew(t *testing.T) {
	for _, mode := range []Mode{Auto, None} {
		s, err := New(mode)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Enforced(Policy{})
		if e.Mode != None || e.Sentence != "nothing is enforced: it can read your files and use the network like any program you start" {
			t.Errorf("mode %q: %+v", mode, e)
		}
		if held := strings.Join(e.NotHeld, "\n"); !strings.Contains(held, "files: ") || !strings.Contains(held, "network: ") {
			t.Errorf("mode %q does not say what is not held: %q", mode, held)
		}
		if open := s.Enforced(Policy{Network: Network{All: true}, Loopback: true}); strings.Contains(strings.Join(open.NotHeld, "\n"), "network: ") {
			t.Errorf("an open network is called not held: %q", open.NotHeld)
		}
	}
	for mode, want := range map[Mode]string{
		"chroot":   `enforcing mode "chroot": there is no such back end`,
		Bubblewrap: `enforcing mode "bubblewrap": this program does not know its own path`,
	} {
		_, err := New(mode)
		if _, ok := errors.AsType[*UnenforceableError](err); !ok || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTailKeepsNothing(t *testing.T) {
	keep := newTail(-1, 10)
	_, _ = keep.Write([]byte("x"))
	if got, cut := keep.bytes(); len(got) != 0 || !cut {
		t.Errorf("got %q, %v", got, cut)
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("hello, world"), 4, 3)
	f.Add([]byte("abc"), 3, 1)
	f.Add([]byte{}, 1, 1)
	f.Add(bytes.Repeat([]byte("0123456789"), 20), 7, 50)
	f.Fuzz(func(t *testing.T, data []byte, limit, step int) {
		limit, step = 1+abs(limit)%64, 1+abs(step)%64
		keep := newTail(int64(limit), 1)
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			_, _ = keep.Write(rest[:n])
			rest = rest[n:]
			if len(keep.buf) > 2*limit {
				t.Fatalf("holds %d bytes, the limit is %d", len(keep.buf), limit)
			}
		}
		got, cut := keep.bytes()
		if want := data[max(0, len(data)-limit):]; !bytes.Equal(got, want) || cut != (len(data) > limit) {
			t.Fatalf("kept %q (cut %v) of %q with limit %d", got, cut, data, limit)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return max(-n, 0)
	}
	return n
}

func FuzzShebang(f *testing.F) {
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#!"))
	f.Add([]byte("#! \t\n/bin/sh"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if got := shebang(head); strings.ContainsAny(got, " \t\n") || (got != "" && !bytes.HasPrefix(head, []byte("#!"))) {
			t.Fatalf("interpreter %q of %q", got, head)
		}
	})
}
