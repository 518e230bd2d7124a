//go:build unix

package form

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"skald-connectors/manifest"
)

// TestEveryWayOutRestoresTheTerminal leaves in the middle of a half-typed secret. finish compares the termios.
func TestEveryWayOutRestoresTheTerminal(t *testing.T) {
	signalTo := func(sig syscall.Signal) func(*console) {
		return func(c *console) { _ = c.cmd.Process.Signal(sig) }
	}
	keys := func(s string) func(*console) { return func(c *console) { c.send(s) } }
	for _, tt := range []struct {
		name  string
		leave func(*console)
		want  string // the error's text
	}{
		{"Ctrl-C", keys("\x03"), "aborted"},
		{"Esc", keys("\x1b"), "aborted"},
		{"SIGINT", signalTo(syscall.SIGINT), "aborted"},
		{"SIGTERM", signalTo(syscall.SIGTERM), "terminated"},
		{"SIGHUP", signalTo(syscall.SIGHUP), "hangup"},
		{"SIGQUIT", signalTo(syscall.SIGQUIT), "quit"},
	} {
		for _, term := range []string{xterm, "dumb"} {
			t.Run(tt.name+" "+term, func(t *testing.T) {
				t.Parallel()
				c := start(t, script{Term: term, Fields: []scripted{apiKey, last}}, 80, 24)
				c.expect("API key")
				if c.until("raw mode", func(string) bool { return c.termios().Lflag&unix.ECHO == 0 }); term == xterm {
					c.steps("1 of 2", canary[:10], "10 characters", "")
				} else {
					c.steps("not shown", canary[:10])
				}
				tt.leave(c)
				out := c.finish()
				if !out.Canceled && (!strings.Contains(out.Err, tt.want) || !out.Aborted) {
					t.Errorf("outcome %+v, want %q", out, tt.want)
				}
				c.hidden(canary[:10])
			})
		}
	}
}

func TestPanicRestoresTheTerminal(t *testing.T) {
	c := start(t, script{Term: xterm, Do: "panic"}, 80, 24)
	if err := c.cmd.Wait(); err == nil {
		t.Error("the panic did not end the child")
	}
	c.expect("in the form")
	c.restored()
}

// TestAbortDropsTheRestOfAPaste holds that a shell does not receive what was meant for the form.
func TestAbortDropsTheRestOfAPaste(t *testing.T) {
	c := start(t, script{Term: xterm, Fields: []scripted{apiKey}}, 80, 24)
	c.expect("API key")
	c.send("\x03" + "echo owned\r")
	if out := c.finish(); !out.Aborted {
		t.Errorf("outcome %+v", out)
	}
	waiting, err := unix.IoctlGetInt(int(c.tty.Fd()), fionread)
	if err != nil || waiting != 0 {
		t.Errorf("%d bytes are left for the shell (%v)", waiting, err)
	}
}

