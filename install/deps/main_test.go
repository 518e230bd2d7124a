package deps

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"skald-connectors/sandbox"
)

// The test binary plays node, npm and python3 when it is called by these names. What
// it shall do and what it saw stand beside it, because its environment is made from
// nothing.
func TestMain(m *testing.M) {
	if code, handled := sandbox.Main(os.Args[1:]); handled {
		syscall.Exit(code)
	}
	switch name := filepath.Base(os.Args[0]); name {
	case "npm", "python3":
		syscall.Exit(fake(filepath.Dir(os.Args[0]), name, os.Args[1:])) // os.Exit of a race build waits a second
	}
	os.Exit(m.Run())
}

// call is one start of a fake.
type call struct {
	Program string
	Args    []string
	Dir     string
	Env     []string
	RC      string // content of the settings file that npm was given
	RCMode  string
	Files   map[string]string // of the working folder
}

// script is what a fake does.
type script struct {
	Version string
	Knows   []string // settings that this npm has
	Stderr  string
	Code    int
	Lock    string // what npm install --package-lock-only writes
	Installs,
	Dists []string // packages that npm puts in place; distributions that pip does
	Report string
}

func fake(dir, name string, args []string) int {
	var s script
	data, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	note(dir, name, args)
	if name == "npm" {
		return fakeNPM(s, args)
	}
	return fakePip(s, args)
}

func note(dir, name string, args []string) {
	c := call{Program: name, Args: args, Env: os.Environ(), Files: map[string]string{}}
	c.Dir, _ = os.Getwd()
	for _, a := range args {
		if rc, ok := strings.CutPrefix(a, "--userconfig="); ok {
			if info, err := os.Stat(rc); err == nil {
				data, _ := os.ReadFile(rc)
				c.RC, c.RCMode = string(data), info.Mode().Perm().String()
			}
		}
	}
	for _, f := range FileNames() {
		if data, err := os.ReadFile(f); err == nil {
			c.Files[f] = string(data)
		}
	}
	line, _ := json.Marshal(c)
	f, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
}

func fakeNPM(s script, args []string) int {
	if args[0] == "config" {
		all := map[string]any{"npm-version": s.Version, "registry": "https://own.example/"}
		for _, k := range s.Knows {
			all[k] = nil
		}
		_ = json.NewEncoder(os.Stdout).Encode(all)
		return 0
	}
	fmt.Fprint(os.Stderr, s.Stderr)
	if slices.Contains(args, "--package-lock-only") {
		_ = os.WriteFile("package-lock.json", []byte(s.Lock), 0o600)
	} else {
		for _, p := range s.Installs {
			_ = os.MkdirAll(filepath.Join("node_modules", p), 0o700)
			_ = os.WriteFile(filepath.Join("node_modules", p, "package.json"), []byte(`{"scripts":{"postinstall":"x"},"bin":{"tool":"./cli.js"}}`), 0o600)
			_ = os.WriteFile(filepath.Join("node_modules", p, "cli.js"), []byte("#!/usr/bin/env node\n"), 0o600)
		}
	}
	return s.Code
}

func fakePip(s script, args []string) int {
	if len(args) > 1 && args[1] == "-c" {
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"prefix": "/no", "platform": "test-1", "tag": "x", "pip": s.Version, "index": []string{"https://own.example/simple"}})
		return 0
	}
	if slices.Contains(args, "compileall") {
		return 0
	}
	fmt.Fprint(os.Stderr, s.Stderr)
	for i, a := range args {
		if a == "--target" {
			for _, d := range s.Dists {
				_ = os.MkdirAll(filepath.Join(args[i+1], d+".dist-info"), 0o700)
			}
		}
		if a == "--report" {
			_ = os.WriteFile(args[i+1], []byte(s.Report), 0o600)
		}
	}
	return s.Code
}

// world is a folder with fakes, a home of the person and a place to build in.
type world struct {
	t             *testing.T
	bin, home     string
	tree, scratch string
	environ       []string
}

func newWorld(t *testing.T, program string, s script) *world {
	t.Helper()
	w := &world{t: t, bin: t.TempDir(), home: t.TempDir(), tree: t.TempDir(), scratch: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(w.bin, program)); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	w.play(program, s)
	return w
}

func (w *world) play(program string, s script) {
	data, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, filepath.Join(w.bin, program+".json"), string(data))
}

func (w *world) base() []string {
	return []string{"PATH=" + w.bin, "HOME=" + w.home, "LANG=C.UTF-8", "HTTPS_PROXY=http://proxy.example:1", "USER=someone", "TMPDIR=/elsewhere"}
}

func box(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	b, err := sandbox.New(sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *world) find(e Ecosystem, at Interpreter) (*Tool, error) {
	w.t.Helper()
	return Finder{Sandbox: box(w.t), Environ: w.environ, Base: w.base(), Home: w.home}.Find(w.t.Context(), e, at)
}

func (w *world) build(s Set, tool *Tool, change func(*Options)) (*Result, error) {
	w.t.Helper()
	o := Options{Sandbox: box(w.t), Tool: tool, Base: w.base(), Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	return s.Build(w.t.Context(), w.tree, w.scratch, o)
}

// calls are the starts of the fakes, without the questions.
func (w *world) calls() []call {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.bin, "calls"))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []call
	for line := range strings.Lines(string(data)) {
		var c call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			w.t.Fatal(err)
		}
		if c.Args[0] != "config" && !slices.Contains(c.Args, "-c") && !slices.Contains(c.Args, "compileall") {
			out = append(out, c)
		}
	}
	return out
}

// plain puts names in place of the folders of one test.
func (w *world) plain(list []string) string {
	r := strings.NewReplacer(w.tree, "TREE", w.scratch, "SCRATCH", w.home, "USERHOME", w.bin, "BIN")
	return r.Replace(strings.Join(list, "\n"))
}

// need finds a real program, or skips; where nothing may be skipped it fails.
func need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is missing and SKALD_TEST_REQUIRE is set", program)
		}
		t.Skipf("%s is missing", program)
	}
	return path
}
