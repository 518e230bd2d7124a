package sandbox

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The escape suite runs a hostile connector (testdata/hostile.py and .js) under
// every back end, as root and as an ordinary user, in a network of its own in
// which every address answers. What it found out is the table of docs/sandbox.md.

//go:embed testdata/hostile.py
var hostilePy []byte

//go:embed testdata/hostile.js
var hostileJS []byte

// finding is one line of the connector.
type finding struct {
	Attempt string `json:"attempt"`
	Open    bool   `json:"open"`
	Detail  string `json:"detail"`
}

// outcomes are the findings of one user: attempt → mode → whether one of the
// programs came through.
type outcomes map[string]map[Mode]bool

func (o outcomes) add(mode Mode, f finding) {
	if o[f.Attempt] == nil {
		o[f.Attempt] = map[Mode]bool{}
	}
	o[f.Attempt][mode] = o[f.Attempt][mode] || f.Open
}

// scene is a home with things worth stealing, and the world around it.
type scene struct {
	base    string
	given   map[string]any
	targets map[string]map[string]map[string]string // policy → kind → attempt → address
}

// world is what all users share: servers on every address, and a list of names.
type world struct {
	Port, Other, Local, UDP int
	DNS                     string
}

const (
	escapeProcesses = 64
	escapeTries     = 250
	escapeMemory    = 512 << 20
	escapeFile      = 16 << 20
	escapeDisk      = 32 << 20
)

func newScene(t *testing.T, w world) *scene {
	t.Helper()
	s := &scene{base: t.TempDir()}
	for path, text := range map[string]string{
		"home/.ssh/id_ed25519": "a key", "home/.bashrc": "", "home/keystore/mail.1.age": "a vault", "home/state/other/session": "a session",
		"home/work/hostile.py": string(hostilePy), "home/work/hostile.js": string(hostileJS), "home/state/me/x": "", "home/state/me/home/x": "", "tmp/x": "",
	} {
		path = filepath.Join(s.base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }
	s.given = map[string]any{
		"ssh": s.at("home/.ssh/id_ed25519"), "vault": s.at("home/keystore/mail.1.age"), "other": s.at("home/state/other/session"), "home": s.at("home"),
		"outside": s.at("home/.bashrc"), "own": s.at("home/work/hostile.py"), "state": s.at("home/state/me/x"), "launcher": os.Getpid(),
		"docker": s.at("home/docker.sock"), "abstract": fmt.Sprintf("skald-test-%d", rand.Uint64()), "datagram": s.at("home/dgram.sock"),
		"most": escapeTries, "bytes": 1 << 30, "disk": 2 * escapeDisk, "large": s.at("home/state/me/large"), "port": w.Local, "stay": 60,
	}
	for kind, path := range map[string]any{"unix": s.given["docker"], "unix ": "@" + s.given["abstract"].(string)} {
		l, err := net.Listen(strings.TrimSpace(kind), path.(string))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				fmt.Fprint(c, "hello")
				c.Close()
			}
		}()
	}
	pc, err := net.ListenPacket("unixgram", s.given["datagram"].(string))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	s.targets = map[string]map[string]map[string]string{
		"one host is declared": {
			"tcp": {"works: reach a declared host": at("declared.example.org", w.Port), "reach a host that is not declared": at("other.example.org", w.Port),
				"reach a port that is not declared": at("declared.example.org", w.Other), "reach a private address": at("10.0.0.7", w.Port),
				"reach the metadata address": at("169.254.169.254", w.Port), "reach a service of this machine": at("127.0.0.1", w.Other)},
			"mptcp": {"reach a host by MPTCP": at("10.0.0.7", w.Port)},
			"udp":   {"send a datagram to a host": at("10.0.0.7", w.UDP)},
		},
		"every host is granted": {
			"tcp": {"works: reach a host": at("93.184.215.14", w.Port), "works: reach a private host": at("10.0.0.7", w.Port),
				"then reach the metadata address": at("169.254.169.254", w.Port), "then reach a service of this machine": at("127.0.0.1", w.Other)},
			"mptcp": {"then reach the metadata address by MPTCP": at("169.254.169.254", w.Port)},
			"udp":   {"then send a datagram to the metadata address": at("169.254.169.254", w.UDP)},
		},
	}
	return s
}

func (s *scene) at(path string) string { return filepath.Join(s.base, path) }

