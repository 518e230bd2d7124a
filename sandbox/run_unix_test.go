//go:build linux || darwin

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunResult(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		tests := []struct {
			name   string
			script string
			stdin  string
			want   Result
		}{
			{"exits at once", "exit 0", "", Result{}},
			{"exit code", "echo out; echo err >&2; exit 7", "", Result{Code: 7, Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
			{"signal", "kill -KILL $$", "", Result{Code: -1, Signal: "SIGKILL"}},
			{"input", "cat", "given", Result{Stdout: []byte("given")}},
			{"input that nobody reads", "exit 3", strings.Repeat("x", 1<<20), Result{Code: 3}},
			{"no shell between", `printf %s "$1"`, "", Result{Stdout: []byte(`a b;$HOME"*`)}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var stdin io.Reader
				if tt.stdin != "" {
					stdin = strings.NewReader(tt.stdin)
				}
				got, err := runIn(t.Context(), s, Policy{}, shell(t, nil, tt.script, `a b;$HOME"*`), stdin)
				if err != nil {
					t.Fatal(err)
				}
				if got.Code != tt.want.Code || got.Signal != tt.want.Signal || string(got.Stdout) != string(tt.want.Stdout) ||
					string(got.Stderr) != string(tt.want.Stderr) || got.TimedOut || got.Left != 0 {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			})
		}
	})
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("SKALD_TEST_OURS", "must not be seen")
	for _, env := range [][]string{nil, {"A=1"}, {"B=x=y", "A=", "C=\x01\n", "A=twice"}} {
		got, err := plainSandbox(t).Run(t.Context(), Policy{}, Command{Argv: []string{"/usr/bin/env"}, Dir: t.TempDir(), Env: env}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(append(env, ""), "\n"); string(got.Stdout) != want {
			t.Errorf("environment %q, want %q", got.Stdout, want)
		}
	}
}

func TestWorkingFolderAndTerminal(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		c := shell(t, nil, `pwd -P; if ( : </dev/tty ) 2>/dev/null; then echo terminal; fi; read x || echo empty`)
		got, err := runIn(t.Context(), s, Policy{}, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.EvalSymlinks(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := dir + "\nempty\n"; string(got.Stdout) != want {
			t.Errorf("got %q, want %q", got.Stdout, want)
		}
	})
}

func TestOutputIsBounded(t *testing.T) {
	size := "1073741824"
	if testing.Short() {
		size = "67108864"
	}
	p := Policy{Limits: Limits{Stdout: 4096}}
	got, err := plainSandbox(t).Run(t.Context(), p, childOf(t, nil, "flood", size), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Code != 0 || !got.StdoutCut || got.StderrCut || len(got.Stdout) != 4096 || !strings.HasSuffix(string(got.Stdout), "x\nlast line") {
		t.Errorf("code %d, cut %v %v, kept %d bytes ending in %q", got.Code, got.StdoutCut, got.StderrCut, len(got.Stdout), got.Stdout[max(0, len(got.Stdout)-20):])
	}
}

func TestWallLimit(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		limits := Limits{Wall: 400 * time.Millisecond, Grace: 100 * time.Millisecond}
		tests := []struct {
			name    string
			command Command
			signal  string
		}{
			{"ignores TERM", shell(t, nil, "trap '' TERM; exec sleep 300"), "SIGKILL"},
			{"closes its output and lives on", childOf(t, nil, "mute"), "SIGTERM"},
			{"stops itself", shell(t, nil, "kill -STOP $$"), "SIGTERM"},
			{"a child holds the pipe", shell(t, nil, "trap '' TERM; sleep 300 & wait"), "SIGKILL"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got, err := runIn(t.Context(), s, Policy{Limits: limits}, tt.command, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !got.TimedOut || got.Code != -1 || got.Signal != tt.signal || got.Elapsed < limits.Wall || got.Left != 0 {
					t.Errorf("got %+v", got)
				}
				within(t, got.Elapsed, 3*time.Second)
			})
		}
	})
}

func TestGraceIsGiven(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		c := childOf(t, nil, "polite")
		saved := filepath.Join(c.Dir, "saved")
		c.Argv = append(c.Argv, saved)
		p := start(t, s, c)
		line(t, p, "ready")
		got := p.Close(Ladder{Term: 10 * time.Second})
		if _, err := os.Stat(saved); err != nil || got.Code != 0 || got.Signal != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		within(t, got.Elapsed, 5*time.Second)
	})
}

func TestGrandchildHoldsThePipe(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		// The shell ends at once, its child would keep the pipe for minutes.
		got, err := runIn(t.Context(), s, Policy{}, shell(t, nil, "sleep 300 & echo done; exit 4"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Code != 4 || got.TimedOut || string(got.Stdout) != "done\n" {
			t.Errorf("got %+v", got)
		}
		within(t, got.Elapsed, 5*time.Second)
	})
}

func TestLastWordsOfGrandchildren(t *testing.T) {
	// A pipeline may still be writing when the shell has gone.
	got, err := plainSandbox(t).Run(t.Context(), Policy{}, shell(t, nil, "{ sleep 0.05; echo late; } & exit 0"), nil)
	if err != nil || string(got.Stdout) != "late\n" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestContextEndsRun(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		ctx, cancel := context.WithCancelCause(t.Context())
		in, feed := io.Pipe()
		why := errors.New("asked to stop")
		go func() {
			_, _ = feed.Write([]byte("x")) // returns when Run reads, so after the start
			cancel(why)
		}()
		got, err := runIn(ctx, s, Policy{Limits: Limits{Grace: 50 * time.Millisecond}}, childOf(t, nil, "stubborn"), in)
		if !errors.Is(err, why) || got.TimedOut || got.Signal == "" {
			t.Errorf("got %+v, %v", got, err)
		}
		within(t, got.Elapsed, 3*time.Second)
		if _, err := runIn(ctx, s, Policy{}, childOf(t, nil, "exit", "0"), nil); !errors.Is(err, why) {
			t.Errorf("cancelled before the start: %v", err)
		}
	})
}

