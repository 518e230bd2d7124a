package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The container back end places a process in a container of the person's that
// runs already, named skald-<user>, by docker or podman. The container is the
// wall: what it mounts and which network it has was decided when it was made.
// The environment travels over standard input of a small shell in front of the
// program, never in an argument, where every user of the machine could read it.

const (
	containerPrefix = "skald-"
	// containerStart takes the first $1 bytes of its input as assignments, leaves
	// its number where $2 says, and becomes the program with the rest of the
	// input. dd reads no byte more than it is told.
	containerStart = `n=$1 f=$2; shift 2; eval "$(dd bs=1 count="$n" 2>/dev/null)"; echo $$ >"$f"; exec "$@"`
	// containerEnd ends the program whose number is there.
	containerEnd = `p=$(cat "$1" 2>/dev/null) && rm -f "$1" && kill -KILL "$p" 2>/dev/null; :`
	// containerWait bounds what is asked of the engine besides.
	containerWait = 30 * time.Second
)

// engines are looked for in this order.
var engines = []string{"docker", "podman"}

// openContainer finds the engine.
func (s *Sandbox) openContainer() error {
	if !validUser(s.user) {
		return &UnenforceableError{What: "mode container", Why: "no user is named whose container it would be"}
	}
	for _, e := range engines {
		if path, _, err := LookPath(e, s.path); err == nil {
			s.engine = path
			return s.engineAnswers()
		}
	}
	return &UnenforceableError{What: "mode container", Why: "neither docker nor podman is installed"}
}

// engineAnswers asks the engine for its containers: a client alone holds nothing.
func (s *Sandbox) engineAnswers() error {
	if _, ok := s.running(); ok {
		return nil
	}
	return &UnenforceableError{What: "mode container", Why: filepath.Base(s.engine) + " does not answer: is its daemon running?"}
}

// running tells whether the person's container runs; ok is false when the engine
// does not answer.
func (s *Sandbox) running() (is, ok bool) {
	plain := Sandbox{mode: None, env: s.env}
	argv := []string{s.engine, "ps", "--quiet", "--filter", "name=^" + containerPrefix + s.user + "$"}
	res, err := plain.Run(context.Background(), Policy{Limits: Limits{Wall: containerWait}}, Command{Argv: argv, Dir: s.root(), Env: s.engineEnv()}, nil)
	if err != nil || res.Code != 0 || res.TimedOut {
		return false, false
	}
	return len(strings.TrimSpace(string(res.Stdout))) > 0, true
}

// validUser holds the name to what can be part of a container's.
func validUser(u string) bool {
	return u != "" && len(u) <= 63 && strings.Trim(u, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" && !strings.ContainsAny(u[:1], ".-")
}

// containerArgv is the command that runs c in the container, which finds size
// bytes of environment at the front of its input. No value is in it.
func (s *Sandbox) containerArgv(c Command, size int, id string) []string {
	argv := []string{s.engine, "exec", "--interactive", "--workdir", c.Dir, containerPrefix + s.user,
		"/bin/sh", "-c", containerStart, "sh", strconv.Itoa(size), id}
	return append(argv, c.Argv...)
}

// assignments writes env for a shell. The error names no value.
func assignments(env []string) (string, error) {
	var b strings.Builder
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if !isVariable(name) {
			return "", fmt.Errorf("the variable %q cannot be given to a container", name)
		}
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return b.String(), nil
}

func isVariable(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return name != "" && strings.Trim(name, letters+"0123456789") == "" && strings.Contains(letters, name[:1])
}

// beginContainer starts c in the container. The program is looked up inside.
func (s *Sandbox) beginContainer(p Policy, c Command, pipes *pipes) (*child, func() []Denial, error) {
	if err := containerRefuses(p); err != nil {
		return nil, nil, err
	}
	text, err := assignments(c.Env)
	if err != nil {
		return nil, nil, &UnenforceableError{What: "mode container", Why: err.Error()}
	}
	// The container is the person's: it is named with the command that makes it, and
	// never made behind their back.
	if is, _ := s.running(); !is {
		return nil, nil, &UnenforceableError{What: "mode container", Why: "the container " + containerPrefix + s.user + " does not run; make it with: " + strings.Join(s.containerMake(p), " ")}
	}
	in := pipes.ours[0]
	if in == nil { // the environment needs a way in
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, fmt.Errorf("starting %q: %w", program(c), err)
		}
		_ = pipes.theirs[0].Close()
		pipes.theirs[0], in = r, w
		defer w.Close()
	}
	id := "/tmp/.skald-" + strconv.FormatUint(rand.Uint64(), 36)
	outer := Command{Argv: s.containerArgv(c, len(text), id), Dir: s.root(), Env: s.engineEnv()}
	ch, err := spawn(s.engine, outer, pipes.theirs, p.Limits)
	if err != nil {
		return nil, nil, err
	}
	_ = in.SetWriteDeadline(time.Now().Add(containerWait))
	_, err = in.WriteString(text) // when the engine fails its status tells
	_ = in.SetWriteDeadline(time.Time{})
	end := func() []Denial {
		plain := Sandbox{mode: None, env: s.env}
		argv := []string{s.engine, "exec", containerPrefix + s.user, "/bin/sh", "-c", containerEnd, "sh", id}
		_, _ = plain.Run(context.Background(), Policy{Limits: Limits{Wall: containerWait}}, Command{Argv: argv, Dir: s.root(), Env: s.engineEnv()}, nil)
		return nil
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		ch.kill()
	}
	return ch, end, nil
}

