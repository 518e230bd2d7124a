//go:build unix

package form

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skald-connectors/internal/qrcode"
)

// runQR shows what the lines of the named pipe say: "code TEXT", "picture", "state TEXT", "note TEXT", "none", "done",
// "fail TEXT", "panic".
func (sc script) runQR(ctx context.Context, t *Terminal) error {
	news, err := os.OpenFile(sc.News, os.O_RDWR, 0) // held open for writing, so that it never ends
	if err != nil {
		return err
	}
	defer news.Close()
	save := func(image []byte) (string, error) {
		path := filepath.Join(filepath.Dir(sc.News), "code.png")
		return path, os.WriteFile(path, image, 0o600)
	}
	return t.QR(ctx, sc.Title, save, func(ctx context.Context, show func(QRView)) error {
		stop := context.AfterFunc(ctx, func() { news.Close() })
		defer stop()
		var v QRView
		lines := bufio.NewScanner(news)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			switch word {
			case "code":
				if v.Code, err = qrcode.Encode(rest); err != nil {
					return err
				}
				v.Picture = nil
			case "picture":
				v.Code, v.Picture = nil, []byte("not a picture")
			case "none":
				v.Code = nil
			case "state":
				v.State = rest
			case "note":
				v.Note = rest
			case "done":
				return nil
			case "fail":
				return errors.New(rest)
			case "panic":
				panic("in run")
			}
			show(v)
		}
		return ctx.Err()
	})
}

