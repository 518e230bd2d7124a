package sandbox

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// realModes are the back ends that confine.
var realModes = []Mode{Landlock, Bubblewrap, Combined}

func python(t testing.TB, script string, args ...string) Command {
	t.Helper()
	return Command{Argv: append([]string{"/usr/bin/python3", "-c", script}, args...), Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/anna"}}
}

func TestSecretsAreInNoArgument(t *testing.T) {
	const secret = "correct-horse-battery"
	for _, mode := range realModes {
		t.Run(string(mode), func(t *testing.T) {
			m := marker()
			p := start(t, openMode(t, mode), shell(t, []string{m, "TOKEN=" + secret}, "echo $TOKEN; read x"))
			line(t, p, secret)
			if pids := carrying(t, m); len(pids) == 0 {
				t.Error("the program does not have its environment")
			}
			if pids := carrying(t, m); len(pids) > 1 {
				t.Errorf("helpers have the environment too: %v", pids)
			}
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				if text, _ := os.ReadFile(f); strings.Contains(string(text), secret) {
					t.Errorf("%s shows the secret", f)
				}
			}
		})
	}
}

func TestHomeIsPrivateAndFresh(t *testing.T) {
	const script = `
import os, sys
for name in "HOME", "TMPDIR":
    d = os.environ[name]
    print(os.listdir(d), os.stat(d).st_mode & 0o077 == 0)
    open(d + "/left", "w").close()
`
	for _, mode := range realModes {
		s := openMode(t, mode)
		c := python(t, script)
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "yours"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.Env = append(c.Env[:1], "HOME="+home, "TMPDIR="+filepath.Join(t.TempDir(), "tmp"))
		for range 2 {
			r, err := runIn(t.Context(), s, Policy{}, c, nil)
			if err != nil || string(r.Stdout) != "[] True\n[] True\n" {
				t.Errorf("%s: got %q, %v\n%s", mode, r.Stdout, err, r.Stderr)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(s.dir, "run", "*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", mode, left)
		}
	}
}

func TestGrantsOfPaths(t *testing.T) {
	const script = `
import os, sys
for p in sys.argv[1:]:
    got = ""
    try: got += open(p + "/f").read()
    except OSError: got += "-"
    try: open(p + "/f", "a").write("w"); got += "w"
    except OSError: got += "-"
    print(os.path.basename(p), got)
`
	base := t.TempDir()
	var paths []string
	for _, name := range []string{"own", "read", "write", "hidden", "read/inner"} {
		paths = append(paths, filepath.Join(base, name))
		if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range realModes {
		for _, p := range paths {
			if err := os.WriteFile(filepath.Join(p, "f"), []byte("r"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := python(t, script, paths...)
		p := Policy{Own: []string{paths[0], c.Dir}, Read: []string{paths[1]}, Write: []string{paths[2], paths[4]}}
		r, err := openMode(t, mode).Run(t.Context(), p, c, nil)
		if want := "own rw\nread r-\nwrite rw\nhidden --\ninner rw\n"; err != nil || string(r.Stdout) != want {
			t.Errorf("%s: got %q, %v\n%s", mode, r.Stdout, err, r.Stderr)
		}
	}
}

// shortPaths lets the folders of a test have paths that are short enough for sockets, which
// may have 107 bytes; those below TMPDIR may be longer.
func shortPaths(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", "/tmp")
}

func TestNamedGrants(t *testing.T) {
	shortPaths(t)
	agent := filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte("signed"))
			c.Close()
		}
	}()
	const script = `
import socket, subprocess, sys
try:
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9).decode())
except OSError as e: print(type(e).__name__)
print(subprocess.run(["unshare", "-U", "true"], stderr=subprocess.DEVNULL).returncode == 0)
`
	for _, mode := range []Mode{Bubblewrap, Combined} {
		s := openMode(t, mode)
		for _, tt := range []struct {
			policy Policy
			want   string
		}{
			{Policy{}, "PermissionError\nFalse\n"},
			{Policy{Agent: agent}, "signed\nFalse\n"},
			{Policy{Agent: agent, Network: Network{All: true}}, "signed\nFalse\n"},
			{Policy{}.WithBrowser(), "FileNotFoundError\nTrue\n"},
		} {
			tt.policy.Limits = Limits{}
			r, err := runIn(t.Context(), s, tt.policy, python(t, script, agent), nil)
			if err != nil || string(r.Stdout) != tt.want {
				t.Errorf("%s, %+v: got %q, %v\n%s", mode, tt.policy, r.Stdout, err, r.Stderr)
			}
		}
	}
	_, err = runIn(t.Context(), openMode(t, Landlock), Policy{Agent: agent}, python(t, script, agent), nil)
	if want := "enforcing one agent socket and no other: Landlock does not tell sockets apart"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestForeignCalls makes a call of the 32-bit world and one of the x32 world.
func TestForeignCalls(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only this machine has other worlds")
	}
	const script = `
import ctypes, mmap, sys
code = {"i386": b"\xb8\x14\0\0\0\xcd\x80\xc3", "x32": b"\xb8\x27\0\0\x40\x0f\x05\xc3", "own": b"\xb8\x27\0\0\0\x0f\x05\xc3"}[sys.argv[1]]
m = mmap.mmap(-1, 4096, prot=7); m.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() > 0)
`
	for _, mode := range realModes {
		for call, signal := range map[string]string{"own": "", "i386": "SIGSYS", "x32": "SIGSYS"} {
			r, err := runIn(t.Context(), openMode(t, mode), Policy{}, python(t, script, call), nil)
			if err != nil || r.Signal != signal {
				t.Errorf("%s, %s: got %+v, %v\n%s", mode, call, r, err, r.Stderr)
			}
		}
	}
}

func TestWhatIsNotVisibleIsSaid(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho ran\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, mode := range realModes {
		s := openMode(t, mode)
		_, err := s.Run(t.Context(), Policy{}, Command{Argv: []string{"/bin/true"}, Dir: dir}, nil)
		if want := `starting "/bin/true": the working folder "` + dir + `" is not visible in the sandbox`; (err == nil || err.Error() != want) && mode != Landlock {
			t.Errorf("%s: got %v", mode, err)
		}
		if r, err := s.Run(t.Context(), Policy{}, Command{Argv: []string{tool}, Dir: "/usr"}, nil); err != nil || string(r.Stdout) != "ran\n" {
			t.Errorf("%s: a program outside the system: %+v, %v", mode, r, err)
		}
		_, err = s.Run(t.Context(), Policy{Own: []string{filepath.Join(dir, "gone")}}, Command{Argv: []string{tool}, Dir: "/usr"}, nil)
		if want := `enforcing writing to "` + filepath.Join(dir, "gone") + `": it is not there`; err == nil || err.Error() != want {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

func TestSentences(t *testing.T) {
	s := &Sandbox{mode: Combined, env: func(string) string { return "" }}
	alone := &Sandbox{mode: Landlock, env: s.env, facts: facts{Landlock: 7, Bwrap: "user namespaces are off"}}
	for _, tt := range []struct {
		s    *Sandbox
		p    Policy
		want string
	}{
		{s, Policy{}, "no access to your files, no network"},
		{s, Policy{Network: Network{Hosts: []string{"imap.example.org:993", "smtp.example.org:465"}}}, "no access to your files, network only to imap.example.org:993 and smtp.example.org:465"},
		{s, Policy{Network: Network{All: true}}, "no access to your files, network to every host but this machine, link-local and metadata addresses"},
		{s, Policy{Network: Network{All: true}, Loopback: true, Read: []string{"/home/anna/Mail"}}, "of your files it reads only /home/anna/Mail, network to every host but link-local and metadata addresses"},
		{s, Policy{Network: Network{All: true, Hosts: []string{"localhost:81", "a.example:1"}}}, "no access to your files, network to every host but link-local and metadata addresses, of this machine only to localhost:81"},
		{s, Policy{Loopback: true, Read: []string{"/a"}, Write: []string{"/b", "/c"}}, "of your files it reads only /a and changes only /b and /c, network only to this machine itself"},
		{s, Policy{Write: []string{"/b"}, Agent: "/run/a", Browser: true}, "of your files it reads and changes only /b, no network, a browser may confine its own pages, it may ask your SSH agent to sign"},
		{alone, Policy{Network: Network{Hosts: []string{"a.example:1"}}}, "it is not started here: enforcing network only to a.example:1: Landlock gives no network of its own to filter, and bubblewrap does not work here: user namespaces are off"},
	} {
		if got := tt.s.Enforced(tt.p); got.Sentence != tt.want {
			t.Errorf("%+v: got %q", tt.p, got.Sentence)
		}
	}
}

func TestFactsAreKeptUntilTheNextBoot(t *testing.T) {
	known := openMode(t, Auto)
	first, err := Open(Options{Mode: Auto, Self: known.self, Dir: filepath.Join(t.TempDir(), "box"), Path: "/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	if first.mode == "" || first.mode == Auto || first.mode == None {
		t.Fatalf("mode %q", first.mode)
	}
	open := func() (*Sandbox, time.Duration) {
		began := time.Now()
		s, err := Open(Options{Mode: Auto, Self: first.self, Dir: first.dir, Path: "/usr/bin:/bin"})
		if err != nil {
			t.Fatal(err)
		}
		return s, time.Since(began)
	}
	second, took := open()
	if second.facts != first.facts || second.mode != first.mode {
		t.Errorf("got %+v, want %+v", second.facts, first.facts)
	}
	within(t, took, time.Second)
	file := filepath.Join(first.dir, "machine.json")
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	// Facts of another boot, and no facts at all, are found out anew.
	// So are well-formed ones that would weaken what is enforced.
	forged := []string{`{"Key":"1 other","Bwrap":"broken","Alone":"broken"}`, "{", ""}
	for _, change := range []func(*facts){func(f *facts) { f.Bwrap = "broken" }, func(f *facts) { f.Landlock = 0 }, func(f *facts) { f.Watch = "broken" }} {
		f := first.facts
		change(&f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		forged = append(forged, string(text))
	}
	for _, text := range forged {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, _ := open(); s.facts != first.facts {
			t.Errorf("after %q: %+v", text, s.facts)
		}
	}
}

func TestNothingIsWeakened(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(Options{Mode: Bubblewrap, Self: exe, Dir: t.TempDir(), Path: "/nowhere"})
	if e, ok := errors.AsType[*UnenforceableError](err); !ok || e.Error() != `enforcing mode "bubblewrap": bubblewrap is not installed` {
		t.Errorf("got %v", err)
	}
	s, err := Open(Options{Mode: Auto, Self: exe, Dir: t.TempDir(), Path: "/nowhere"})
	if err != nil || s.mode != Landlock {
		t.Errorf("without bubblewrap: %v, %v", s, err)
	}
	broken := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Options{Mode: Combined, Self: exe, Dir: t.TempDir(), Path: filepath.Dir(broken)})
	if err == nil || err.Error() != `enforcing mode "bubblewrap+landlock": setting up uid map: Permission denied` {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Options{Mode: SandboxExec, Self: exe, Dir: t.TempDir()}); err == nil || err.Error() != `enforcing mode "sandbox-exec": it does not exist on Linux` {
		t.Errorf("got %v", err)
	}
}

func TestLandlockRestrictsStrictly(t *testing.T) {
	if v := landlockVersion(); v < leastLandlock {
		t.Skip("no Landlock here")
	}
	if err := allowPath(-1, "/nowhere/at/all", landlockRead); err != nil {
		t.Errorf("a path that is not there: %v", err)
	}
	if err := allowPath(-1, "/usr", landlockRead); !errors.Is(err, fs.ErrInvalid) && err == nil {
		t.Error("a refused rule is no error")
	}
}

// TestForgottenMain holds that a program which does not call Main is never
// started as its own helper: it would do so again there, without an end.
func TestForgottenMain(t *testing.T) {
	defer mainArgs.Store(mainArgs.Swap(nil))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = Open(Options{Mode: Auto, Self: exe, Dir: t.TempDir(), Path: "/usr/bin:/bin"})
		if want := `enforcing mode "auto": this program does not call sandbox.Main first, so it cannot be its own helper`; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		Main([]string{"list"}) // not the arguments of this process
	}
	if Main(os.Args[1:]); !mainCalled() {
		t.Error("a call with the arguments of the process is not noticed")
	}
}
