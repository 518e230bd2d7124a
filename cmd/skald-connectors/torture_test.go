//go:build unix

package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skald-connectors/activate/record"
)

var tortureTime = flag.Duration("torture", 0, "how long TestTorture runs; 0 = 8 s, 4 s with -short")

const (
	torturers  = 4                      // processes at once
	killOneOf  = 8                      // so many are killed at some moment, as kill -9 does,
	killWithin = 100 * time.Millisecond // of this time
)

// torturePlace is a home that several processes work on.
type torturePlace struct {
	*bench
	names  []string
	mu     sync.Mutex
	codes  map[string]map[int]int   // exit codes by command
	spent  map[string]time.Duration // by command, and "check"
	proved map[string]string        // what was on disk of an activation when it answered last
	calls  int
}

// newTorture is a bench whose interpreter is a quick one; for a long run the program is
// built as it is released, else it is the test binary.
func newTorture(t *testing.T, long bool) *torturePlace {
	t.Helper()
	p := &torturePlace{bench: newBench(t), names: []string{"one", "two", "mail"},
		codes: map[string]map[int]int{}, spent: map[string]time.Duration{}, proved: map[string]string{}}
	bin := filepath.Join(p.dir, "bin")
	build := func(out, pkg string) {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(bin, out), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	build("python3", "../../testdata/quick/python3")
	if long {
		build(program, ".")
		p.self = filepath.Join(bin, program)
	}
	p.env = append(p.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return p
}

// TestTorture lets four processes do random things to three activations at the same time,
// all on one home: install, upgrade, roll back, pin, configure, limit tools, uninstall; some are
// killed. After each round every activation that is listed answers a call, and nothing else is there. With
// -torture 60s the program is the released one, and they do more than 200 operations each.
func TestTorture(t *testing.T) {
	p := newTorture(t, *tortureTime > 0)
	limit := *tortureTime
	if limit == 0 {
		limit = 8 * time.Second
		if testing.Short() {
			limit = 4 * time.Second
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	end := began.Add(limit)
	rounds := 0
	for ; time.Now().Before(end) && !t.Failed(); rounds++ {
		if rounds%4 == 3 { // greater versions come out while it runs
			for _, id := range []string{"plain", "mail"} {
				p.publish(id, rounds)
			}
		}
		var all sync.WaitGroup
		for range torturers {
			args, kill := p.operation(rnd), time.Duration(0)
			if rnd.IntN(killOneOf) == 0 {
				kill = time.Duration(1 + rnd.IntN(int(killWithin)))
			}
			all.Go(func() { p.do(args, kill) })
		}
		all.Wait()
		p.check()
	}
	t.Logf("%d operations in %.0f s, %d calls; exit codes %v; %s", rounds*torturers, time.Since(began).Seconds(), p.calls, p.codes, p.shares())
	p.bench.run(nil, "uninstall", "--all")
	p.must("upgrade", "--all")
	if left := p.withoutTops(); left != "" {
		t.Errorf("left in the end:\n%s", left)
	}
}

// publish raises the version of a connector, by its whole text.
func (p *torturePlace) publish(id string, to int) {
	p.t.Helper()
	market := filepath.Join(p.dir, "market")
	if err := setVersion(market, id, to); err != nil {
		p.t.Fatal(err)
	}
	if err := compileMarket(market); err != nil {
		p.t.Fatal(err)
	}
}

// setVersion writes a version into both documents of a connector.
func setVersion(market, id string, to int) error {
	for _, file := range []string{"fragment.json", "connector.json"} {
		path := filepath.Join(market, id, file)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		for i, l := range lines {
			if bytes.HasPrefix(bytes.TrimSpace(l), []byte(`"version":`)) {
				lines[i] = fmt.Appendf(nil, "  \"version\": %d,\n", to)
			}
		}
		if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *torturePlace) operation(rnd *rand.Rand) []string {
	name := p.names[rnd.IntN(len(p.names))]
	if rnd.IntN(5) == 0 {
		if name == "mail" {
			return append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(p.dir, "pw"))
		}
		return []string{"install", "plain", "--as", name, "--yes"}
	}
	configure := []string{"configure", name, "--no-verify", "--sandbox", "auto"}
	all := [][]string{
		{"upgrade", "--all", "--yes"}, {"upgrade", name, "--yes", "--again"}, {"rollback", name}, {"rollback", name},
		{"pin", name}, {"unpin", name}, {"unpin", name}, configure, {"verify", name}, {"tools", name, "--deny", "send_it"},
		{"uninstall", name}, {"list"},
	}
	return all[rnd.IntN(len(all))]
}

// do runs one operation, to its end or, where kill is not 0, for so long. It may be refused,
// since another did something else meanwhile; it may not fail in a way that has no reason.
func (p *torturePlace) do(args []string, kill time.Duration) {
	cmd := exec.Command(p.self, args...)
	var says bytes.Buffer
	cmd.Env, cmd.Stderr = p.env, &says
	began := time.Now()
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent[args[0]] += time.Since(began)
	if p.codes[args[0]] == nil {
		p.codes[args[0]] = map[int]int{}
	}
	p.codes[args[0]][code]++
	if !slices.Contains([]int{exitDone, exitUsage, exitNotFound}, code) && (code != -1 || kill == 0) {
		p.t.Errorf("%q: exit %d\n%s", args, code, says.String())
	}
}

// shares says where the time went, the longest first.
func (p *torturePlace) shares() string {
	var out strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(p.spent), func(a, b string) int { return cmp.Compare(p.spent[b], p.spent[a]) }) {
		fmt.Fprintf(&out, "%s %.1f s ", name, p.spent[name].Seconds())
	}
	return out.String()
}

// check looks at the home while nobody works on it: what is listed answers a call, and
// nothing else is there. What has not changed by a byte, a file or a time since it
// answered is not called again.
func (p *torturePlace) check() {
	p.t.Helper()
	began := time.Now()
	defer func() { p.spent["check"] += time.Since(began) }()
	listed, err := record.Open(filepath.Join(p.dir, "home")).List()
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	var all sync.WaitGroup
	for _, l := range listed {
		if l.Err != nil {
			p.t.Errorf("%s: %v", l.Name, l.Err)
			continue
		}
		names = append(names, l.Name)
		if p.proved[l.Name] != p.onDisk(l.Record) {
			p.calls++
			all.Go(func() { p.answers(l.Record) })
		}
	}
	all.Wait()
	for _, l := range listed {
		if l.Err == nil {
			p.proved[l.Name] = p.onDisk(l.Record)
		}
	}
	p.must("upgrade", "--all", "--index", "builtin") // sweeps, and upgrades nothing
	p.tidy(names...)
}

func (p *torturePlace) answers(rec *record.Record) {
	cmd := exec.Command(p.self, "call", rec.Name, "echo", `{"text":"on"}`)
	cmd.Env = p.env
	if text, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(text, []byte("on")) {
		p.t.Errorf("%s is listed and does not run: %v\n%s", rec.Name, err, text)
	}
}

// onDisk is all that a start of an activation depends on: its record and tools as they
// are, and of each file below its folders and of its vault what the file system says.
func (p *torturePlace) onDisk(rec *record.Record) string {
	p.t.Helper()
	home := filepath.Join(p.dir, "home")
	var out strings.Builder
	for _, top := range []string{"activations", "tools"} {
		data, err := os.ReadFile(filepath.Join(home, top, rec.Name+".json"))
		if err != nil {
			p.t.Error(err)
		}
		out.Write(data)
	}
	vaults, _ := filepath.Glob(filepath.Join(home, "keystore", "*"))
	for _, root := range append(vaults, filepath.Join(home, "work", rec.Name), filepath.Join(home, "state", rec.Name), filepath.Join(home, "connectors", rec.Connector)) {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintln(&out, path, info.Mode(), info.Size(), info.ModTime().UnixNano(), st.Ino)
			return nil
		})
		if err != nil {
			p.t.Error(err)
		}
	}
	return out.String()
}