// command is the hostile connector with one task.
func (s *scene) command(lang, task string, more map[string]any) Command {
	given := map[string]any{}
	for _, m := range []map[string]any{s.given, more} {
		for k, v := range m {
			given[k] = v
		}
	}
	text, _ := json.Marshal(given)
	argv := []string{"/usr/bin/python3", s.at("home/work/hostile.py"), task, string(text)}
	if lang == "node" {
		argv = []string{"/usr/bin/node", s.at("home/work/hostile.js"), task, string(text)}
	}
	return Command{Argv: argv, Dir: s.at("home/work"), Env: []string{"PATH=/usr/bin:/bin", "HOME=" + s.at("home/state/me/home"), "TMPDIR=" + s.at("tmp")}}
}

// written tells whether the file in the home has changed.
func (s *scene) written() bool {
	fi, err := os.Stat(s.given["outside"].(string))
	return err != nil || fi.Size() > 0
}

func (s *scene) policy() Policy {
	return Policy{Own: []string{s.at("home/work"), s.at("home/state/me")}, Limits: Limits{Wall: 30 * time.Second, Grace: 100 * time.Millisecond,
		Processes: escapeProcesses, Memory: escapeMemory, FileSize: escapeFile, Disk: escapeDisk}}
}

// collect runs the suite as the user that we are.
func collect(t *testing.T, w world) outcomes {
	all := outcomes{}
	for _, mode := range []Mode{None, Landlock, Bubblewrap, Combined} {
		sc := newScene(t, w)
		s := openMode(t, mode)
		s.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", w.DNS)
		}}
		for _, lang := range []string{"python", "node"} {
			for _, task := range []string{"everything", "forks", "memory", "disk"} {
				try(t, all, s, sc.policy(), sc.command(lang, task, nil))
			}
			all.add(mode, finding{Attempt: "write a file in your home", Open: sc.written()})
			for name, targets := range sc.targets {
				p := sc.policy()
				p.Network.All = name == "every host is granted"
				if !p.Network.All {
					p.Network.Hosts = []string{fmt.Sprintf("declared.example.org:%d", w.Port), fmt.Sprintf("93.184.215.14:%d", w.Port)}
				}
				try(t, all, s, p, sc.command(lang, "network", map[string]any{"tcp": targets["tcp"], "udp": targets["udp"], "mptcp": targets["mptcp"]}))
			}
			outlive(t, all, s, sc, lang, w)
			orphan(t, all, mode, sc, lang)
		}
		installScript(t, all, s, sc)
	}
	return all
}

// try runs one task and notes what it found. A back end that refuses the policy
// lets nothing through.
func try(t *testing.T, all outcomes, s *Sandbox, p Policy, c Command) {
	t.Helper()
	r, err := s.Run(t.Context(), p, c, nil)
	if _, ok := errors.AsType[*UnenforceableError](err); ok {
		for _, names := range []string{"tcp", "udp", "mptcp"} {
			var given map[string]any
			_ = json.Unmarshal([]byte(c.Argv[3]), &given)
			for name := range given[names].(map[string]any) {
				all.add(s.mode, finding{Attempt: name})
			}
		}
		return
	}
	lines := bytes.Count(r.Stdout, []byte("\n"))
	if err != nil || lines == 0 && r.Code >= 0 {
		t.Errorf("%s, %s: %v, %d %s\n%s%s", s.mode, c.Argv[:3], err, r.Code, r.Signal, r.Stdout, r.Stderr)
	}
	if lines == 0 { // it was ended for what it did
		return
	}
	t.Logf("%s: %s %s took %v", s.mode, filepath.Base(c.Argv[1]), c.Argv[2], r.Elapsed)
	for line := range bytes.Lines(r.Stdout) {
		var f finding
		if bytes.Contains(line, []byte(`"write a file in your home"`)) {
			continue // it may have been a file of its own in that place: written tells
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Errorf("%s, %s: %q", s.mode, c.Argv[:3], line)
		}
		all.add(s.mode, f)
		t.Logf("%s %s: %s: %v", s.mode, filepath.Base(c.Argv[1]), f.Attempt, f.Open)
	}
}

// ofItsOwn are attempts that may come through inside, on things of its own: the
// processes of npm, a file in the place of the person's.
var ofItsOwn = []string{"see the other processes", "write a file in your home"}

