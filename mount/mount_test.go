package mount

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// Every client, every file of its corpus: mounted, mounted again, unmounted.
func TestRoundTripOfTheCorpus(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table() {
		samples := corpus(&r)
		if len(samples) < 24 {
			t.Fatalf("%s: only %d files", r.id, len(samples))
		}
		if rules := fmt.Sprint(r.format, r.key, r.list, r.shape); seen[rules] { // all that decides is as for an earlier client
			samples = append(samples[:12:12], samples[len(samples)-12:]...)
		} else {
			seen[rules] = true
		}
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "linux")
			for i, s := range samples {
				t.Run(s.name, func(t *testing.T) {
					w.t = t
					roundTrip(w, &r, s, i)
				})
			}
		})
	}
}

func roundTrip(w *world, r *row, s sample, turn int) {
	file := w.file(r.id)
	w.write(file, s.data)
	req := Request{Client: r.id, Name: "mail", Create: true, File: file}
	if s.refused != "" {
		e := w.refusal(req, s.refused)
		if e.File != file {
			w.t.Errorf("the refusal names %q", e.File)
		}
		return
	}
	res := w.mount(req)
	after := w.read(file)
	if !res.Changed || res.Digest == "" || res.Diff == "" {
		w.t.Errorf("result %+v", res)
	}
	if trimmed := s.data; !contains(after, dropNull(trimmed)) {
		w.t.Errorf("bytes were lost:\n%s\n%s", s.data, after)
	}
	if again := w.mount(req); again.Changed || again.Digest != res.Digest {
		w.t.Errorf("again: %+v", again)
	}
	w.same(file, after, "mounted twice")
	readsBack(w, r, file)
	if out := w.unmount(req); !out.Changed || out.Deleted != (s.data == nil) {
		w.t.Errorf("unmounted: %+v", out)
	}
	w.same(file, s.data, "unmounted")
	if out := w.unmount(req); out.Changed {
		w.t.Errorf("unmounted twice: %+v", out)
	}
	w.same(file, s.data, "unmounted twice")
	edited(w, r, s, req)
	if turn%2 == 0 {
		several(w, s, req, turn/2)
	}
	w.clean(file)
}

// dropNull leaves out what may be replaced: a null in the place of the servers.
func dropNull(data []byte) []byte {
	var out []byte
	for i := 0; i < len(data); i++ {
		if i+4 <= len(data) && string(data[i:i+4]) == "null" {
			i += 3
			continue
		}
		if data[i] != '~' {
			out = append(out, data[i])
		}
	}
	return out
}

// readsBack compares with what another program sees in the file.
func readsBack(w *world, r *row, file string) {
	states, err := w.m.Inspect(r.id, "")
	check(w.t, err)
	for _, s := range states {
		for _, e := range s.Entries {
			if s.File == file && e.Name == "mail" {
				if e.Activation != "mail" || e.Command != w.m.o.Program || !reflect.DeepEqual(e.Args, []string{"run", "mail"}) || e.Line == 0 {
					w.t.Errorf("read back as %+v", e)
				}
				return
			}
		}
	}
	w.t.Errorf("%s: the entry is not found in %+v", file, states)
}

// edited takes the entry out of a file without the memory of what was there before.
func edited(w *world, r *row, s sample, req Request) {
	e := textEdit{editorOf(r.format), r.place()}
	before, err := e.read(s.data)
	check(w.t, err)
	w.mount(req)
	w.forget()
	w.unmount(req)
	out := w.read(req.File)
	after, err := e.read(out)
	check(w.t, err)
	if !e.place.sameForeign(before, after, "mail") {
		w.t.Errorf("edited out, the values differ:\n%s\n%s", s.data, out)
	}
	if _, found := e.place.find(after, "mail"); found {
		w.t.Errorf("still there:\n%s", out)
	}
	had := e.place.container(before)
	if n, ok := had.(map[string]any); ok && len(n) > 0 && string(out) != string(s.data) && s.name != "no final line end" {
		w.t.Errorf("edited out of a map with others, the bytes differ:\n%q\n%q", s.data, out)
	}
	w.write(req.File, s.data)
}

// several mounts three and takes them out in another order.
func several(w *world, s sample, req Request, turn int) {
	names := []string{"a-1", "b_2", "c"}
	for _, n := range names {
		req.Name = n
		w.mount(req)
	}
	for _, i := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}}[turn%4] {
		req.Name = names[i]
		w.unmount(req)
	}
	w.same(req.File, s.data, "three in and out")
}

func TestNewFilesArePrivate(t *testing.T) {
	w := newWorld(t, "linux")
	w.mount(Request{Client: "cursor", Name: "mail", Create: true})
	fi, err := os.Stat(w.file("cursor"))
	check(t, err)
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
}
