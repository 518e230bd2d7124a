//go:build unix

package form

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// patience is how long a test waits for what must come. It is only spent when something is broken.
const patience = 20 * time.Second

// A script tells the child process, which has the pty as its terminal, what to ask.
type script struct {
	Term       string
	Accessible bool
	Color      bool
	Do         string // fill, confirm, choose, pick, passphrase, new-passphrase, type, qr, panic
	Title      string
	Fields     []scripted
	News       string // qr: a named pipe with the lines that change the view
}

// scripted is a question that survives JSON.
type scripted struct {
	manifest.Field
	Current string
	Kept    bool
	Problem string
}

// outcome is what the child reports through a pipe, which is not the terminal.
type outcome struct {
	Err      string
	Aborted  bool
	Canceled bool
	Left     bool
	Values   map[string]string
	Kept     map[string]bool
}

const childVariable = "FORM_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

// child runs a script on the terminal at its standard streams and reports to file 3.
func child(text string) int {
	var sc script
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	t, err := Open(os.Stdin, os.Stdout, Options{Term: sc.Term, Accessible: sc.Accessible, Color: sc.Color, Home: os.Getenv("HOME")})
	out := outcome{Values: map[string]string{}, Kept: map[string]bool{}}
	if err == nil {
		err = sc.run(ctx, t, &out)
	}
	if err != nil {
		out.Err = err.Error()
	}
	out.Left = errors.Is(err, ErrLeft)
	out.Aborted, out.Canceled = errors.Is(err, ErrAborted), errors.Is(err, context.Canceled)
	if json.NewEncoder(os.NewFile(3, "result")).Encode(out) != nil {
		return 4
	}
	return 0
}

func (sc script) run(ctx context.Context, t *Terminal, out *outcome) error {
	switch sc.Do {
	case "confirm":
		yes, err := t.Confirm(ctx, sc.Title, "It will run here.\nIt asks for one key.\n", "Install", "Cancel")
		out.Values["confirm"] = map[bool]string{true: "yes", false: "no"}[yes]
		return err
	case "choose":
		v, err := t.Choose(ctx, sc.Title, []Option{{"edit", "Edit the answers"}, {"retry", "Try again"}, {"give-up", "Give up"}})
		out.Values["choose"] = v
		return err
	case "pick":
		v, err := t.Pick(ctx, sc.Title, []Option{{"claude-code", "Claude Code"}, {"cursor", "Cursor"}, {"codex", "Codex"}})
		out.Values["pick"] = strings.Join(v, " ")
		return err
	case "passphrase", "new-passphrase":
		s, err := t.Passphrase(ctx, sc.Title, sc.Do == "new-passphrase")
		out.Values["passphrase"] = s.Reveal()
		return err
	case "type":
		ok, err := t.Type(ctx, sc.Title, "gmail")
		out.Values["type"] = map[bool]string{true: "yes", false: "no"}[ok]
		return err
	case "qr":
		return sc.runQR(ctx, t)
	case "panic":
		return t.inSession(ctx, func(s *session) error { s.write("about to panic"); panic("in the form") })
	}
	var qs []Question
	for _, f := range sc.Fields {
		qs = append(qs, Question{Field: f.Field, Current: keystore.NewSecret(f.Current), Kept: f.Kept, Problem: f.Problem})
	}
	answers, err := t.Fill(ctx, sc.Title, qs)
	for name, a := range answers {
		out.Values[name], out.Kept[name] = a.Value.Reveal(), a.Kept
	}
	return err
}

// A console is the other end of the child's terminal.
type console struct {
	t      *testing.T
	pty    *os.File
	tty    *os.File // kept open, so that termios can be read after the child has gone
	cmd    *exec.Cmd
	result *os.File

	mu     sync.Mutex
	raw    bytes.Buffer
	screen *screenText
	change chan struct{}
	gone   chan struct{}
	before unix.Termios
}