// installScript lets npm install a package whose own script is the connector.
func installScript(t *testing.T, all outcomes, s *Sandbox, sc *scene) {
	folder := sc.at("home/work")
	given, _ := json.Marshal(sc.given)
	script, _ := json.Marshal("node hostile.js everything '" + string(given) + "'")
	text := `{"name":"hostile","version":"1.0.0","scripts":{"postinstall":` + string(script) + `}}`
	if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := s.Install(folder, []string{"registry.example.org:443"})
	p.Own = append(p.Own, sc.at("home/state/me"))
	p.Limits.Processes = 0 // npm and the other tests share a user where nothing is enforced
	out := filepath.Join(folder, "found")
	c := sc.command("node", "", nil)
	c.Argv = []string{"/usr/bin/npm", "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts=false"}
	c.Env = append(c.Env, "HOSTILE_OUT="+out, "NO_UPDATE_NOTIFIER=1")
	r, err := s.Run(t.Context(), p, c, nil)
	found, _ := os.ReadFile(out)
	t.Logf("%s: npm took %v", s.mode, r.Elapsed)
	if err != nil || len(found) == 0 {
		t.Errorf("%s: npm: %v, %d\n%s%s", s.mode, err, r.Code, r.Stdout, r.Stderr)
	}
	for line := range bytes.Lines(found) {
		var f finding
		if json.Unmarshal(line, &f) == nil && !slices.Contains(ofItsOwn, f.Attempt) {
			all.add(s.mode, finding{Attempt: strings.Replace("npm: "+f.Attempt, "npm: works: ", "works: npm: ", 1), Open: f.Open})
		}
	}
}

// outlive lets the connector leave a process and a listener behind.
func outlive(t *testing.T, all outcomes, s *Sandbox, sc *scene, lang string, w world) {
	m := marker()
	c := sc.command(lang, "linger", map[string]any{"stay": 0})
	c.Env = append(c.Env, m)
	if _, err := s.Run(t.Context(), sc.policy(), c, nil); err != nil {
		t.Errorf("%s: %v", s.mode, err)
	}
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", w.Local), time.Second)
	if err == nil {
		conn.Close()
	}
	all.add(s.mode, finding{Attempt: "leave a listener behind", Open: err == nil})
	all.add(s.mode, finding{Attempt: "outlive its end (two forks, own session, limits changed)", Open: !gone(m)})
}

// gone waits a moment for the kernel, and ends who is left.
func gone(marker string) bool {
	for range 100 {
		if len(carryingNow(marker)) == 0 {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range carryingNow(marker) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return false
}

// orphan kills the program that holds the connector.
func orphan(t *testing.T, all outcomes, mode Mode, sc *scene, lang string) {
	m := marker()
	c := sc.command(lang, "linger", nil)
	c.Env = append(c.Env, m)
	text, _ := json.Marshal(struct {
		Mode    Mode
		Dir     string
		Policy  Policy
		Command Command
	}{mode, machineDir, sc.policy(), c})
	exe, _ := os.Executable()
	cmd := exec.Command(exe, "child", "holder", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if l, err := bufio.NewReader(out).ReadString('\n'); l != "ready\n" {
		t.Errorf("%s: %q, %v", mode, l, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	all.add(mode, finding{Attempt: "outlive a launcher that is killed", Open: !gone(m)})
}

// holder starts a connector, says when it is ready, and waits for its own end.
func holder(args []string) {
	var o struct {
		Mode    Mode
		Dir     string
		Policy  Policy
		Command Command
	}
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		fmt.Println(err)
		return
	}
	exe, _ := os.Executable()
	s, err := Open(Options{Mode: o.Mode, Self: exe, Dir: o.Dir, Path: "/usr/bin:/bin"})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := s.Start(context.Background(), o.Policy, o.Command)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, p.Stderr) }()
	_, _ = io.Copy(os.Stdout, p.Stdout)
	forever()
}

// asOrdinary runs the suite once more as nobody, in this network, and reads what
// it found.
func asOrdinary(t *testing.T, w world) outcomes {
	dir := publicDir(t)
	tmp := filepath.Join(dir, "tmp")
	text, _ := json.Marshal(w)
	cmd := exec.Command(filepath.Join(dir, "sandbox.test"), "-test.run=^TestEscapes$", "-test.v", "-test.count=1")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp, escapeWorld+"="+string(text), escapeResult+"="+filepath.Join(tmp, "result"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	var found outcomes
	result, err := os.ReadFile(filepath.Join(tmp, "result"))
	if err == nil {
		err = json.Unmarshal(result, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const (
	nobody       = 65534
	escapeWorld  = "SKALD_TEST_WORLD"
	escapeResult = "SKALD_TEST_RESULT"
)
