//go:build linux || darwin

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeEngine is a docker that carries exec out on this machine, in a place of
// its own, and writes down its arguments.
func fakeEngine(t *testing.T) (s *Sandbox, log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	script := "#!/bin/sh\n[ \"$1\" != ps ] || exec cat " + filepath.Join(dir, "there") + "\nprintf '%s\\n' \"$*\" >>" + log + "\nwhile [ \"$1\" != /bin/sh ]; do shift; done\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("4be2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Mode: Container, User: "anna", Image: "example/connectors:1", Path: dir, Env: func(n string) string {
		return map[string]string{"PATH": "/usr/bin:/bin", "SECRET": "ours"}[n]
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

func TestContainerRun(t *testing.T) {
	s, log := fakeEngine(t)
	c := Command{Argv: []string{"/bin/sh", "-c", `printf '%s|%s|' "$KEY" "$EMPTY"; cat`, "a b"}, Dir: "/nowhere",
		Env: []string{"KEY=it's a \\ \"$(key)\"\nof two lines\n", "EMPTY="}}
	for _, input := range []string{"", "first\nlast"} {
		var stdin *strings.Reader
		r, err := s.Run(t.Context(), Policy{}, c, nil)
		if input != "" {
			stdin = strings.NewReader(input)
			r, err = s.Run(t.Context(), Policy{}, c, stdin)
		}
		if want := "it's a \\ \"$(key)\"\nof two lines\n||" + input; err != nil || r.Code != 0 || string(r.Stdout) != want {
			t.Errorf("got %+v, %v\n%q\n%s", r, err, r.Stdout, r.Stderr)
		}
	}
	args, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(args), "two lines") || strings.Contains(string(args), "KEY=it") {
		t.Errorf("arguments %s, %v", args, err)
	}
	if !strings.HasPrefix(string(args), "exec --interactive --workdir /nowhere skald-anna /bin/sh -c ") {
		t.Errorf("arguments %s", args)
	}
}

func TestContainerIsEnded(t *testing.T) {
	s, log := fakeEngine(t)
	p := Policy{Limits: Limits{Wall: 200 * time.Millisecond, Grace: 20 * time.Millisecond}}
	r, err := s.Run(t.Context(), p, Command{Argv: []string{"/bin/sleep", "300"}, Dir: "/"}, nil)
	if err != nil || !r.TimedOut {
		t.Errorf("got %+v, %v", r, err)
	}
	if args, _ := os.ReadFile(log); !strings.Contains(string(args), "kill -KILL") {
		t.Errorf("the end is not asked for: %s", args)
	}
}

func TestContainerArguments(t *testing.T) {
	s := &Sandbox{mode: Container, engine: "/usr/bin/podman", user: "anna", image: "example/connectors:1"}
	got := s.containerMake(Policy{Own: []string{"/s/work"}, Read: []string{"/data"}, Limits: Limits{Processes: 64, Memory: 1 << 30}})
	want := []string{"/usr/bin/podman", "run", "--detach", "--init", "--name", "skald-anna", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp",
		"--network", "none", "--pids-limit", "64", "--memory", "1073741824", "--volume", "/data:/data:ro", "--volume", "/s/work:/s/work", "example/connectors:1", "sleep", "infinity"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := s.containerMake(Policy{Network: Network{All: true}}); slices.Contains(got, "--network") {
		t.Errorf("got %q", got)
	}
}

func TestContainerRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"enforcing mode container: no user is named whose container it would be": {Mode: Container, User: "-x"},
		"enforcing mode container: neither docker nor podman is installed":       {Mode: Container, User: "anna", Path: "/nowhere"},
	} {
		if _, err := Open(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	silent := t.TempDir() // a client without a daemon
	if err := os.WriteFile(filepath.Join(silent, "docker"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Mode: Container, User: "anna", Path: silent}); err == nil || err.Error() != "enforcing mode container: docker does not answer: is its daemon running?" {
		t.Errorf("got %v", err)
	}
	s, log := fakeEngine(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(log), "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(t.Context(), Policy{Network: Network{All: true}}, Command{Argv: []string{"/bin/true"}, Dir: "/"}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "enforcing mode container: the container skald-anna does not run; make it with: ") || !strings.Contains(err.Error(), " run --detach ") {
		t.Errorf("got %v", err)
	}
	for want, p := range map[string]Policy{
		"enforcing network only to a.example:1: a container has the whole network or none": {Network: Network{Hosts: []string{"a.example:1"}}},
		`enforcing access to "/a:/etc": a container cannot be given this path`:             {Own: []string{"/a:/etc"}},
		"enforcing one agent socket and no other: it is not in the container":              {Agent: "/run/agent"},
	} {
		_, err := s.Run(t.Context(), p, Command{Argv: []string{"/bin/true"}, Dir: "/"}, nil)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if e := s.Enforced(p); e.Sentence != "it is not started here: "+want {
			t.Errorf("got %+v", e)
		}
	}
	if _, err := s.Run(t.Context(), Policy{}, Command{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"A;B=1"}}, nil); err == nil || err.Error() != `enforcing mode container: the variable "A;B" cannot be given to a container` {
		t.Errorf("got %v", err)
	}
}
