//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// seat is the program on a real pseudo-terminal.
type seat struct {
	t    *testing.T
	b    *bench
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	done chan error
	from int // where the next wait begins
}

// sit starts the program on a terminal of 100 columns and 40 rows.
func (b *bench) sit(args ...string) *seat {
	b.t.Helper()
	cmd := exec.Command(b.self, args...)
	cmd.Env = append(b.env, "TERM=xterm-256color", "CI=", "NO_COLOR=1")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 40})
	if err != nil {
		b.t.Fatal(err)
	}
	// A read that blocks would keep the terminal open when it is closed.
	fd, err := unix.Dup(int(tty.Fd()))
	if err == nil {
		unix.CloseOnExec(fd)
		err = unix.SetNonblock(fd, true)
	}
	_ = tty.Close()
	if err != nil {
		b.t.Fatal(err)
	}
	tty = os.NewFile(uintptr(fd), tty.Name())
	s := &seat{t: b.t, b: b, cmd: cmd, tty: tty, more: make(chan struct{}, 1), done: make(chan error, 1)}
	go s.read()
	b.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	return s
}

func (s *seat) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			s.done <- s.cmd.Wait()
			return
		}
	}
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[78=>]|\x1b\][^\x07]*\x07|\r`)

// seen is the text since the last wait, without control sequences.
func (s *seat) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return escapes.ReplaceAllString(s.text.String(), "")
}

// wait waits until the text shows, and forgets what came before it.
func (s *seat) wait(text string) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		seen := s.seen()
		if i := strings.Index(seen[s.from:], text); i >= 0 {
			s.from += i + len(text)
			return
		}
		select {
		case <-s.more:
		case err := <-s.done:
			s.done <- err
			if strings.Contains(s.seen()[s.from:], text) {
				continue
			}
			s.t.Fatalf("it ended (%v) without showing %q:\n%s", err, text, s.seen())
		case <-deadline:
			s.t.Fatalf("it never showed %q:\n%s", text, s.seen())
		}
	}
}

func (s *seat) keys(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the end and returns the exit code.
func (s *seat) ends() int {
	s.t.Helper()
	select {
	case err := <-s.done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		s.t.Fatalf("it does not end:\n%s", s.seen())
		return 0
	}
}

const down, enter, ctrlC = "\x1b[B", "\r", "\x03"

// agree says yes to the plan.
func (s *seat) agree() {
	s.t.Helper()
	s.wait("Install mail?")
	s.wait("Cancel")
	s.keys(down)
	s.wait("> Install")
	s.keys(enter)
}

// fillMail answers the form of the connector mail.
func (s *seat) fillMail(password string) {
	s.t.Helper()
	s.wait("Settings of mail (1 of 4)")
	s.keys("mail.example.org")
	s.wait("> mail.example.org")
	s.keys(enter)
	s.wait("Settings of mail (2 of 4)")
	s.keys(enter)
	s.wait("Settings of mail (3 of 4)")
	s.keys(password)
	s.wait("characters")
	s.keys(enter)
	s.wait("Settings of mail (4 of 4)")
	s.keys(enter)
}

// TestInstallAtATerminal is the main job as a person does it: a wrong password,
// one field edited, and the rest kept.
func TestInstallAtATerminal(t *testing.T) {
	b := newBench(t)
	s := b.sit("install", "mail")
	s.agree()
	s.wait("5 files")
	s.fillMail("a wrong password")
	s.wait("the server refused the password [redacted:MAIL_PASSWORD]")
	s.wait("What now?")
	s.keys(enter) // edit
	s.wait("(1 of 4)")
	s.wait("kept")
	s.keys(enter)
	s.wait("(2 of 4)")
	s.keys(enter)
	s.wait("(3 of 4)")
	s.keys("correct horse")
	s.wait("13 characters")
	s.keys(enter)
	s.wait("(4 of 4)")
	s.keys(enter)
	s.wait("signed in at mail.example.org:993")
	s.wait("mail is installed: 1.0.0 (version 1), ready.")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, secret := range []string{"a wrong password", "correct horse"} {
		for _, form := range encodings(secret) {
			if strings.Contains(s.seen(), form) {
				t.Errorf("the terminal shows a typed secret as %q", form)
			}
		}
	}
	if out := b.must("verify", "mail"); !strings.Contains(out, "mail.example.org:993") {
		t.Error(out)
	}
}

func TestSavePendingThenVerify(t *testing.T) {
	b := newBench(t)
	s := b.sit("install", "mail")
	s.agree()
	s.fillMail("a wrong password")
	s.wait("What now?")
	s.keys(down + down)
	s.wait("> Save them unverified")
	s.keys(enter)
	s.wait("mail is installed: 1.0.0 (version 1), pending.")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if code, _, _ := b.run(nil, "verify", "mail"); code != exitRefused {
		t.Errorf("verify with the wrong password: exit %d", code)
	}
	b.must("configure", "mail", "--secret-file", "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))
	if out := b.must("list"); !strings.Contains(out, "ready") {
		t.Error(out)
	}
}

// TestInterrupted presses Ctrl-C, and sends signals, at every place where a
// person can be: exit 130, the machine as it was, the terminal as it was.
func TestInterrupted(t *testing.T) {
	places := map[string]func(*seat){
		"consent": func(s *seat) { s.wait("Install mail?"); s.wait("Cancel") },
		"form":    func(s *seat) { s.agree(); s.wait("(1 of 4)"); s.keys("half typed"); s.wait("half typed") },
		"secret": func(s *seat) {
			s.agree()
			s.wait("(1 of 4)")
			s.keys("h" + enter)
			s.wait("(2 of 4)")
			s.keys(enter)
			s.wait("(3 of 4)")
			s.keys("half a secret")
			s.wait("13 characters")
		},
		"decision": func(s *seat) { s.agree(); s.fillMail("nope-nope"); s.wait("What now?"); s.wait("Give up") },
	}
	ways := map[string]func(*seat){
		"ctrl-c":  func(s *seat) { s.keys(ctrlC) },
		"sigterm": func(s *seat) { _ = s.cmd.Process.Signal(syscall.SIGTERM) },
		"sighup":  func(s *seat) { _ = s.cmd.Process.Signal(syscall.SIGHUP) },
	}
	for place, goThere := range places {
		for way, leave := range ways {
			t.Run(place+"/"+way, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				before := b.state()
				s := b.sit("install", "mail")
				was := termios(t, s.tty)
				goThere(s)
				leave(s)
				if code := s.ends(); code != exitInterrupted {
					t.Errorf("exit %d\n%s", code, s.seen())
				}
				if now := termios(t, s.tty); now != was {
					t.Errorf("the terminal is left in another state: %+v, was %+v", now, was)
				}
				if after := b.withoutTops(); after != before {
					t.Errorf("left behind:\n%s", after)
				}
				if strings.Contains(s.seen(), "half a secret") {
					t.Error("a half typed secret is on the screen")
				}
			})
		}
	}
}

type modes struct{ in, out, ctl, local uint64 }

func termios(t *testing.T, f *os.File) modes {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGetTermios)
	if err != nil {
		t.Fatal(err)
	}
	return modes{uint64(m.Iflag), uint64(m.Oflag), uint64(m.Cflag), uint64(m.Lflag)}
}

// running lists the command lines of processes that have this bench's home in
// their environment: those of connectors, wherever they hide.
func (b *bench) running() []string {
	var left []string
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range found {
		environ, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(environ), filepath.Join(b.dir, "home", "state")) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		left = append(left, strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return left
}

// TestInterruptedVerify presses Ctrl-C while verify runs: the test program is
// ended with everything that it started.
func TestInterruptedVerify(t *testing.T) {
	b := newBench(t)
	script := "import time\nopen('started', 'w').close()\ntime.sleep(3600)\n"
	if err := os.WriteFile(filepath.Join(b.dir, "market", "slow", "verify.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"fragment.json", "connector.json"} {
		path := filepath.Join(b.dir, "market", "slow", f)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`"version": 1`, `"version": 2`, `"timeout_secs": 1`, `"timeout_secs": 100`).Replace(string(data))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("catalog", "compile", filepath.Join(b.dir, "market"))
	s := b.sit("install", "slow", "--yes")
	s.wait("verifying (at most 100 s)")
	started := filepath.Join(b.dir, "home", "work", "slow", ".stage-*", "started")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(started); len(found) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("verify does not start:\n%s", s.seen())
		}
	}
	s.keys(ctrlC)
	if code := s.ends(); code != exitInterrupted {
		t.Errorf("exit %d\n%s", code, s.seen())
	}
	if left := b.running(); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if after := b.withoutTops(); after != "" {
		t.Errorf("left behind:\n%s", after)
	}
}
