//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"skald-connectors/activate/record"
)

var tortureTime = flag.Duration("torture", 0, "how long TestTorture runs; 0 = 8 s, 4 s with -short")

const (
	torturers     = 4   // processes at once
	tortureRounds = 200 // operations of each
)

// torturePlace is a home that several processes work on.
type torturePlace struct {
	*bench
	names []string
	codes map[string]map[int]int // exit codes by command
	mu    sync.Mutex
}

// TestTorture lets four processes do random things to three activations at the same time,
// all on one home: install, upgrade, roll back, pin, configure, limit tools, uninstall. After
// each round every activation that is listed answers a call, and nothing else is there. With
// -torture 60s it is the run of 200 operations by each.
func TestTorture(t *testing.T) {
	p := &torturePlace{bench: newBench(t), names: []string{"one", "two", "mail"}, codes: map[string]map[int]int{}}
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
	end := time.Now().Add(limit)
	rounds := 0
	for ; rounds < tortureRounds && time.Now().Before(end) && !t.Failed(); rounds++ {
		if rounds%4 == 3 { // greater versions come out while it runs
			for _, id := range []string{"plain", "mail"} {
				p.publish(id, rounds)
			}
		}
		var all sync.WaitGroup
		for range torturers {
			args := p.operation(rnd)
			all.Go(func() { p.do(args) })
		}
		all.Wait()
		p.check()
	}
	t.Logf("%d rounds of %d; exit codes %v", rounds, torturers, p.codes)
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

// do runs one operation. It may be refused, since another did something else meanwhile; it
// may not fail in a way that has no reason.
func (p *torturePlace) do(args []string) {
	cmd := exec.Command(p.self, args...)
	var says bytes.Buffer
	cmd.Env, cmd.Stderr = p.env, &says
	_ = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.codes[args[0]] == nil {
		p.codes[args[0]] = map[int]int{}
	}
	p.codes[args[0]][code]++
	if !slices.Contains([]int{exitDone, exitUsage, exitNotFound}, code) {
		p.t.Errorf("%q: exit %d\n%s", args, code, says.String())
	}
}

// check looks at the home while nobody works on it.
func (p *torturePlace) check() {
	p.t.Helper()
	listed, err := record.Open(filepath.Join(p.dir, "home")).List()
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, l := range listed {
		if l.Err != nil {
			p.t.Errorf("%s: %v", l.Name, l.Err)
			continue
		}
		names = append(names, l.Name)
		if code, _, errs := p.bench.run(nil, "call", l.Name, "echo", `{"text":"on"}`); code != exitDone {
			p.t.Errorf("%s is listed and does not run: exit %d\n%s", l.Name, code, errs)
		}
	}
	p.must("upgrade", "--all", "--index", "builtin") // sweeps, and upgrades nothing
	p.tidy(names...)
}
