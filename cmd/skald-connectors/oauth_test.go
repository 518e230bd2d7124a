package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// testBrowser is a person's browser: it goes where it is sent, prints the last page, and counts its windows in the file that
// SKALD_TEST_WINDOWS names.
func testBrowser() {
	if log := os.Getenv("SKALD_TEST_WINDOWS"); log != "" {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, "window")
			_ = f.Close()
		}
	}
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(os.Stdout, resp.Body)
}

// The scripts of sign-ins: each has a provider of its own, whose address is in PROVIDER and in the marketplace.
func TestSignInScripts(t *testing.T) {
	python := needPython(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/signin/script",
		Setup: func(e *testscript.Env) error {
			p := newTestProvider()
			e.Defer(p.Close)
			e.Setenv("PROVIDER", p.URL)
			e.Setenv("PATH", e.Getenv("PATH")+string(filepath.ListSeparator)+filepath.Dir(python)+string(filepath.ListSeparator)+"/usr/bin:/bin")
			e.Setenv("SKALD_CONNECTORS_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("SKALD_CONNECTORS_INDEX", filepath.Join(e.WorkDir, "market"))
			e.Setenv("SKALD_CONNECTORS_KEYSTORE", "keyfile")
			e.Setenv("SKALD_TEST_WINDOWS", filepath.Join(e.WorkDir, "windows"))
			return signInMarket(filepath.Join(e.WorkDir, "market"), p.URL)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nowhere": cmdNowhere, "tree": cmdTree, "mode": cmdMode, "exitcode": cmdExitcode, "lines": cmdLines, "pasted": cmdPasted, "bump": cmdBump,
		},
		RequireUniqueNames: true,
	})
}

// signInMarket copies the marketplace of the sign-in scripts with the provider's address filled in, and compiles it.
func signInMarket(to, provider string) error {
	if err := os.CopyFS(to+".src", os.DirFS("testdata/signin/market")); err != nil {
		return err
	}
	err := filepath.WalkDir(to+".src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "connector.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "https://provider.example", provider)), 0o600)
	})
	if err != nil {
		return err
	}
	if err := copyMarket(to+".src", to); err != nil {
		return err
	}
	return os.RemoveAll(to + ".src")
}

// lines N FILE: the file has so many lines.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if got := fmt.Sprint(strings.Count(ts.ReadFile(args[1]), "\n")); (got == args[0]) == neg {
		ts.Fatalf("%s has %s lines", args[1], got)
	}
}

// pasted ARGS…: runs the program and brings it what the browser ends at, as somebody with the browser on another machine does.
func cmdPasted(ts *testscript.TestScript, neg bool, args []string) {
	self, err := exec.LookPath(program)
	ts.Check(err)
	cmd := exec.Command(self, args...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "SKALD_CONNECTORS_HOME", "SKALD_CONNECTORS_INDEX", "SKALD_CONNECTORS_KEYSTORE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	said, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var seen strings.Builder
	sc := bufio.NewScanner(said)
	for sc.Scan() {
		seen.WriteString(sc.Text() + "\n")
		if !strings.HasPrefix(sc.Text(), ts.Getenv("PROVIDER")+"/authorize?") {
			continue
		}
		resp, err := http.Get(sc.Text())
		ts.Check(err)
		answer, err := io.ReadAll(resp.Body)
		ts.Check(err)
		resp.Body.Close()
		_, err = fmt.Fprintf(in, "not a code\n%s\n", answer)
		ts.Check(err)
		ts.Check(in.Close())
	}
	ts.Check(os.WriteFile(ts.MkAbs("said"), []byte(seen.String()), 0o600))
	if err := cmd.Wait(); (err != nil) != neg {
		ts.Fatalf("%v\n%s", err, seen.String())
	}
}
