package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skald-connectors/activate/record"
)

// bench is one home that programs are run on, as separate processes.
type bench struct {
	t    *testing.T
	dir  string
	env  []string
	self string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	needPython(t)
	dir := t.TempDir()
	market, err := filepath.Abs("testdata/market")
	if err != nil {
		t.Fatal(err)
	}
	if err := copyMarket(market, filepath.Join(dir, "market")); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"pw": "correct horse\n", "pw2": "correct horse\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := exec.LookPath(program) // testscript put the test binary there
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, self: self}
	b.env = append(os.Environ(), "HOME="+dir, "SKALD_CONNECTORS_HOME="+filepath.Join(dir, "home"),
		"SKALD_CONNECTORS_INDEX="+filepath.Join(dir, "market"), "SKALD_CONNECTORS_KEYSTORE=keyfile")
	return b
}

// withoutTops is the state without the empty folders at the top.
func (b *bench) withoutTops() string {
	var lines []string
	for line := range strings.SplitSeq(b.state(), "\n") {
		if strings.Contains(line, string(filepath.Separator)) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// run runs the program and returns its exit code, -1 for a kill.
func (b *bench) run(extra []string, args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	cmd := exec.Command(b.self, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(slices.Clone(b.env), extra...), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (b *bench) must(args ...string) string {
	b.t.Helper()
	code, out, errs := b.run(nil, args...)
	if code != 0 {
		b.t.Fatalf("%q: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// steps runs the command once and returns the names of its steps, each once, in order.
func (b *bench) steps(args ...string) []string {
	b.t.Helper()
	return b.stepsFrom(exitDone, "", args...)
}

// stepsFrom runs the command once, which ends with that code, and returns its steps from one on; there a second one is "NAME#2".
func (b *bench) stepsFrom(code int, after string, args ...string) []string {
	b.t.Helper()
	log := filepath.Join(b.dir, "steps")
	_ = os.Remove(log)
	if got, _, errs := b.run([]string{"SKALD_TEST_STEPS=" + log}, args...); got != code {
		b.t.Fatalf("%q: exit %d\n%s", args, got, errs)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	seen, begun := map[string]int{}, after == ""
	for n := range strings.Lines(string(data)) {
		n = strings.TrimSuffix(n, "\n")
		seen[n]++
		if begun = begun || n == after; begun && seen[n] > 1 && after != "" {
			n = fmt.Sprintf("%s#%d", n, seen[n])
		}
		if begun && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// state lists what is on disk, without caches, locks and logs.
func (b *bench) state() string {
	b.t.Helper()
	var lines []string
	home := filepath.Join(b.dir, "home")
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		rel, _ := filepath.Rel(home, path)
		top, _, _ := strings.Cut(rel, string(filepath.Separator))
		if err == nil && top != "cache" && top != "locks" && top != "sandbox" && top != "." && !strings.HasSuffix(rel, ".lock") && !strings.Contains(rel, "__pycache__") && !strings.HasSuffix(rel, ".age") {
			lines = append(lines, rel)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

var installMail = []string{"install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-file"}

func (b *bench) kill(step string, args ...string) {
	b.t.Helper()
	if code, _, errs := b.run([]string{"SKALD_TEST_KILL_AT=" + step}, args...); code != -1 {
		b.t.Fatalf("it was not killed at %q: exit %d\n%s", step, code, errs)
	}
}

// kinds leaves one step of each kind: "stage-file a" and "stage-file b" are the same.
func kinds(steps []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range steps {
		kind, _, _ := strings.Cut(s, " ")
		kind, _, _ = strings.Cut(kind, "#")
		if !seen[kind] {
			out = append(out, s)
		}
		seen[kind] = true
	}
	return out
}

// clone is a bench with a copy of the home, on the same marketplace.
func (b *bench) clone(t *testing.T) *bench {
	t.Helper()
	c := &bench{t: t, dir: t.TempDir(), self: b.self}
	if text, err := exec.Command("cp", "-a", filepath.Join(b.dir, "home"), filepath.Join(b.dir, "pw"), c.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c.env = append(slices.Clone(b.env), "HOME="+c.dir, "SKALD_CONNECTORS_HOME="+filepath.Join(c.dir, "home"))
	return c
}

// bump publishes a greater version of a connector.
func (b *bench) bump(id string) {
	b.t.Helper()
	market := filepath.Join(b.dir, "market")
	if err := errors.Join(bump(market, id), compileMarket(market)); err != nil {
		b.t.Fatal(err)
	}
}

// mail says what is there of the activation: "none", or its version and port.
func (b *bench) mail() string {
	b.t.Helper()
	rec, err := record.Open(filepath.Join(b.dir, "home")).Read("mail")
	var gone *record.NotInstalledError
	switch {
	case errors.As(err, &gone):
		return "none"
	case err != nil:
		b.t.Fatal(err)
	}
	return fmt.Sprintf("version %d, port %s", rec.Version, rec.Env["MAIL_PORT"])
}

// slowUnderRace skips a test of very many processes that are killed: what they share is files.
func slowUnderRace(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("many processes that are killed; the run without the race detector has them")
	}
}

// TestKillAtEveryStep kills the program as kill -9 does before each step of every command
// that changes an activation. Afterwards there is the old state or the new one, what is
// there runs, the same command then comes to its end, and nothing is left over. The
// outcomes are the table of docs/upgrading.md.
func TestKillAtEveryStep(t *testing.T) {
	slowUnderRace(t)
	var mu sync.Mutex
	outcome := map[string]string{}
	var order []string
	t.Run("kill", func(t *testing.T) {
		for _, f := range killFlows(t) {
			clean := f.from.clone(t)
			steps := clean.stepsFrom(f.code, f.after, f.args...)
			some := len(steps)
			if f.every != "" {
				some = slices.Index(steps, f.every)
			}
			steps = slices.Concat(kinds(steps[:some]), steps[some:])
			if len(steps) < 3 {
				t.Fatalf("%s has the steps %v only; the hook is not called", f.name, steps)
			}
			clean.must("upgrade", "--all", "--yes") // sweeps
			want := clean.state()
			for _, step := range steps {
				kind, _, _ := strings.Cut(step, " ")
				kind, _, _ = strings.Cut(kind, "#")
				row := f.name + " | " + kind
				if !slices.Contains(order, row) {
					order = append(order, row)
				}
				t.Run(f.name+"/"+step, func(t *testing.T) {
					t.Parallel()
					was := killAndGoOn(t, f, step, want)
					mu.Lock()
					defer mu.Unlock()
					if before := outcome[row]; before != "" && before != was {
						was = "old or new"
					}
					outcome[row] = was
				})
			}
		}
	})
	var table strings.Builder
	for _, row := range order {
		fmt.Fprintf(&table, "| %s | %s |\n", row, outcome[row])
	}
	checkTable(t, "upgrading.md", "| command | killed before | state |\n|---|---|---|\n", table.String())
}

// killAndGoOn says what is there after a kill: old or new.
func killAndGoOn(t *testing.T, f killFlow, step, want string) string {
	b := f.from.clone(t)
	b.kill(step, f.args...)
	was := "old"
	switch now := b.mail(); now {
	case f.new:
		was = "new"
	case f.old:
	default:
		t.Errorf("after a kill at %q there is %q, neither %q nor %q", step, now, f.old, f.new)
	}
	if b.mail() != "none" && (f.redo == nil || was == "old") {
		b.must("call", "mail", "echo", `{"text":"it runs"}`)
	}
	again := f.args
	if f.redo != nil {
		again = f.redo
	}
	if code, _, errs := b.run(nil, again...); !slices.Contains(f.again, code) {
		t.Errorf("after a kill at %q the same command ends with %d\n%s", step, code, errs)
	}
	b.must("upgrade", "--all", "--yes") // sweeps
	if now := b.mail(); now != f.end() {
		t.Errorf("after a kill at %q and the same again there is %q", step, now)
	}
	if got := withoutSession(b.state()); got != withoutSession(want) {
		t.Errorf("after a kill at %q and the same again there is\n%s\n\nwant\n%s", step, got, want)
	}
	vaults, _ := filepath.Glob(filepath.Join(b.dir, "home", "keystore", "mail.*.age"))
	most := map[string]int{"upgrade": 2, "uninstall": 0, "uninstall --all --purge": 0}
	if limit, special := most[f.name]; special && len(vaults) > limit || !special && len(vaults) != 1 {
		t.Errorf("vaults left: %v", vaults)
	}
	return was
}

// withoutSession leaves out what a call wrote, and what a start noted of the files that it read.
func withoutSession(state string) string {
	var lines []string
	for line := range strings.SplitSeq(state, "\n") {
		if top, _, _ := strings.Cut(line, "/"); top != "logs" && top != "calls" && top != "checked" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

var updateDocs = flag.Bool("update", false, "write generated tables into docs")

// checkTable holds a generated table against the one of a page in docs that has that head.
func checkTable(t *testing.T, page, head, table string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", page)
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), head)
	if !found {
		t.Fatalf("%s has no table of kills", path)
	}
	var now strings.Builder
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		now.WriteString(line)
	}
	switch {
	case now.String() == table:
	case *updateDocs:
		if err := os.WriteFile(path, []byte(before+head+table+rest[now.Len():]), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table of kills; go test -run '^%s$' -update writes\n%s", path, t.Name(), table)
	}
}