// start runs a script on a new terminal of the given size.
func start(t *testing.T, sc script, cols, rows int) *console {
	t.Helper()
	if sc.Title == "" {
		sc.Title = "Set up gmail"
	}
	text, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	return startOn(t, cmd, cols, rows)
}

func startOn(t *testing.T, cmd *exec.Cmd, cols, rows int) *console {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no pty here: %v", err)
	}
	c := &console{t: t, pty: master, tty: tty, cmd: cmd, screen: newScreenText(max(cols, 1), max(rows, 1)),
		change: make(chan struct{}, 1), gone: make(chan struct{})}
	c.resize(cols, rows)
	c.before = c.termios()
	var report *os.File
	if c.result, report, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.ExtraFiles = append(cmd.ExtraFiles, report)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	report.Close()
	go c.follow()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		c.tty.Close()
		c.pty.Close()
		<-c.gone
	})
	return c
}

// follow keeps the screen up to date.
func (c *console) follow() {
	defer close(c.gone)
	buf := make([]byte, 4096)
	for {
		n, err := c.pty.Read(buf)
		c.mu.Lock()
		c.raw.Write(buf[:n])
		c.screen.write(buf[:n])
		c.mu.Unlock()
		select {
		case c.change <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (c *console) resize(cols, rows int) {
	c.t.Helper()
	c.mu.Lock() // what is drawn for the new size meets a screen of that size
	defer c.mu.Unlock()
	if c.screen != nil && cols > 0 && rows > 0 {
		c.screen.resize(cols, rows)
	}
	if err := pty.Setsize(c.pty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) termios() unix.Termios {
	c.t.Helper()
	tio, err := unix.IoctlGetTermios(int(c.tty.Fd()), tcgets)
	if err != nil {
		c.t.Fatal(err)
	}
	return *tio
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.pty, text); err != nil {
		c.t.Fatal(err)
	}
}

// text is what stands on the screen now.
func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

// output is every byte that the child has written.
func (c *console) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// until waits for a state of the screen.
func (c *console) until(what string, is func(screen string) bool) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !is(c.text()) {
		select {
		case <-c.change:
		case <-deadline.C:
			c.t.Fatalf("waited for %s; the screen shows\n%s", what, c.text())
		}
	}
}

func (c *console) expect(want string) {
	c.t.Helper()
	c.until("the text "+want, func(s string) bool { return strings.Contains(s, want) })
}

// steps sends keys and waits for what they show: expect, send, expect, send, ...
func (c *console) steps(pairs ...string) {
	c.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		c.expect(pairs[i])
		c.send(pairs[i+1])
	}
}

// finish waits for the child's report and its end, and holds that the terminal is as it was.
func (c *console) finish() outcome {
	c.t.Helper()
	_ = c.result.SetReadDeadline(time.Now().Add(patience))
	var out outcome
	if err := json.NewDecoder(c.result).Decode(&out); err != nil {
		c.t.Fatalf("no report (%v); the screen shows\n%s", err, c.text())
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the child: %v", err)
	}
	c.restored()
	return out
}

// restored holds that nothing of the form is left in the terminal.
func (c *console) restored() {
	c.t.Helper()
	if now := c.termios(); now != c.before {
		c.t.Errorf("termios after\n%+v\nbefore\n%+v", now, c.before)
	}
	c.until("the modes to be off", func(string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.screen.modes["25"] != "l" && c.screen.modes["2004"] != "h" && c.screen.modes["1049"] == "" && c.screen.modes["1004"] == ""
	})
	if strings.Contains(c.output(), "?1049") || strings.Contains(c.output(), "\x1b]") || strings.Contains(c.output(), "\x1b[6n") || strings.Contains(c.output(), "$p") {
		c.t.Errorf("the output holds an alternate screen or a query: %q", c.output())
	}
}

// hidden holds that a secret is nowhere in the output.
func (c *console) hidden(secret string) {
	c.t.Helper()
	if strings.Contains(c.output(), secret) {
		c.t.Errorf("the output holds the secret %q", secret)
	}
}
