//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// peersVariable names the node_modules/.bin that .ci/run fills with the
// programs of the protocol's authors.
const peersVariable = "SKALD_TEST_CLIENTS"

// peerNode is the least version of node that all of them run with.
const peerNode = 22

// peerCommand gives the words that start a program of an npm package: node and
// its script. What is missing skips the test.
func peerCommand(t testing.TB, program, pkg string) []string {
	t.Helper()
	missing := func(what string) {
		t.Helper()
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is missing and SKALD_TEST_REQUIRE is set", what)
		}
		t.Skipf("%s is not here; %s names a folder with it", what, peersVariable)
	}
	script, err := findPeer(program)
	if err == nil {
		script, err = filepath.EvalSymlinks(script)
	}
	if err != nil {
		missing(fmt.Sprintf("%s (npm package %s)", program, pkg))
	}
	node, err := findPeer("node")
	if err != nil {
		missing("node")
	}
	out, err := exec.Command(node, "--version").Output()
	var major int
	if _, scanErr := fmt.Sscanf(string(out), "v%d.", &major); err != nil || scanErr != nil || major < peerNode {
		missing(fmt.Sprintf("node %d (%s is %s)", peerNode, node, strings.TrimSpace(string(out))))
	}
	return []string{node, script}
}

// findPeer looks for a program in the folder that CI installs into, then in PATH.
func findPeer(name string) (string, error) {
	if dir := os.Getenv(peersVariable); dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// installCommand makes a connector of any stdio server and installs it.
func (p *place) installCommand(id string, argv []string) {
	p.t.Helper()
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX="+hostileMarket(p.t, shipped{id: id, change: func(m map[string]any) {
		m["mcp_config"] = map[string]any{"command": argv[0], "args": argv[1:]}
	}}))
	p.do("install", id, "--yes", "--allow-command", "--sandbox", "none")
}

// through is the command of a client's configuration.
func (p *place) through(id string) *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: []string{program, "run", id}, Env: p.env, Dir: p.t.TempDir()}
}

// direct is the command that run would start, without its sandbox.
func (p *place) direct(id string) *exec.Cmd {
	p.t.Helper()
	var rec struct {
		Runtimes []struct {
			Path string `json:"path"`
		} `json:"runtimes"`
		Config struct {
			Args []string `json:"args"`
		} `json:"mcp_config"`
	}
	data, err := os.ReadFile(filepath.Join(p.home, "activations", id+".json"))
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	work, err := filepath.Glob(filepath.Join(p.home, "work", id, "*"))
	if err != nil || len(work) != 1 {
		p.t.Fatal(work, err)
	}
	cmd := exec.Command(rec.Runtimes[0].Path, rec.Config.Args...)
	cmd.Dir = work[0]
	return cmd
}
