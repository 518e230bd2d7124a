//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A stubborn connector stays in its way: what is put in front of the test
// server, and behind it.
type stubborn struct{ kind, before, after string }

func stubbornKinds() []stubborn {
	const leave = `
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"]%s)
        os._exit(0)
`
	const deaf = "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
	const stay = "\nwhile True: time.sleep(60)\n"
	apart := fmt.Sprintf(leave, ", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL")
	return []stubborn{
		{"polite", "", ""},
		{"ignores-eof", "", stay},
		{"ignores-term", deaf, stay},
		{"forks-twice", apart, ""}, // into sessions of their own, without its pipes
		{"holds-pipe", `subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])` + "\n", ""},
		{"all-of-it", deaf + fmt.Sprintf(leave, ""), stay},
	}
}

// ways are the ways in which a client ends a session.
func ways() map[string]func(*serving) {
	signal := func(sig os.Signal) func(*serving) {
		return func(s *serving) { _ = s.cmd.Process.Signal(sig) }
	}
	return map[string]func(*serving){
		"end of input": func(s *serving) { _ = s.in.Close() },
		"TERM":         signal(syscall.SIGTERM),
		"INT":          signal(syscall.SIGINT),
		"HUP":          signal(syscall.SIGHUP),
		"KILL":         signal(syscall.SIGKILL),
	}
}

// installStubborn puts every kind into one home.
func installStubborn(t *testing.T) *place {
	t.Helper()
	needPython(t)
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	var all []shipped
	for _, k := range stubbornKinds() {
		all = append(all, shipped{id: k.kind, files: map[string]string{"server.py": "import os, signal, subprocess, sys, time\n" + k.before + string(server) + k.after},
			change: func(m map[string]any) {
				m["env"] = []any{map[string]any{"name": "MAIL_PASSWORD", "label": "Password", "required": true, "secret": true}}
			}})
	}
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(t, all...), "TMPDIR="+t.TempDir())
	p.eachKind("install", "--yes", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD", "--no-verify")
	return p
}

// TestNothingOutlivesSessions ends fifty sessions in five ways, side by side,
// with connectors that do what they can to stay: ten seconds after it no process
// of theirs is left, no zombie, no lock, and no file with their secret.
func TestNothingOutlivesSessions(t *testing.T) {
	const rounds, atOnce, limit = 50, 25, 10 * time.Second
	p := installStubborn(t)
	kinds, all := stubbornKinds(), ways()
	names := slices.Sorted(maps.Keys(all))
	turn := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i := range rounds {
		kind, way := kinds[(i/len(names))%len(kinds)].kind, names[i%len(names)]
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			marker := fmt.Sprintf("%s/round-%d/", p.home, i)
			mine := *p
			mine.env = append(slices.Clone(p.env), "TZ=:"+marker) // one of the few that a connector is given
			s := mine.run(kind)
			s.greet()
			s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
			seen := marked(marker)
			if len(seen) < 2 {
				t.Errorf("%s, %s: only %d marked processes are found while it runs", kind, way, len(seen))
			}
			all[way](s)
			code := s.end()
			if want := map[string]int{"KILL": -1}[way]; code != want {
				t.Errorf("%s, %s: exit %d: %s", kind, way, code, s.errs.String())
			}
			ended := time.Now()
			for left := seen; len(left) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Since(ended) > limit {
					t.Errorf("%s, %s: left: %v", kind, way, left)
					return
				}
				left = append(marked(marker), alive(seen)...)
			}
		})
	}
	wait.Go(func() { p.secondSignal("all-of-it") })
	wait.Wait()
	p.nothingKept()
}

// secondSignal does not wait for the ladder.
func (p *place) secondSignal(kind string) {
	s := p.run(kind)
	s.greet()
	began := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	time.Sleep(100 * time.Millisecond) // two at once are one
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if code := s.end(); code != exitDone || time.Since(began) > 4*time.Second {
		p.t.Errorf("a second signal: exit %d after %s", code, time.Since(began))
	}
}

// nothingKept holds that no file has the secret and that every lock is free.
func (p *place) nothingKept() {
	p.t.Helper()
	dirs := []string{p.home}
	for _, v := range p.env {
		if dir, ok := strings.CutPrefix(v, "TMPDIR="); ok {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			for _, needle := range encodings(canary) {
				if bytes.Contains(data, []byte(needle)) {
					p.t.Errorf("%s holds the secret", path)
				}
			}
			return err
		})
		if err != nil {
			p.t.Error(err)
		}
	}
	locks := 0
	_ = filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".lock" {
			return err
		}
		locks++
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			p.t.Errorf("%s is held: %v", path, err)
		}
		return nil
	})
	if locks == 0 {
		p.t.Error("no lock file is found: the look-out is blind")
	}
	p.eachKind("uninstall", "--yes")
}

// eachKind runs a command for every kind, side by side: each takes its time to
// end when it is asked for its tools.
func (p *place) eachKind(command string, flags ...string) {
	var wait sync.WaitGroup
	for _, k := range stubbornKinds() {
		wait.Go(func() { p.do(append([]string{command, k.kind}, flags...)...) })
	}
	wait.Wait()
}

// marked lists the live processes that have a text in their environment or
// their arguments, as "PID starttime command".
func marked(marker string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*")
	var out []string
	for _, dir := range files {
		environ, _ := os.ReadFile(dir + "/environ") // a process that has ended has none
		args, _ := os.ReadFile(dir + "/cmdline")
		if bytes.Contains(environ, []byte(marker)) || bytes.Contains(args, []byte(marker)) {
			if id := identity(dir); id != "" {
				out = append(out, id)
			}
		}
	}
	return out
}

// alive gives those of seen that are still there, zombies included.
func alive(seen []string) []string {
	return slices.DeleteFunc(slices.Clone(seen), func(id string) bool {
		pid, _, _ := strings.Cut(id, " ")
		return identity("/proc/"+pid) != id
	})
}

// identity is what tells a process from a later one of the same number.
func identity(dir string) string {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return ""
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if open < 0 || len(fields) < 20 {
		return ""
	}
	return filepath.Base(dir) + " " + fields[19] + " " + string(stat[open+1:end])
}
