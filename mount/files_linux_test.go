package mount

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSymbolicLinks(t *testing.T) {
	src := []byte("{\n  \"a\": 1\n}\n")
	for _, c := range []struct {
		name   string
		link   func(w *world, file string) (target string)
		refuse Reason
	}{
		{"absolute", func(w *world, file string) string {
			w.write(filepath.Join(w.home, "dot", "real.json"), src)
			check(t, os.Symlink(filepath.Join(w.home, "dot", "real.json"), file))
			return filepath.Join(w.home, "dot", "real.json")
		}, ""},
		{"relative chain", func(w *world, file string) string {
			w.write(filepath.Join(w.home, "dot", "real.json"), src)
			check(t, os.Symlink("real.json", filepath.Join(w.home, "dot", "hop")))
			check(t, os.Symlink("../dot/hop", file))
			return filepath.Join(w.home, "dot", "real.json")
		}, ""},
		{"dangling", func(w *world, file string) string {
			check(t, os.MkdirAll(filepath.Join(w.home, "dot"), 0o755))
			check(t, os.Symlink("../dot/none.json", file))
			return filepath.Join(w.home, "dot", "none.json")
		}, ""},
		{"folder", func(w *world, file string) string {
			check(t, os.Remove(filepath.Dir(file)))
			w.write(filepath.Join(w.home, "dot", "mcp.json"), src)
			check(t, os.Symlink("dot", filepath.Dir(file)))
			return filepath.Join(w.home, "dot", "mcp.json")
		}, ""},
		{"loop", func(w *world, file string) string {
			check(t, os.Symlink("mcp.json", file))
			return ""
		}, Unreadable},
		{"outside", func(w *world, file string) string {
			check(t, os.Symlink("/etc/passwd", file))
			return ""
		}, Unreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "linux")
			file := w.file("cursor")
			check(t, os.MkdirAll(filepath.Dir(file), 0o755))
			target := c.link(w, file)
			req := Request{Client: "cursor", Name: "mail"}
			if c.refuse != "" {
				_, err := w.m.Mount(t.Context(), req)
				if !isReason(err, c.refuse) || !strings.Contains(err.Error(), "link") {
					t.Errorf("%v", err)
				}
				return
			}
			before := w.read(target)
			link, _ := os.Readlink(file)
			res := w.mount(req)
			if link != "" && res.Target != target {
				t.Errorf("target %q, want %q", res.Target, target)
			}
			if !strings.Contains(string(w.read(target)), ourProgram) {
				t.Errorf("%s", w.read(target))
			}
			w.unmount(req)
			w.same(target, before, "unmounted")
			if now, _ := os.Readlink(file); now != link {
				t.Errorf("the link became %q", now)
			}
		})
	}
}

func TestModeAndOwnerStay(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o664, 0o755} {
		w.write(file, []byte("{}"))
		check(t, os.Chmod(file, mode))
		if os.Geteuid() == 0 {
			check(t, os.Chown(file, 12345, 23456))
		}
		w.mount(Request{Client: "cursor", Name: "mail"})
		w.unmount(Request{Client: "cursor", Name: "mail"})
		fi, err := os.Stat(file)
		check(t, err)
		if st := fi.Sys().(*syscall.Stat_t); fi.Mode() != mode || os.Geteuid() == 0 && (st.Uid != 12345 || st.Gid != 23456) {
			t.Errorf("mode %v became %v, owner %d:%d", mode, fi.Mode(), st.Uid, st.Gid)
		}
	}
}

func TestOddFiles(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	req := Request{Client: "cursor", Name: "mail"}
	check(t, os.MkdirAll(file, 0o755))
	if _, err := w.m.Mount(t.Context(), req); !isReason(err, Unreadable) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	check(t, os.Remove(file))
	check(t, syscall.Mkfifo(file, 0o600))
	if _, err := w.m.Mount(t.Context(), req); !isReason(err, Unreadable) {
		t.Errorf("a pipe: %v", err)
	}
	check(t, os.Remove(file))
	w.write(file, []byte("{}"))
	check(t, os.Chmod(file, 0o444))
	w.refusal(req, WriteFailed)
	check(t, os.Chmod(file, 0o644))
	check(t, os.Truncate(file, 100<<20))
	if _, err := w.m.Mount(t.Context(), req); !isReason(err, Unreadable) || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("100 MB: %v", err)
	}
	check(t, os.Truncate(file, 0))
	if os.Geteuid() != 0 {
		check(t, os.Chmod(file, 0))
		w.refusal(req, Unreadable)
	}
}

func TestFullDiskLeavesTheFile(t *testing.T) {
	dir := memoryDir(t)
	small := filepath.Join(dir, "small")
	check(t, os.Mkdir(small, 0o755))
	if err := mountTmpfs(small, "size=64k"); err != nil {
		t.Skipf("no small file system can be mounted here, that needs root: %v", err)
	}
	defer unmountTmpfs(small)
	w := newWorld(t, "linux")
	w.env["HOME"] = small
	file := w.file("cursor")
	w.write(file, []byte("{\n  \"x\": \""+strings.Repeat("y", 40<<10)+"\"\n}\n"))
	w.refusal(Request{Client: "cursor", Name: "mail"}, WriteFailed)
	w.clean(file)
}
