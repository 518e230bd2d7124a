package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// needProgram skips where a program is missing; CI refuses to skip.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is missing and SKALD_TEST_REQUIRE is set", name)
		}
		t.Skip(name + " is missing")
	}
	return path
}

// TestRealAgent: with --grant agent a connector signs with the key that a real SSH
// agent keeps, and has the key itself no more than before.
func TestRealAgent(t *testing.T) {
	agent, add, keygen := needProgram(t, "ssh-agent"), needProgram(t, "ssh-add"), needProgram(t, "ssh-keygen")
	shortPaths(t)
	dir := t.TempDir()
	socket, key := filepath.Join(dir, "agent.sock"), filepath.Join(dir, "key")
	daemon := exec.Command(agent, "-D", "-a", socket)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	eventually(t, "the agent listens", func() bool { return exists(socket) })
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	load := exec.Command(add, "-q", key)
	load.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Bubblewrap, Combined} {
		s := openMode(t, mode)
		for _, granted := range []bool{false, true} {
			c := shell(t, []string{"SSH_AUTH_SOCK=" + socket}, `echo text > text; ssh-keygen -q -Y sign -f key.pub -n file text && cat text.sig; test ! -e "$1" && echo hidden`, key)
			if err := os.WriteFile(filepath.Join(c.Dir, "key.pub"), public, 0o600); err != nil {
				t.Fatal(err)
			}
			p := Policy{}
			if granted {
				p.Agent = socket
			}
			r, err := runIn(t.Context(), s, p, c, nil)
			if err != nil || bytes.Contains(r.Stdout, []byte("BEGIN SSH SIGNATURE")) != granted || !bytes.Contains(r.Stdout, []byte("hidden")) {
				t.Errorf("%s, granted %t: %v, %d\n%s%s", mode, granted, err, r.Code, r.Stdout, r.Stderr)
			}
		}
	}
}

// TestRealBrowser: with --grant browser Chromium renders a page with its own sandbox
// on, as an ordinary user. Without the grant it gives up.
func TestRealBrowser(t *testing.T) {
	chromium := needProgram(t, "chromium")
	if os.Getuid() == 0 {
		again(t)
		return
	}
	for _, mode := range []Mode{Bubblewrap, Combined} {
		s := openMode(t, mode)
		for _, granted := range []bool{false, true} {
			dir := t.TempDir()
			p := Policy{Own: []string{dir}, Programs: []string{chromium}, Limits: Limits{Wall: 60 * time.Second}}
			if granted {
				p = p.WithBrowser()
			}
			c := Command{Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=/tmp"}, Argv: []string{chromium, "--headless", "--disable-gpu", "--no-first-run",
				"--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom", `data:text/html,<p>page</p><script>document.querySelector("p").append(" and script")</script>`}}
			r, err := s.Run(t.Context(), p, c, nil)
			if err != nil || bytes.Contains(r.Stdout, []byte("<p>page and script</p>")) != granted {
				t.Errorf("%s, granted %t: %v, %d %s\n%s%s", mode, granted, err, r.Code, r.Signal, r.Stdout, r.Stderr)
			}
			t.Logf("%s, granted %t: %v", mode, granted, r.Elapsed)
		}
	}
}

// again runs the calling test once more as an ordinary user.
func again(t *testing.T) {
	t.Helper()
	dir := publicDir(t)
	cmd := exec.Command(filepath.Join(dir, "sandbox.test"), "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	tmp := filepath.Join(dir, "tmp")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		t.Log(in.Text())
	}
}

// publicDir has this program and a folder tmp for an ordinary user.
func publicDir(t *testing.T) string {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sandbox.test"), program, 0o755)
	}
	tmp := filepath.Join(dir, "tmp")
	if err == nil {
		err = os.Mkdir(tmp, 0o700)
	}
	if err == nil {
		err = os.Chown(tmp, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
