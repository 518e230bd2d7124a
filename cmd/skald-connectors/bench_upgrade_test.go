//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	upgradeCount = 18 // connectors of six files each
	upgradeReply = 20 * time.Millisecond
)

// upgradeMarket writes a marketplace of upgradeCount connectors, all of one version.
func upgradeMarket(b *testing.B, dir string, version int) {
	b.Helper()
	var ids []string
	for i := range upgradeCount {
		id := fmt.Sprintf("c%02d", i)
		ids = append(ids, fmt.Sprintf("%q", id))
		if err := os.CopyFS(filepath.Join(dir, id), os.DirFS("testdata/market/plain")); err != nil {
			b.Fatal(err)
		}
		for _, file := range []string{"fragment.json", "connector.json"} {
			path := filepath.Join(dir, id, file)
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			text := strings.NewReplacer("plain", id, "Plain", id).Replace(string(data))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		for j := range 2 {
			text := bytes.Repeat(fmt.Appendf(nil, "# line of version %d of %s\n", version, id), 700)
			if err := os.WriteFile(filepath.Join(dir, id, fmt.Sprintf("part%d.py", j)), text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		if err := setVersion(dir, id, version); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte("["+strings.Join(ids, ",")+"]"), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := compileMarket(dir); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUpgradeAll upgrades eighteen connectors from a marketplace that takes 20 ms for
// each answer: what is downloaded and planned against curl for the same files, and the whole,
// with both starts of every server, against as many verify of the same connectors.
func BenchmarkUpgradeAll(b *testing.B) {
	dir := b.TempDir()
	self := buildFor(b, dir, ".")
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	upgradeMarket(b, one, 1)
	upgradeMarket(b, two, 2)
	past := time.Now().Add(-time.Hour) // two indexes of one second would be one to If-Modified-Since
	if err := os.Chtimes(filepath.Join(one, "connectors.json"), past, past); err != nil {
		b.Fatal(err)
	}
	now := one
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(upgradeReply)
		http.ServeFile(w, r, filepath.Join(now, filepath.FromSlash(r.URL.Path)))
	}))
	defer srv.Close()
	first := filepath.Join(dir, "first")
	env := append(os.Environ(), "HOME="+dir, "SKALD_CONNECTORS_INDEX="+srv.URL, "SKALD_CONNECTORS_KEYSTORE=keyfile")
	at := func(home string) []string { return append(env, "SKALD_CONNECTORS_HOME="+home) }
	install := []string{"install", "--yes"}
	var config strings.Builder
	for i := range upgradeCount {
		id := fmt.Sprintf("c%02d", i)
		install = append(install, id)
		for _, f := range []string{"connector.json", "icon_lg.svg", "icon_sm.svg", "part0.py", "part1.py", "server.py"} {
			fmt.Fprintf(&config, "url=%s/%s/%s\noutput=%s\n", srv.URL, id, f, filepath.Join(dir, "curl", id, f))
		}
	}
	runQuietly(b, at(first), self, install...)
	now = two
	cfg := filepath.Join(dir, "curl.cfg")
	if err := os.WriteFile(cfg, []byte(config.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	var plan, curl, all, verify []time.Duration
	for n := 0; b.Loop(); n++ {
		home := filepath.Join(dir, fmt.Sprint("home", n))
		runQuietly(b, env, "cp", "-a", first, home)
		curl = append(curl, timed(b, env, "curl", "--silent", "--fail", "--create-dirs", "--parallel", "--parallel-immediate", "--parallel-max", "32", "--config", cfg))
		start := time.Now()
		cmd := exec.Command(self, "upgrade", "--all", "--dry-run")
		cmd.Env = at(home)
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != exitToDo {
			b.Fatal(cmd.ProcessState)
		}
		plan = append(plan, time.Since(start))
		all = append(all, timed(b, at(home), self, "upgrade", "--all", "--yes"))
		start = time.Now()
		for i := range upgradeCount {
			runQuietly(b, at(home), self, "verify", fmt.Sprintf("c%02d", i))
		}
		verify = append(verify, time.Since(start))
		runQuietly(b, env, "chmod", "-R", "u+w", home)
		if err := os.RemoveAll(home); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(median(plan))/float64(median(curl)), "plan-x-curl")
	b.ReportMetric(float64(median(all))/float64(median(verify)), "all-x-verify")
	b.ReportMetric(float64(median(all).Milliseconds()), "ms-all")
	b.ReportMetric(float64(median(curl).Milliseconds()), "ms-curl")
}
