//go:build unix

package main

import (
	"bytes"
	"errors"
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
)

// TestKillAtRandomMoments kills upgrades and rollbacks wherever they are, twenty times one
// after the other on the same home, while other commands read and write it. The home is
// never repaired in between. About 10 s.
func TestKillAtRandomMoments(t *testing.T) {
	slowUnderRace(t)
	b := newBench(t)
	b.must(append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))...)
	b.must("install", "plain", "--yes")
	b.bump("mail")
	stop := make(chan struct{})
	var load sync.WaitGroup
	for _, args := range [][]string{{"list"}, {"configure", "plain", "--no-verify", "--sandbox", "auto"}} {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = b.start(args...).Wait()
				}
			}
		})
	}
	kills := 20
	if testing.Short() {
		kills = 6
	}
	for i := range kills {
		args := [][]string{{"upgrade", "mail", "--yes", "--again"}, {"rollback", "mail"}}[i%2]
		c := b.start(args...)
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond) // a random moment is what is wanted
		_ = syscall.Kill(c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if now := b.mail(); now != "version 1, port 993" && now != "version 2, port 993" {
			t.Fatalf("after kill %d there is %q", i, now)
		}
		b.must("call", "mail", "echo", `{"text":"it runs"}`)
	}
	close(stop)
	load.Wait()
	b.must("upgrade", "mail", "--yes", "--again")
	b.must("upgrade", "--all") // sweeps
	b.tidy("mail", "plain")
}

// TestUnfinishedFilesGo: a file that was being written when its writer was killed goes with
// the next sweep, also where nothing of its name is ever written again.
func TestUnfinishedFilesGo(t *testing.T) {
	b := newBench(t)
	b.must("install", "plain", "--yes")
	var left []string
	for _, file := range []string{"activations/.two.json", "tools/.two.json", "receipts/.two.json", "keystore/.two.1.age", "providers/.two.json", "checked/.two@1-0", "mounts/.two.json", "trust/.two.json", ".marketplaces.json"} {
		path := filepath.Join(b.dir, "home", filepath.FromSlash(file)+".tmp-abcdefghijklm")
		left = append(left, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.must("upgrade", "--all")
	for _, path := range left {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("left: %s", path)
		}
	}
}

// TestKilledUninstallLeavesNoLogs: what was called is private, also after an uninstall that was killed.
func TestKilledUninstallLeavesNoLogs(t *testing.T) {
	b := newBench(t)
	b.must("install", "plain", "--as", "one.log", "--yes")
	b.must("install", "plain", "--as", "two", "--yes")
	for _, name := range []string{"one.log", "two"} {
		b.must("call", name, "echo", `{"text":"on"}`)
	}
	b.kill("remove-logs", "uninstall", "one.log")
	b.must("upgrade", "--all")
	for _, folder := range []string{"logs", "calls"} {
		left := entriesOf(t, filepath.Join(b.dir, "home", folder))
		if len(left) == 0 || slices.ContainsFunc(left, func(e string) bool { return !strings.HasPrefix(e, "two.") }) {
			t.Errorf("%s holds %v", folder, left)
		}
	}
}

// start starts the program and looks at nothing that it says.
func (b *bench) start(args ...string) *exec.Cmd {
	cmd := exec.Command(b.self, args...)
	cmd.Env = b.env
	if err := cmd.Start(); err != nil {
		b.t.Error(err)
	}
	return cmd
}

// tidy checks that there is what the records name and nothing else: the folders of those
// activations, at most two versions and two vaults of each.
func (b *bench) tidy(names ...string) {
	b.t.Helper()
	home := filepath.Join(b.dir, "home")
	for folder, most := range map[string]int{"work": 2, "connectors": 2} {
		for _, e := range entriesOf(b.t, filepath.Join(home, folder)) {
			if folder == "work" && !slices.Contains(names, e) {
				b.t.Errorf("left: %s/%s", folder, e)
			}
			if folder == "work" && len(entriesOf(b.t, filepath.Join(home, folder, e))) > most {
				b.t.Errorf("left: %v", entriesOf(b.t, filepath.Join(home, folder, e)))
			}
		}
	}
	for _, pattern := range []string{"*/.stage-*", "*/*/.stage-*", "*/*/.trash-*", "locks/.stage-*", "locks/.use-*", "*/.*.tmp-*"} {
		if found, _ := filepath.Glob(filepath.Join(home, pattern)); len(found) > 0 {
			b.t.Errorf("left: %v", found)
		}
	}
	for _, folder := range []string{"activations", "tools", "state"} {
		for _, e := range entriesOf(b.t, filepath.Join(home, folder)) {
			if name, _, _ := bytes.Cut([]byte(e), []byte(".json")); !slices.Contains(names, string(name)) {
				b.t.Errorf("left: %s/%s", folder, e)
			}
		}
	}
	for _, name := range names {
		if vaults, _ := filepath.Glob(filepath.Join(home, "keystore", name+".*.age")); len(vaults) > 2 {
			b.t.Errorf("left: %v", vaults)
		}
	}
}

func entriesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestTwoAtOnce lets two processes do the same at the same time: both end well, or the
// second says why not, and it is done once.
func TestTwoAtOnce(t *testing.T) {
	b := newBench(t)
	b.must(append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))...)
	b.bump("mail")
	for _, c := range []struct {
		args  []string
		after string
		codes []int
	}{
		{[]string{"upgrade", "mail", "--yes"}, "version 2, port 993", []int{exitDone}},
		{[]string{"rollback", "mail"}, "version 1, port 993", []int{exitDone, exitNotFound}},
		{[]string{"pin", "mail"}, "version 1, port 993", []int{exitDone}},
		{[]string{"uninstall", "mail"}, "none", []int{exitDone, exitNotFound}},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			var both [2]*exec.Cmd
			var says [2]bytes.Buffer
			for i := range both {
				both[i] = exec.Command(b.self, c.args...)
				both[i].Env, both[i].Stderr = b.env, &says[i]
				if err := both[i].Start(); err != nil {
					t.Fatal(err)
				}
			}
			done := 0
			for i, p := range both {
				_ = p.Wait()
				code := p.ProcessState.ExitCode()
				if code == exitDone {
					done++
				}
				if !slices.Contains(c.codes, code) {
					t.Errorf("exit %d: %s", code, says[i].String())
				}
			}
			if now := b.mail(); now != c.after || done == 0 {
				t.Errorf("there is %s, want %s; %d ended well", now, c.after, done)
			}
		})
	}
	b.tidy()
}
