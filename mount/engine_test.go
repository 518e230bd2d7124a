package mount

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skald-connectors/internal/atomicfile"
)

// engineWorld has a configuration folder for the engine.
func engineWorld(t *testing.T) (w *world, dir, file string) {
	w = newWorld(t, "linux")
	dir = filepath.Join(w.home, "engine")
	file = filepath.Join(dir, "config.d", "mcp.json")
	check(t, os.MkdirAll(filepath.Dir(file), 0o755))
	return w, dir, file
}

func TestEngineEntry(t *testing.T) {
	w, dir, file := engineWorld(t)
	req := Request{Client: "engine", Name: "mail", ConfigDir: dir}
	res := w.mount(req)
	if !res.Changed || res.File != file || !res.Restart {
		t.Errorf("%+v", res)
	}
	var got struct {
		Servers []struct {
			Name      string `json:"name"`
			Transport struct {
				Kind    string   `json:"kind"`
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"transport"`
		} `json:"servers"`
	}
	dec := json.NewDecoder(strings.NewReader(string(w.read(file))))
	dec.DisallowUnknownFields()
	check(t, dec.Decode(&got))
	e := got.Servers[0]
	if len(got.Servers) != 1 || e.Name != "mail" || e.Transport.Kind != "stdio" || e.Transport.Command != "skald-connectors" ||
		strings.Join(e.Transport.Args, " ") != "run mail --mode standalone --transport stdio --config-dir "+dir {
		t.Errorf("%s", w.read(file))
	}
	before := w.read(file)
	if again := w.mount(req); again.Changed {
		t.Errorf("again: %+v", again)
	}
	w.same(file, before, "again")
	w.unmount(req)
	w.same(file, nil, "unmounted")
}

func TestEngineHomeIsNamed(t *testing.T) {
	w, dir, file := engineWorld(t)
	w.m.o.Home = "/srv/skald"
	w.mount(Request{Client: "engine", Name: "mail", ConfigDir: dir})
	if !strings.Contains(string(w.read(file)), `"--config-dir", "`+dir+`", "--home", "/srv/skald"]`) {
		t.Errorf("%s", w.read(file))
	}
}

// The catalogue may be a plain list, or have its list under another key.
func TestEngineCatalogues(t *testing.T) {
	for _, src := range []string{
		"[]", "[]\n", "[\n  {\"name\": \"a\", \"transport\": {\"kind\": \"stdio\"}, \"unknown\": [1.0]}\n]\n", `{"servers":[]}`, "{\"version\": 3, \"servers\": [\n\t{\"name\": \"a\"}\n]}\r\n",
		"{\"mcpServers\": [{\"name\": \"a\"}], \"servers\": null}", "\xef\xbb\xbf{}", "", "{\"servers\": null}", "[1, \"x\", null, {\"name\": 1}]",
	} {
		w, dir, file := engineWorld(t)
		w.write(file, []byte(src))
		for _, name := range []string{"mail", "git-hub", "x1"} {
			w.mount(Request{Client: "engine", Name: name, ConfigDir: dir})
		}
		after := w.read(file)
		if !contains(after, dropNull([]byte(src))) || strings.Count(string(after), `"kind"`) < 3 {
			t.Errorf("%q became %s", src, after)
		}
		for _, name := range []string{"mail", "x1", "git-hub"} {
			w.unmount(Request{Client: "engine", Name: name, ConfigDir: dir})
		}
		w.same(file, []byte(src), "unmounted")
	}
}

// Each refusal of the closed set, provoked for real.
func TestEngineRefusals(t *testing.T) {
	entry := func(dir, more string) string {
		return `{"servers": [{"name": "mail", "transport": {"kind": "stdio", "command": "skald-connectors", "args": ["run", "mail", "--mode", "standalone", "--transport", "stdio", "--config-dir", "` + dir + `"]}` + more + `}]}`
	}
	for _, c := range []struct {
		what string
		why  Reason
		set  func(w *world, dir, file string, r *Request)
	}{
		{"no folder given", ConfigDir, func(w *world, dir, file string, r *Request) { r.ConfigDir = "" }},
		{"relative folder", ConfigDir, func(w *world, dir, file string, r *Request) { r.ConfigDir = "engine" }},
		{"folder not there", ConfigDir, func(w *world, dir, file string, r *Request) { r.ConfigDir += "-none" }},
		{"a file for the folder", ConfigDir, func(w *world, dir, file string, r *Request) {
			w.write(dir+"-file", []byte{})
			r.ConfigDir += "-file"
		}},
		{"capital", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "Mail" }},
		{"underscore", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "a_b" }},
		{"two hyphens", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "a--b" }},
		{"path", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "../x" }},
		{"empty", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "" }},
		{"line end", InvalidName, func(w *world, dir, file string, r *Request) { r.Name = "mail\n" }},
		{"our name", ReservedName, func(w *world, dir, file string, r *Request) { r.Name = "skald-connectors" }},
		{"the engine's name", ReservedName, func(w *world, dir, file string, r *Request) { r.Name = "engine" }},
		{"broken", Unreadable, func(w *world, dir, file string, r *Request) { w.write(file, []byte(`{"servers": [`)) }},
		{"repeated key", Unreadable, func(w *world, dir, file string, r *Request) { w.write(file, []byte(`{"servers": [], "servers": []}`)) }},
		{"a comment", Unreadable, func(w *world, dir, file string, r *Request) { w.write(file, []byte("{} // x")) }},
		{"UTF-16", Unreadable, func(w *world, dir, file string, r *Request) { w.write(file, []byte(utf16le("{}"))) }},
		{"link out", Unreadable, func(w *world, dir, file string, r *Request) { check(w.t, os.Symlink("/etc/passwd", file)) }},
		{"a map of servers", UnexpectedShape, func(w *world, dir, file string, r *Request) { w.write(file, []byte(`{"servers": {}}`)) }},
		{"a text", UnexpectedShape, func(w *world, dir, file string, r *Request) { w.write(file, []byte(`"x"`)) }},
		{"twice", UnexpectedShape, func(w *world, dir, file string, r *Request) {
			w.write(file, []byte(`[{"name": "mail"}, {"name": "mail"}]`))
		}},
		{"another command", Conflict, func(w *world, dir, file string, r *Request) {
			w.write(file, []byte(`{"servers": [{"name": "mail", "transport": {"kind": "stdio", "command": "x"}}]}`))
		}},
		{"another folder", Conflict, func(w *world, dir, file string, r *Request) { w.write(file, []byte(entry("/other", ""))) }},
		{"switched off", Conflict, func(w *world, dir, file string, r *Request) { w.write(file, []byte(entry(dir, `, "enabled": false`))) }},
		{"environment references", Conflict, func(w *world, dir, file string, r *Request) {
			w.write(file, []byte(entry(dir, `, "env": {"A": "${A}"}`)))
		}},
		{"read-only", WriteFailed, func(w *world, dir, file string, r *Request) {
			w.write(file, []byte(`[]`))
			check(w.t, os.Chmod(file, 0o400))
		}},
		{"a file for config.d", WriteFailed, func(w *world, dir, file string, r *Request) {
			check(w.t, os.Remove(filepath.Dir(file)))
			w.write(filepath.Dir(file), []byte{})
		}},
		{"locked", Locked, func(w *world, dir, file string, r *Request) {
			w.m.o.LockWait = 120 * time.Millisecond
			unlock, ok, err := atomicfile.TryLock(filepath.Join(filepath.Dir(file), ".skald-connectors.lock"))
			if !ok || err != nil {
				w.t.Fatal(ok, err)
			}
			w.t.(*testing.T).Cleanup(unlock)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w, dir, file := engineWorld(t)
			r := Request{Client: "engine", Name: "mail", ConfigDir: dir}
			c.set(w, dir, file, &r)
			var before []byte
			if fi, err := os.Lstat(file); err == nil && fi.Mode().IsRegular() {
				before = w.read(file)
			}
			_, err := w.m.Mount(t.Context(), r)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason != c.why {
				t.Fatalf("%v, want %s", err, c.why)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			if before != nil {
				w.same(file, before, "refused")
			}
		})
	}
}

// A writer that never stops: what is given up is said, and nothing of its is lost.
func TestEngineChangedDuringWrite(t *testing.T) {
	w, dir, file := engineWorld(t)
	w.write(file, []byte(`[{"n": 0}]`))
	tg, err := w.m.engineTarget(Request{ConfigDir: dir, Name: "mail"})
	check(t, err)
	check(t, os.MkdirAll(w.m.o.State, 0o700))
	w.m.tries = 8
	n := 0
	_, err = w.m.attempt(t.Context(), tg, Request{Name: "mail"}, func(cur []byte, st *state, r Request) (next, error) {
		n++
		planned, err := tg.mounting(cur, st, r)
		w.write(file, []byte(`[{"n": `+strings.Repeat("1", n)+`}]`)) // between read and write
		return planned, err
	})
	if !isReason(err, ChangedDuringWrite) || n != w.m.tries {
		t.Errorf("%v after %d tries", err, n)
	}
	w.same(file, []byte(`[{"n": `+strings.Repeat("1", n)+`}]`), "given up")
}

func TestSeed(t *testing.T) {
	w, dir, file := engineWorld(t)
	installed := map[string]bool{"one": true, "two": true, "taken": true}
	req := SeedRequest{ConfigDir: dir, Names: []string{"one", "two", "taken", "none", "engine", "there"}, Installed: func(n string) bool { return installed[n] || n == "engine" || n == "there" }}
	w.write(file, []byte(`[{"name": "taken", "transport": {"kind": "http"}}]`))
	w.mount(Request{Client: "engine", Name: "there", ConfigDir: dir})
	seed := func(want string) {
		t.Helper()
		out, err := w.m.Seed(t.Context(), req)
		check(t, err)
		var got []string
		for _, o := range out {
			if o.Removed {
				o.Reading += "(removed)"
			}
			got = append(got, o.Name+"="+o.Reading)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("readings\n%s, want\n%s", s, want)
		}
	}
	seed("one=mounted two=mounted taken=conflict none=not_installed engine=refused there=present")
	seed("one=present two=present taken=conflict none=not_installed engine=refused there=present")
	w.unmount(Request{Client: "engine", Name: "one", ConfigDir: dir})
	installed["none"] = true
	seed("one=mounted(removed) two=present taken=conflict none=mounted engine=refused there=present")
	if strings.Contains(string(w.read(file)), `"one"`) {
		t.Errorf("what was removed came back:\n%s", w.read(file))
	}
	memory := w.read(filepath.Join(dir, "config.d", ".skald-connectors-seed.json"))
	if !strings.Contains(string(memory), `"taken": "conflict"`) {
		t.Errorf("%s", memory)
	}
}

func TestSeedRefusals(t *testing.T) {
	for _, c := range []struct {
		what string
		why  Reason
		set  func(w *world, dir, file string, r *SeedRequest)
	}{
		{"no folder", ConfigDir, func(w *world, dir, file string, r *SeedRequest) { r.ConfigDir = "" }},
		{"broken", Unreadable, func(w *world, dir, file string, r *SeedRequest) { w.write(file, []byte("{")) }},
		{"shape", UnexpectedShape, func(w *world, dir, file string, r *SeedRequest) { w.write(file, []byte(`{"servers": 1}`)) }},
		{"broken memory", Unreadable, func(w *world, dir, file string, r *SeedRequest) {
			check(w.t, os.WriteFile(seedPath(dir), []byte("{"), 0o600))
		}},
		{"newer memory", Unreadable, func(w *world, dir, file string, r *SeedRequest) {
			check(w.t, os.WriteFile(seedPath(dir), []byte(`{"format": 2}`), 0o600))
		}},
		{"memory is a folder", Unreadable, func(w *world, dir, file string, r *SeedRequest) { check(w.t, os.Mkdir(seedPath(dir), 0o700)) }},
		{"locked", Locked, func(w *world, dir, file string, r *SeedRequest) {
			w.m.o.LockWait = 120 * time.Millisecond
			unlock, _, err := atomicfile.TryLock(filepath.Join(filepath.Dir(file), ".skald-connectors.lock"))
			check(w.t, err)
			w.t.(*testing.T).Cleanup(unlock)
		}},
		{"config.d is a file", WriteFailed, func(w *world, dir, file string, r *SeedRequest) {
			check(w.t, os.Remove(filepath.Dir(file)))
			w.write(filepath.Dir(file), []byte{})
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w, dir, file := engineWorld(t)
			r := SeedRequest{ConfigDir: dir, Names: []string{"mail"}, Installed: func(string) bool { return true }}
			c.set(w, dir, file, &r)
			if out, err := w.m.Seed(t.Context(), r); !isReason(err, c.why) {
				t.Errorf("%+v, %v; want %s", out, err, c.why)
			}
		})
	}
}

func seedPath(dir string) string {
	return filepath.Join(dir, "config.d", ".skald-connectors-seed.json")
}
