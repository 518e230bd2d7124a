package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// steps runs the command once and returns the names of its steps, in order.
func (b *bench) steps(args ...string) []string {
	b.t.Helper()
	log := filepath.Join(b.dir, "steps")
	_ = os.Remove(log)
	if code, _, errs := b.run([]string{"SKALD_TEST_STEPS=" + log}, args...); code != 0 {
		b.t.Fatalf("%q: exit %d\n%s", args, code, errs)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for n := range strings.Lines(string(data)) {
		n = strings.TrimSuffix(n, "\n")
		if !slices.Contains(names, n) {
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

// TestKillAtEveryStep kills the program as kill -9 does before each step of
// install, configure and uninstall. Afterwards there is the old state or the
// new one, and the next command cleans up and works.
func TestKillAtEveryStep(t *testing.T) {
	probe := newBench(t)
	install := append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(probe.dir, "pw"))
	installSteps := probe.steps(install...)
	clean := probe.state()
	configureSteps := probe.steps("configure", "mail", "--set", "MAIL_PORT=143")
	uninstallSteps := probe.steps("uninstall", "mail")
	t.Logf("install: %v\nconfigure: %v\nuninstall: %v", installSteps, configureSteps, uninstallSteps)
	if len(installSteps) < 6 || len(configureSteps) < 3 || len(uninstallSteps) < 3 {
		t.Fatal("there are fewer steps than the flows have; the hook is not called")
	}
	for _, step := range installSteps {
		t.Run("install/"+step, func(t *testing.T) { t.Parallel(); killInstall(t, step, clean) })
	}
	for _, step := range configureSteps {
		t.Run("configure/"+step, func(t *testing.T) { t.Parallel(); killConfigure(t, step) })
	}
	for _, step := range uninstallSteps {
		t.Run("uninstall/"+step, func(t *testing.T) { t.Parallel(); killUninstall(t, step) })
	}
}

func (b *bench) kill(step string, args ...string) {
	b.t.Helper()
	if code, _, errs := b.run([]string{"SKALD_TEST_KILL_AT=" + step}, args...); code != -1 {
		b.t.Fatalf("it was not killed at %q: exit %d\n%s", step, code, errs)
	}
}

func killInstall(t *testing.T, step, clean string) {
	b := newBench(t)
	install := append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))
	b.kill(step, install...)
	if strings.Contains(b.must("list"), "mail") { // killed after the commit: the new state
		b.must("verify", "mail")
		b.must("uninstall", "mail")
	}
	b.must(install...)
	b.must("verify", "mail")
	if got := b.state(); got != clean {
		t.Errorf("after a kill at %q and another install there is\n%s\n\nwant\n%s", step, got, clean)
	}
}

func killConfigure(t *testing.T, step string) {
	b := newBench(t)
	b.must(append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))...)
	b.kill(step, "configure", "mail", "--set", "MAIL_PORT=143")
	if out := b.must("verify", "mail"); !strings.Contains(out, "h:993") && !strings.Contains(out, "h:143") {
		t.Errorf("neither the old nor the new settings: %s", out)
	}
	b.must("configure", "mail", "--set", "MAIL_PORT=587")
	if out := b.must("verify", "mail"); !strings.Contains(out, "h:587") {
		t.Errorf("the next configure did not hold: %s", out)
	}
	b.must("install", "plain", "--yes") // sweeps
	if vaults, _ := filepath.Glob(filepath.Join(b.dir, "home", "keystore", "mail.*.age")); len(vaults) != 1 {
		t.Errorf("vaults left: %v", vaults)
	}
}

func killUninstall(t *testing.T, step string) {
	b := newBench(t)
	b.must("install", "plain", "--yes")
	before := b.withoutTops()
	install := append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))
	b.must(install...)
	session := filepath.Join(b.dir, "home", "state", "mail", "state", "session") // the connector's own data
	if err := os.WriteFile(session, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.kill(step, "uninstall", "mail")
	if strings.Contains(b.must("list"), "mail") { // killed before the commit: the old state
		b.must("verify", "mail")
		b.must("uninstall", "mail")
	} else {
		b.must("install", "plain", "--as", "sweeper", "--yes")
		b.must("uninstall", "sweeper")
	}
	b.must("verify", "plain")
	if got := b.withoutTops(); got != before {
		t.Errorf("after a kill at %q there is\n%s\n\nwant\n%s", step, got, before)
	}
}