func TestProcessCloseLadder(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		tests := []struct {
			name   string
			child  []string
			ladder Ladder
			want   Result
		}{
			{"ends at the end of input", []string{"echo"}, Ladder{Stdin: 10 * time.Second, Term: 10 * time.Second}, Result{}},
			{"ends at TERM", []string{"mute"}, Ladder{Stdin: 50 * time.Millisecond, Term: 10 * time.Second}, Result{Code: -1, Signal: "SIGTERM"}},
			{"ends at KILL", []string{"stubborn"}, Ladder{Stdin: 50 * time.Millisecond, Term: 50 * time.Millisecond}, Result{Code: -1, Signal: "SIGKILL"}},
			{"at once", []string{"stubborn"}, Ladder{}, Result{Code: -1, Signal: "SIGKILL"}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				p := start(t, s, childOf(t, nil, tt.child...))
				if tt.child[0] != "echo" {
					line(t, p, "ready")
				}
				got := p.Close(tt.ladder)
				if got.Code != tt.want.Code || got.Signal != tt.want.Signal || got.TimedOut || got.Left != 0 {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
				within(t, got.Elapsed, 5*time.Second)
				if again := p.Close(Ladder{Stdin: time.Hour}); again.Code != got.Code || p.Wait().Signal != got.Signal {
					t.Errorf("second Close gave %+v", again)
				}
			})
		}
	})
}

func TestSecondCloseHurries(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		p := start(t, s, childOf(t, nil, "stubborn"))
		line(t, p, "ready")
		first := make(chan Result)
		go func() { first <- p.Close(Ladder{Stdin: time.Hour}) }()
		p.Close(Ladder{})
		if got := <-first; got.Signal != "SIGKILL" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCloseHurriesStragglers(t *testing.T) {
	p, err := plainSandbox(t).Start(t.Context(), Policy{Limits: Limits{Grace: time.Hour}}, shell(t, nil, "trap '' TERM; sleep 300 & echo ready; exit 6"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdout.Close()
	defer p.Stderr.Close()
	line(t, p, "ready")
	<-p.child.ended // the straggler has an hour now
	got := p.Close(Ladder{})
	if got.Code != 6 || got.Left != 0 {
		t.Errorf("got %+v", got)
	}
	within(t, got.Elapsed, 5*time.Second)
}

func TestProcessTalks(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		p := start(t, s, childOf(t, nil, "echo"))
		for _, word := range []string{"one", "two"} {
			if _, err := io.WriteString(p.Stdin, word+"\n"); err != nil {
				t.Fatal(err)
			}
			line(t, p, word)
		}
		if got := p.Close(Ladder{Stdin: 10 * time.Second}); got.Code != 0 || got.Signal != "" {
			t.Errorf("got %+v", got)
		}
		if rest, err := io.ReadAll(p.Stdout); err != nil || len(rest) != 0 {
			t.Errorf("after the end: %q, %v", rest, err)
		}
	})
}

func TestOutputOutlivesTheProcess(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		p := start(t, s, shell(t, nil, "echo first; echo last; exit 0"))
		if got := p.Wait(); got.Code != 0 {
			t.Fatalf("got %+v", got)
		}
		if all, err := io.ReadAll(p.Stdout); err != nil || string(all) != "first\nlast\n" {
			t.Errorf("got %q, %v", all, err)
		}
	})
}

func TestContextEndsProcess(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := startIn(ctx, s, Policy{Limits: Limits{Grace: 50 * time.Millisecond}}, childOf(t, nil, "stubborn"))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Stdout.Close()
		defer p.Stderr.Close()
		line(t, p, "ready")
		cancel()
		if got := p.Wait(); got.Signal != "SIGKILL" {
			t.Errorf("got %+v", got)
		}
		if _, err := startIn(ctx, s, Policy{}, childOf(t, nil, "echo")); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before the start: %v", err)
		}
	})
}

func TestGroupIsNeverOurs(t *testing.T) {
	for _, tt := range []struct{ pid, group, own, want int }{
		{500, 500, 100, -500}, // its own group
		{500, 100, 100, 500},  // still in ours: the process alone
		{500, 300, 100, 500},  // in a foreign one
		{100, 100, 100, 0},    // ourselves
		{0, 0, 100, 0}, {1, 1, 100, 0}, {-1, -1, 100, 0},
	} {
		if got := groupTarget(tt.pid, tt.group, tt.own); got != tt.want {
			t.Errorf("groupTarget(%d, %d, %d) = %d, want %d", tt.pid, tt.group, tt.own, got, tt.want)
		}
	}
}

// start starts c and ends it with the test.
func start(t *testing.T, s *Sandbox, c Command) *Process {
	t.Helper()
	p, err := startIn(t.Context(), s, Policy{Limits: Limits{Grace: 100 * time.Millisecond}}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close(Ladder{})
		p.Stdout.Close()
		p.Stderr.Close()
	})
	return p
}

// line reads one line and compares it.
func line(t *testing.T, p *Process, want string) {
	t.Helper()
	got, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}