// newsPipe makes the named pipe of a script.
func newsPipe(t *testing.T) (path string, tell func(lines ...string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "news")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, func(lines ...string) {
		t.Helper()
		if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *console) untilRead(text string, l look) {
	c.t.Helper()
	c.until("a code that says "+text, func(s string) bool { return phone(photograph(strings.Split(s, "\n"), l)) == text })
}

func TestQRFollowsTheViews(t *testing.T) {
	news, tell := newsPipe(t)
	c := start(t, script{Do: "qr", Term: "xterm-256color", Color: true, News: news, Title: "Pair mail"}, 80, 30)
	tell("state Starting.")
	c.expect("Starting.")
	tell("state Read the code with your phone.", "code first", "note hostile \x1b[2J note")
	c.untilRead("first", lightLook)
	c.expect(`hostile \x1b[2J note`)
	tell("code second")
	c.untilRead("second", lightLook)
	c.resize(60, 20)
	c.untilRead("second", lightLook)
	c.resize(25, 8)
	c.expect("The code needs a window")
	c.resize(80, 30)
	c.untilRead("second", lightLook)
	tell("none", "state The phone has read it.")
	c.until("no code", func(s string) bool { return !strings.ContainsAny(s, "▀▄") && strings.Contains(s, "has read it") })
	tell("done")
	if out := c.finish(); out.Err != "" {
		t.Errorf("it ends with %q", out.Err)
	}
	if left := c.text(); left != "" {
		t.Errorf("on the screen is left:\n%s", left)
	}
}

func TestQRWaysOut(t *testing.T) {
	for name, c := range map[string]struct {
		keys, news string
		want       outcome
	}{
		"escape": {keys: "\x1b", want: outcome{Err: "left", Left: true}},
		"ctrl-c": {keys: "\x03", want: outcome{Err: "aborted", Aborted: true}},
		"fails":  {news: "fail the phone said no", want: outcome{Err: "the phone said no"}},
	} {
		t.Run(name, func(t *testing.T) {
			news, tell := newsPipe(t)
			con := start(t, script{Do: "qr", Term: "xterm-256color", News: news}, 80, 30)
			tell("state Read it.", "code secret-pairing")
			con.untilRead("secret-pairing", darkLook)
			if c.keys != "" {
				con.send(c.keys)
			} else {
				tell(c.news)
			}
			got := con.finish()
			if got.Err != c.want.Err || got.Left != c.want.Left || got.Aborted != c.want.Aborted {
				t.Errorf("%+v", got)
			}
			if strings.ContainsAny(con.text(), "▀▄█") {
				t.Errorf("the code is left on the screen:\n%s", con.text())
			}
		})
	}
}

func TestQRGivesTheTerminalBackOnAPanic(t *testing.T) {
	news, tell := newsPipe(t)
	c := start(t, script{Do: "qr", Term: "xterm-256color", News: news}, 80, 30)
	tell("state Read it.")
	c.expect("Read it.")
	tell("panic")
	if err := c.cmd.Wait(); err == nil {
		t.Error("the panic was lost")
	}
	c.restored()
}

func TestQRWithoutColours(t *testing.T) {
	news, tell := newsPipe(t)
	c := start(t, script{Do: "qr", Term: "xterm-256color", News: news}, 80, 30)
	tell("state Read it.", "code plain")
	c.untilRead("plain", darkLook)
	if strings.Contains(c.output(), "38;5") {
		t.Error("colours were used")
	}
	c.expect("i swap light and dark")
	c.send("i")
	c.untilRead("plain", lightLook)
	c.send("s")
	c.expect("Open this picture")
	data, err := os.ReadFile(filepath.Join(filepath.Dir(news), "code.png"))
	if err != nil {
		t.Fatal(err)
	}
	if saved, err := qrcode.Read(data); err != nil || saved.Text() != "plain" {
		t.Errorf("the picture: %v", err)
	}
	tell("code other")
	c.until("the note about the older picture to go", func(s string) bool { return !strings.Contains(s, "Open this picture") })
	tell("picture")
	c.expect("Open this picture")
	tell("done")
	c.finish()
}

func TestQRInLines(t *testing.T) {
	news, tell := newsPipe(t)
	c := start(t, script{Do: "qr", Term: "dumb", News: news}, 80, 60)
	tell("state Read it.", "code lines", "state Read it.")
	c.untilRead("lines", darkLook)
	c.expect("Esc leaves")
	if strings.Contains(c.output(), "\x1b[") {
		t.Errorf("a dumb terminal was sent sequences: %q", c.output())
	}
	tell("done")
	c.finish()
}

func TestQRLinkWhereNothingFits(t *testing.T) {
	news, tell := newsPipe(t)
	c := start(t, script{Do: "qr", Term: "xterm", News: news}, 60, 14)
	tell("state Read it.", "code sgnl://linkdevice?uuid=0123456789&pub_key="+strings.Repeat("x", 150))
	c.expect("The code needs a window of")
	c.expect("sgnl://linkdevice?")
	c.send("\x1b")
	c.finish()
}

// pane is a real terminal: tmux, whose screen is taken with its colours.
type pane struct {
	t      *testing.T
	socket string
}

func (p pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", p.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// screen is the pane's lines with the sequences of their colours, spaces at the ends included.
func (p pane) screen() []string {
	return strings.Split(strings.TrimRight(p.tmux("capture-pane", "-e", "-N", "-p", "-t", "qr"), "\n"), "\n")
}

var colourSequence = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestQRScreens holds that a phone reads the code off real screens, narrow to wide, dark and light.
func TestQRScreens(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal("tmux is missing and SKALD_TEST_REQUIRE is set")
		}
		t.Skip("tmux is missing")
	}
	for _, size := range [][2]int{{40, 24}, {40, 60}, {80, 24}, {80, 50}, {200, 60}} {
		for lookName, l := range map[string]look{"dark": darkLook, "light": lightLook} {
			for _, color := range []bool{true, false} {
				t.Run(fmt.Sprintf("%dx%d %s colour=%v", size[0], size[1], lookName, color), func(t *testing.T) {
					news, tell := newsPipe(t)
					text, err := json.Marshal(script{Do: "qr", Term: "tmux-256color", Color: color, News: news, Title: "Pair whatsapp with your phone"})
					if err != nil {
						t.Fatal(err)
					}
					p := pane{t: t, socket: fmt.Sprintf("skald-qr-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(filepath.Dir(news)))) + filepath.Base(filepath.Dir(news))}
					cmd := fmt.Sprintf("env %s='%s' '%s' -test.run='^$' 3>/dev/null; sleep 60", childVariable, text, os.Args[0])
					p.tmux("new-session", "-d", "-s", "qr", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]), cmd)
					t.Cleanup(func() { _ = exec.Command("tmux", "-L", p.socket, "kill-server").Run() })
					p.tmux("set", "-g", "status", "off")
					tell("state On your phone: Settings, Linked devices, Link a device.", "code "+messengerText)
					if !color && l == lightLook {
						p.tmux("send-keys", "-t", "qr", "i")
					}
					readOff(t, p, l)
				})
			}
		}
	}
}

// readOff waits until the screen shows the code, whole.
func readOff(t *testing.T, p pane, l look) {
	t.Helper()
	end := time.Now().Add(patience)
	var lines []string
	for time.Now().Before(end) {
		if lines = p.screen(); phone(photograph(lines, l)) == messengerText {
			return
		}
	}
	t.Errorf("no phone reads this:\n%s", colourSequence.ReplaceAllString(strings.Join(lines, "\n"), ""))
}
