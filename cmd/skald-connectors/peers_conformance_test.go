//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// conformanceServer is the server that the official Go SDK is tested with.
const conformanceServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// TestConformance has the protocol's own test suite judge a server, over a bridge
// of these tests, with and without run in between: the verdicts are the same.
func TestConformance(t *testing.T) {
	t.Parallel() // it waits for other programs most of the time
	suite := peerCommand(t, "conformance", "@modelcontextprotocol/conformance")
	server := filepath.Join(t.TempDir(), "conformance-server")
	build := exec.Command("go", "build", "-o", server, conformanceServer)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	p := newPlace(t)
	p.installCommand("conformance", []string{server})
	var direct, through map[string]string
	var wait sync.WaitGroup
	wait.Go(func() { direct = judge(t, suite, func() *exec.Cmd { return exec.Command(server) }) })
	wait.Go(func() { through = judge(t, suite, func() *exec.Cmd { return p.through("conformance") }) })
	wait.Wait()
	passed := 0
	for check, verdict := range direct {
		if verdict == "SUCCESS" {
			passed++
		}
		if through[check] != verdict {
			t.Errorf("%s: %q, direct %q", check, through[check], verdict)
		}
	}
	for check := range through {
		if _, known := direct[check]; !known {
			t.Errorf("%s is only judged through run", check)
		}
	}
	if passed < 25 {
		t.Errorf("only %d checks pass without run: %v", passed, direct)
	}
	t.Logf("%d checks, %d pass: %v", len(direct), passed, slices.Sorted(maps.Keys(direct)))
}

// runStamp is the time in the name of a scenario's results.
var runStamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*$`)

// judge runs every scenario against a server behind a bridge of its own and
// gives the verdicts by scenario and check.
func judge(t *testing.T, suite []string, start func() *exec.Cmd) map[string]string {
	web := httptest.NewServer(newBridge(t, start))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	argv := slices.Concat(suite, []string{"server", "--url", web.URL + "/mcp", "-o", dir})
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput() // it fails when a scenario does
	verdicts := map[string]string{}
	files, globErr := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if globErr != nil || len(files) == 0 {
		t.Errorf("the suite judged nothing: %v\n%s", err, out)
		return verdicts
	}
	for _, f := range files {
		var checks []struct{ ID, Status, ErrorMessage string }
		data, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(data, &checks)
		}
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
		scenario := runStamp.ReplaceAllString(filepath.Base(filepath.Dir(f)), "")
		for i, c := range checks {
			verdicts[fmt.Sprintf("%s %s %d", scenario, c.ID, i)] = strings.TrimSpace(c.Status + " " + c.ErrorMessage)
		}
	}
	return verdicts
}
