//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestHelpFitsTheTerminal: no line of a help text, or of what is known of a connector, is broken by the terminal.
func TestHelpFitsTheTerminal(t *testing.T) {
	b := newBench(t)
	const width = 60
	for _, args := range [][]string{{"install", "--help"}, {"auth", "--help"}, {"help", "exit-codes"}, {}, {"info", "http-fetch", "--index", "builtin"}} {
		cmd := exec.Command(b.self, args...)
		cmd.Env = append(b.env, "TERM=xterm-256color", "CI=")
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: width, Rows: 40})
		if err != nil {
			t.Fatal(err)
		}
		s := &seat{t: t, b: b, cmd: cmd, tty: tty, more: make(chan struct{}, 1), done: make(chan error, 1)}
		s.read()
		_ = tty.Close()
		text := s.seen()
		if len(text) < 300 {
			t.Errorf("%v shows %q", args, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if n := len([]rune(line)); n >= width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%v: a line of %d columns: %q", args, n, line)
			}
		}
	}
}