// TestSuspension stops the form as a shell's job and lets it go on. The job helper below stands in for the shell: in a
// session without one the kernel ignores the stop.
func TestSuspension(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(c *console, pid int)
	}{
		{"Ctrl-Z", func(c *console, _ int) { c.send("\x1a") }},
		{"SIGTSTP", func(_ *console, pid int) { _ = syscall.Kill(pid, syscall.SIGTSTP) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"Term":%q,"Do":"fill","Title":"Set up gmail","Fields":[{"Name":"KEY","Label":"API key","Secret":true},{"Name":"LAST"}]}`, xterm)
			cmd := exec.Command(os.Args[0], "-test.run=^TestJobHelper$")
			cmd.Env = append(os.Environ(), jobVariable+"="+text)
			c := startOn(t, cmd, 80, 24)
			c.steps("1 of 2", canary, "18 characters", "")
			pid := jobPid(t, c)
			tt.stop(c, pid)
			c.until("the job to stop", func(string) bool { return strings.Contains(c.output(), "<stopped>") })
			c.restored()
			if strings.Contains(c.text(), "API key") {
				t.Errorf("the form is still on the screen:\n%s", c.text())
			}
			_ = syscall.Kill(pid, syscall.SIGCONT)
			c.steps("18 characters", "\r", "2 of 2", "\r")
			if out := c.finish(); out.Values["KEY"] != canary {
				t.Errorf("outcome %+v", out)
			}
			c.hidden(canary)
		})
	}
}

func TestStopWithoutAShellGoesOn(t *testing.T) {
	c := start(t, script{Term: xterm, Fields: []scripted{apiKey, last}}, 80, 24)
	c.steps("1 of 2", "\x1a", "1 of 2", canary, "18 characters", "\r", "2 of 2", "\r")
	if out := c.finish(); out.Values["KEY"] != canary {
		t.Errorf("outcome %+v", out)
	}
}

const jobVariable = "FORM_TEST_JOB"

// TestJobHelper is no test: it starts the form as a foreground job and says when it stops.
func TestJobHelper(t *testing.T) {
	text := os.Getenv(jobVariable)
	if text == "" {
		t.Skip("only as a child of TestSuspension")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+text)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "result")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("<pid %d>", cmd.Process.Pid)
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err == unix.EINTR {
			continue
		} else if err != nil || status.Exited() || status.Signaled() {
			os.Exit(status.ExitStatus())
		}
		fmt.Print("<stopped>")
	}
}

func jobPid(t *testing.T, c *console) int {
	t.Helper()
	_, rest, _ := strings.Cut(c.output(), "<pid ")
	digits, _, ok := strings.Cut(rest, ">")
	pid, err := strconv.Atoi(digits)
	if !ok || err != nil {
		t.Fatalf("no pid in %q", c.output())
	}
	return pid
}

// TestSizes holds that no window is too small or too large: there is an answer in each.
func TestSizes(t *testing.T) {
	long := host
	long.Description = strings.Repeat("A long text that says much about the server and its many settings. ", 6)
	for _, size := range [][2]int{{0, 0}, {1, 1}, {4, 10}, {20, 3}, {20, 6}, {40, 12}, {80, 24}, {500, 200}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			c := start(t, script{Term: xterm, Color: true, Fields: []scripted{long, apiKey}}, size[0], size[1])
			c.until("raw mode", func(string) bool { return c.termios().Lflag&unix.ECHO == 0 })
			c.send("mail.test\r")
			c.until("the next field", func(string) bool {
				out := strings.Join(strings.Fields(c.output()), "")
				return strings.Contains(out, "(2of2)") || strings.Contains(out, "notshown")
			})
			c.send(canary + "\r")
			if out := c.finish(); out.Values["HOST"] != "mail.test" || out.Values["KEY"] != canary {
				t.Errorf("outcome %+v", out)
			}
			c.hidden(canary)
		})
	}
}

func TestThirtyFieldsOnTenRows(t *testing.T) {
	var fields []scripted
	for i := range 30 {
		fields = append(fields, scripted{Field: manifest.Field{Name: fmt.Sprintf("F%d", i), Label: fmt.Sprintf("Field number %d", i),
			Description: "What it is for."}})
	}
	c := start(t, script{Term: xterm, Fields: fields}, 60, 10)
	for i := range 30 {
		c.expect(fmt.Sprintf("(%d of 30)", i+1))
		c.expect(fmt.Sprintf("Field number %d\n", i))
		c.send(fmt.Sprintf("value-%d", i))
		c.expect(fmt.Sprintf("> value-%d", i))
		c.send("\r")
	}
	out := c.finish()
	for i := range 30 {
		if name := fmt.Sprintf("F%d", i); out.Values[name] != fmt.Sprintf("value-%d", i) {
			t.Errorf("%s = %q", name, out.Values[name])
		}
	}
}

func TestResizeStorm(t *testing.T) {
	c := start(t, script{Term: xterm, Color: true, Fields: []scripted{host, pem, last}}, 80, 24)
	c.expect("1 of 3")
	sizes := [][2]int{{80, 24}, {1, 1}, {200, 60}, {4, 10}, {20, 3}, {500, 200}, {0, 0}, {33, 7}}
	for i := range 200 {
		size := sizes[i%len(sizes)]
		c.resize(size[0], size[1])
		if i%20 == 0 {
			c.send("m")
		}
	}
	c.resize(80, 24)
	c.steps("mmmmmmmmmm", "\r", "2 of 3", bracketed(pemText("\n")), "40 lines", "\r", "3 of 3", "\r")
	if out := c.finish(); out.Values["HOST"] != "mmmmmmmmmm" || out.Values["PEM"] != pemText("\n") {
		t.Errorf("outcome %+v", out)
	}
}
