package mount

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// world is a home folder with a Mounter for it, on a platform of choice.
type world struct {
	t    testing.TB
	home string
	env  map[string]string
	m    *Mounter
}

func newWorld(t testing.TB, platform string) *world {
	t.Helper()
	home := memoryDir(t)
	w := &world{t: t, home: home, env: map[string]string{"HOME": home}}
	if platform == "windows" {
		w.env = map[string]string{"USERPROFILE": home, "APPDATA": filepath.Join(home, "AppData", "Roaming"), "LOCALAPPDATA": filepath.Join(home, "AppData", "Local")}
	}
	w.m = New(Options{
		Env: func(k string) string { return w.env[k] }, OS: platform,
		State: filepath.Join(home, "ours", "mounts"), Program: "/opt/skald/bin/skald-connectors",
	})
	w.m.settle = time.Millisecond
	return w
}

// memoryDir is a folder where syncing costs nothing, if there is one.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "mount")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file is the first file of a client.
func (w *world) file(client string) string {
	w.t.Helper()
	c := w.m.client(rowOf(client))
	if c.Problem != "" {
		w.t.Fatalf("%s: %s", client, c.Problem)
	}
	return c.Files[0]
}

// write puts bytes there; nil stands for no file in a folder that exists.
func (w *world) write(path string, data []byte) {
	w.t.Helper()
	check(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	if data == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		return
	}
	check(w.t, os.WriteFile(path, data, 0o640))
}

// read gives the bytes, nil when there is no file.
func (w *world) read(path string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	check(w.t, err)
	if data == nil {
		data = []byte{}
	}
	return data
}

func (w *world) same(path string, want []byte, when string) {
	w.t.Helper()
	if got := w.read(path); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		w.t.Errorf("%s: the file holds\n%q\nwant\n%q", when, got, want)
	}
}

func (w *world) mount(r Request) Result {
	w.t.Helper()
	res, err := w.m.Mount(context.Background(), r)
	check(w.t, err)
	return res
}

func (w *world) unmount(r Request) Result {
	w.t.Helper()
	res, err := w.m.Unmount(context.Background(), r)
	check(w.t, err)
	return res
}

// refusal mounts and wants a refusal that leaves the file as it is.
func (w *world) refusal(r Request, want Reason) *RefusedError {
	w.t.Helper()
	path := r.File
	if path == "" && r.Client != Engine {
		path = w.file(r.Client)
	}
	before := w.read(path)
	res, err := w.m.Mount(context.Background(), r)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != want {
		w.t.Errorf("%+v: %+v, %v; want the refusal %s", r, res, err, want)
		return &RefusedError{}
	}
	w.same(path, before, "after the refusal "+err.Error())
	return refused
}

// forget takes away what would give a file back exactly, so that entries are edited.
func (w *world) forget() { check(w.t, os.RemoveAll(w.m.o.State)) }

// contains tells whether all bytes of old stand in new, in their order.
func contains(new, old []byte) bool {
	for _, c := range old {
		i := bytes.IndexByte(new, c)
		if i < 0 {
			return false
		}
		new = new[i+1:]
	}
	return true
}

// only checks that no temporary or lock file stays beside a file of a client.
func (w *world) clean(path string) {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	check(w.t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), ".tmp-") || strings.HasSuffix(e.Name(), ".lock") && !strings.HasPrefix(e.Name(), "."+ourProgram) {
			w.t.Errorf("left behind: %s", e.Name())
		}
	}
}