// root is a folder that is always there.
func (s *Sandbox) root() string { return filepath.VolumeName(s.engine) + string(filepath.Separator) }

// engineEnv is what docker and podman need to find their daemon and their files.
func (s *Sandbox) engineEnv() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "USER", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST"} {
		if v := s.env(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// containerMake is the command that makes the container for p: nothing of the machine but the folders of p, no capabilities, no new
// privileges, limits, and a network only where all of it is granted.
func (s *Sandbox) containerMake(p Policy) []string {
	argv := []string{s.engine, "run", "--detach", "--init", "--name", containerPrefix + s.user, "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp"}
	if !p.Network.All {
		argv = append(argv, "--network", "none")
	}
	if n := p.Limits.Processes; n > 0 {
		argv = append(argv, "--pids-limit", strconv.FormatInt(n, 10))
	}
	if n := p.Limits.Memory; n > 0 {
		argv = append(argv, "--memory", strconv.FormatInt(n, 10))
	}
	for _, path := range slices.Concat(p.Read, p.Shared) {
		argv = append(argv, "--volume", path+":"+path+":ro")
	}
	for _, path := range slices.Concat(p.Own, p.Write) {
		argv = append(argv, "--volume", path+":"+path)
	}
	return append(argv, cmp.Or(s.image, "IMAGE"), "sleep", "infinity")
}

// containerText says what a container holds.
func (s *Sandbox) containerText() string {
	return "it runs in the container " + containerPrefix + s.user + ": of files and network it has what that container was given"
}

// containerNotHeld lists what a container that was made before does not promise.
func containerNotHeld() []string {
	return []string{
		"files, network and limits: they are those of the container, which was made before",
		"end of the tree: a process that is left behind stays in the container, and all of it when this program is killed",
	}
}

// containerRefuses tells what a container cannot hold.
func containerRefuses(p Policy) error {
	if err := p.reaches(); err != nil {
		return err
	}
	switch {
	case !p.Network.All && len(p.Network.Hosts) > 0:
		return &UnenforceableError{What: "network only to " + listed(p.Network.Hosts), Why: "a container has the whole network or none"}
	case p.Agent != "":
		return &UnenforceableError{What: "one agent socket and no other", Why: "it is not in the container"}
	case p.Browser:
		return &UnenforceableError{What: "a browser that confines its own pages", Why: "a container gives no namespaces of its own inside"}
	}
	for _, path := range slices.Concat(p.Own, p.Shared, p.Read, p.Write) {
		if !filepath.IsAbs(path) || strings.ContainsAny(path, ":,") {
			return &UnenforceableError{What: "access to " + quote(path), Why: "a container cannot be given this path"}
		}
	}
	return nil
}
