package deps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const lockedA = `"node_modules/a":{"version":"1.0.0","integrity":"`

func lockA() string {
	return lockOf(lockedA + digest512 + `","hasInstallScript":true}`)
}

func readOne(t *testing.T, in Input) Set {
	t.Helper()
	sets, err := Read(in)
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	return sets[0]
}

var newNPM = script{Version: "11.19.1", Knows: []string{"allow-git", "allow-remote", "allow-file", "allow-directory", "replace-registry-host"}, Installs: []string{"a"}}

// TestNPMIsStartedExactly holds npm's arguments, environment and settings file.
func TestNPMIsStartedExactly(t *testing.T) {
	w := newWorld(t, "npm", newNPM)
	w.environ = []string{"npm_config_registry=https://r.example/", "npm_config_//r.example/:_authToken=token-three", "SECRET_OF_A_CONNECTOR=" + canary}
	write(t, filepath.Join(w.home, ".npmrc"), "//other.example/:_authToken="+canary+"\n")
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockA())), tool, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := w.calls()
	if len(calls) != 1 {
		t.Fatalf("npm was started %d times", len(calls))
	}
	c := calls[0]
	args := `ci
--omit=dev
--no-audit
--no-fund
--no-update-notifier
--no-progress
--loglevel=error
--logs-max=0
--cache=SCRATCH/cache
--userconfig=SCRATCH/npmrc
--globalconfig=SCRATCH/no-global-npmrc
--git=SCRATCH/no-such-program-for-git
--allow-git=none
--allow-remote=none
--allow-file=none
--allow-directory=none
--replace-registry-host=always
--ignore-scripts`
	if got := w.plain(c.Args); got != args {
		t.Errorf("npm's arguments:\n%s\nwant\n%s", got, args)
	}
	env := "PATH=BIN\nLANG=C.UTF-8\nHTTPS_PROXY=http://proxy.example:1\nHOME=SCRATCH/home\nUSERPROFILE=SCRATCH/home\nTMPDIR=SCRATCH/tmp\nTMP=SCRATCH/tmp\nTEMP=SCRATCH/tmp"
	if got := w.plain(c.Env); got != env {
		t.Errorf("npm's environment:\n%s\nwant\n%s", got, env)
	}
	rc := "//r.example/:_authToken=token-three\nregistry=https://r.example/\nfetch-retry-mintimeout=1000\nfetch-retry-maxtimeout=5000\n"
	if c.RC != rc || c.RCMode != "-rw-------" {
		t.Errorf("npm's settings, mode %s:\n%s\nwant\n%s", c.RCMode, c.RC, rc)
	}
	if _, err := os.Stat(filepath.Join(w.scratch, "npmrc")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the settings file is still there: %v", err)
	}
	if w.plain([]string{c.Dir}) != "TREE" || strings.Contains(c.Files[lockFile], "resolved") || len(res.Packages) != 1 || res.Packages[0].Integrity != digest512 {
		t.Errorf("folder %s, packages %v", c.Dir, res.Packages)
	}
	if len(res.Ran) != 0 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "a@1.0.0 has an install script, which was not run") {
		t.Errorf("ran %v, notes %v", res.Ran, res.Notes)
	}
	if data, _ := os.ReadFile(filepath.Join(w.home, ".npmrc")); string(data) != "//other.example/:_authToken="+canary+"\n" {
		t.Error("the person's settings were written")
	}
}

// TestOlderNPM has no flags against git: it is given a git that does not exist.
func TestOlderNPM(t *testing.T) {
	w := newWorld(t, "npm", script{Version: "8.19.4", Installs: []string{"a"}})
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "18.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockA())), tool, nil); err != nil {
		t.Fatal(err)
	}
	args := w.calls()[0].Args
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--allow-") || strings.HasPrefix(a, "--replace-") }) {
		t.Errorf("npm 8 is given flags that it does not have: %v", args)
	}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--git=") }) {
		t.Errorf("npm 8 could start git: %v", args)
	}
}

// TestWithoutALock: npm is asked for one, it is held to the rules, and npm ci follows.
func TestWithoutALock(t *testing.T) {
	s := newNPM
	s.Lock = lockA()
	w := newWorld(t, "npm", s)
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, "")), tool, nil)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, c := range w.calls() {
		verbs = append(verbs, c.Args[0])
	}
	if !slices.Equal(verbs, []string{"install", "ci"}) || res.Packages[0].Integrity != digest512 {
		t.Errorf("npm was started for %v, packages %v", verbs, res.Packages)
	}
}

// TestRegistryAnswersAreHeldToTheRules: a lock that npm made from what a registry says
// can name a repository as well.
func TestRegistryAnswersAreHeldToTheRules(t *testing.T) {
	s := newNPM
	s.Lock = lockOf(`"node_modules/a":{"version":"1.0.0","resolved":"git+ssh://git@h/x.git#1"}`)
	w := newWorld(t, "npm", s)
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, "")), tool, nil)
	var refused *RefusedError
	if !errors.As(err, &refused) || len(w.calls()) != 1 {
		t.Errorf("npm ci was started on it: %v", err)
	}
}

// TestScriptsRunApart: only when allowed, only the announced ones, after the downloads
// and without the registry's credential.
func TestScriptsRunApart(t *testing.T) {
	s := newNPM
	s.Installs = []string{"a", "quiet"}
	w := newWorld(t, "npm", s)
	w.environ = []string{"npm_config_registry=https://r.example/", "npm_config_//r.example/:_authToken=token-three", "npm_config_proxy=http://u:token-three@p/", "npm_config_nodedir=/headers"}
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOf(lockedA + digest512 + `","hasInstallScript":true},"node_modules/quiet":{"version":"2.0.0","integrity":"` + digest512 + `"}`)
	res, err := w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lock)), tool, func(o *Options) { o.AllowScripts = true })
	if err != nil {
		t.Fatal(err)
	}
	calls := w.calls()
	if len(calls) != 2 || calls[1].Args[0] != "rebuild" || calls[1].RC != "nodedir=/headers\n" {
		t.Fatalf("%d starts, the last with settings %q", len(calls), calls[len(calls)-1].RC)
	}
	if args := calls[1].Args; args[len(args)-1] != "a@1.0.0" || slices.Contains(args, "quiet@2.0.0") || slices.Contains(args, "--ignore-scripts") {
		t.Errorf("scripts ran by %v", args)
	}
	if strings.Contains(w.plain(calls[1].Env), "token-three") || !slices.Equal(res.Ran, []string{"a@1.0.0"}) {
		t.Errorf("ran %v with %v", res.Ran, calls[1].Env)
	}
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "quiet@2.0.0 has an install script that its lock file does not announce") {
		t.Errorf("notes %v", res.Notes)
	}
}

func TestStartOfNPX(t *testing.T) {
	s := newNPM
	s.Lock = lockOf(lockedA + digest512 + `"}`)
	w := newWorld(t, "npm", s)
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.build(readOne(t, Input{Command: "npx", Args: []string{"-y", "a@^1.0.0", "x"}}), tool, nil)
	if err != nil || res.Start == nil || res.Start.Script != "a/cli.js" || !slices.Equal(res.Start.Args, []string{"x"}) {
		t.Fatalf("%+v, %v", res, err)
	}
}

// TestPipIsStartedExactly holds pip's arguments and environment.
func TestPipIsStartedExactly(t *testing.T) {
	h := strings.Repeat("1", 64)
	w := newWorld(t, "python3", script{Version: "23.2.1", Dists: []string{"a_b-1.0"},
		Report: `{"install":[{"metadata":{"name":"a-b","version":"1.0"},"download_info":{"archive_info":{"hash":"sha256=` + h + `"}}}]}`})
	w.environ = []string{"PIP_INDEX_URL=https://u:pass-word-4@r.example/simple", "SECRET_OF_A_CONNECTOR=" + canary, "PIP_REQUIRE_VIRTUALENV=1", "PIP_CONFIG_FILE=" + pipNoFile()}
	tool, err := w.find(Pip, Interpreter{Path: filepath.Join(w.bin, "python3"), Version: "3.11.2"})
	if err != nil {
		t.Fatal(err)
	}
	set := readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("a.b==1.0 --hash=sha256:" + h)}, Command: "python3"})
	res, err := w.build(set, tool, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := w.calls()[0]
	args := "-I\n-m\npip\ninstall\n--no-input\n--disable-pip-version-check\n--no-color\n--progress-bar=off\n--no-cache-dir\n--no-compile\n--no-warn-script-location\n" +
		"--only-binary\n:all:\n--require-hashes\n--report\nSCRATCH/report.json\n--target\nTREE/.pydeps\n-r\nTREE/requirements.txt"
	if got := w.plain(c.Args); got != args {
		t.Errorf("pip's arguments:\n%s\nwant\n%s", got, args)
	}
	env := "PATH=BIN\nLANG=C.UTF-8\nHTTPS_PROXY=http://proxy.example:1\nHOME=SCRATCH/home\nUSERPROFILE=SCRATCH/home\nTMPDIR=SCRATCH/tmp\nTMP=SCRATCH/tmp\nTEMP=SCRATCH/tmp\n" +
		"PIP_CONFIG_FILE=" + pipNoFile() + "\nPIP_INDEX_URL=https://u:pass-word-4@r.example/simple"
	if got := w.plain(c.Env); got != env {
		t.Errorf("pip's environment:\n%s\nwant\n%s", got, env)
	}
	if len(res.Packages) != 1 || res.Packages[0] != (Package{Name: "a-b", Version: "1.0", Integrity: "sha256:" + h}) {
		t.Errorf("packages %v", res.Packages)
	}
}

// TestSourcesAreNotBuiltBesideACredential: a build would see pip's variables.
func TestSourcesAreNotBuiltBesideACredential(t *testing.T) {
	for _, address := range []string{"https://r.example/simple", "https://u:pass-word-5@r.example/simple"} {
		w := newWorld(t, "python3", script{Version: "21.0", Dists: []string{"a-1"}})
		w.environ = []string{"PIP_INDEX_URL=" + address}
		tool, err := w.find(Pip, Interpreter{Path: filepath.Join(w.bin, "python3"), Version: "3.9.0"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.build(readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("a")}}), tool, func(o *Options) { o.AllowScripts = true }); err != nil {
			t.Fatal(err)
		}
		args := w.calls()[0].Args
		if wheels := slices.Contains(args, "--only-binary"); wheels != strings.Contains(address, "@") {
			t.Errorf("%s: only wheels is %t", address, wheels)
		}
		if slices.Contains(args, "--report") || slices.Contains(args, "--require-hashes") {
			t.Errorf("pip 21 is given %v", args)
		}
	}
}

func TestToolsThatAreTooOldOrMissing(t *testing.T) {
	w := newWorld(t, "npm", script{Version: "6.14.0"})
	node := Interpreter{Path: filepath.Join(w.bin, "node"), Version: "14.0.0"}
	_, err := w.find(NPM, node)
	var tool *ToolError
	if !errors.As(err, &tool) || tool.Found != "6.14.0" {
		t.Errorf("npm 6: %v", err)
	}
	if err := os.Remove(filepath.Join(w.bin, "npm")); err != nil {
		t.Fatal(err)
	}
	if _, err = w.find(NPM, node); !errors.As(err, &tool) || tool.Found != "" {
		t.Errorf("no npm: %v", err)
	}
	p := newWorld(t, "python3", script{Version: ""})
	if _, err = p.find(Pip, Interpreter{Path: filepath.Join(p.bin, "python3")}); !errors.As(err, &tool) || tool.Program != "pip" {
		t.Errorf("no pip: %v", err)
	}
}

// TestFailuresAreTold: what npm and pip write becomes a kind that a caller branches on.
func TestFailuresAreTold(t *testing.T) {
	for _, row := range []struct {
		e      Ecosystem
		stderr string
		want   Kind
	}{
		{NPM, "npm error code EINTEGRITY\nnpm error sha512-x integrity checksum failed", Mismatch},
		{NPM, "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://r failed", Unreachable},
		{NPM, "npm error code ECONNREFUSED", Unreachable},
		{NPM, "npm error code SELF_SIGNED_CERT_IN_CHAIN", Unreachable},
		{NPM, "npm error code UNABLE_TO_VERIFY_LEAF_SIGNATURE", Unreachable},
		{NPM, "npm error code E503", Unreachable},
		{NPM, "npm error code E401", Denied},
		{NPM, "npm ERR! code E403", Denied},
		{NPM, "npm error code ETARGET\nnpm error notarget No matching version found for a@9", Missing},
		{NPM, "npm error code E404", Missing},
		{NPM, "npm error code ENOSPC", NoSpace},
		{NPM, "npm error gyp ERR! stack Error: not found: make", NeedsBuild},
		{NPM, "npm error code EALLOWGIT", Unsafe},
		{NPM, "npm error something else", Failed},
		{Pip, "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", Mismatch},
		{Pip, "ERROR: In --require-hashes mode, all requirements must have their versions pinned with ==.", Unhashed},
		{Pip, "WARNING: Retrying after NewConnectionError\nERROR: Could not find a version that satisfies a", Unreachable},
		{Pip, "ERROR: Could not find a version that satisfies the requirement a (from versions: none)", Missing},
		{Pip, "error: command '/usr/bin/x86_64-linux-gnu-gcc' failed with exit code 1", NeedsBuild},
		{Pip, "OSError: [Errno 28] No space left on device", NoSpace},
		{Pip, "ERROR: 401 Client Error: Unauthorized", Denied},
	} {
		w := newWorld(t, map[Ecosystem]string{NPM: "npm", Pip: "python3"}[row.e], script{Version: "21.0", Stderr: row.stderr + "\n", Code: 1, Installs: []string{"a"}})
		tool, err := w.find(row.e, Interpreter{Path: filepath.Join(w.bin, "python3"), Version: "3.11.0"})
		if err != nil {
			t.Fatal(err)
		}
		set := readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockA()))
		if row.e == Pip {
			set = readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("a")}})
		}
		_, err = w.build(set, tool, nil)
		var build *BuildError
		if !errors.As(err, &build) || build.Kind != row.want || !strings.Contains(build.Tail, strings.TrimSpace(row.stderr)) {
			t.Errorf("%s writes %q: %v, tail %q", row.e, row.stderr, err, build.Tail)
		}
	}
}

// TestCredentialsAreStruckOut of what npm writes.
func TestCredentialsAreStruckOut(t *testing.T) {
	w := newWorld(t, "npm", script{Version: "10.0.0", Stderr: "npm error got token-number-six for https://u:pass-word-7@r/\n", Code: 1})
	w.environ = []string{"npm_config_registry=https://u:pass-word-7@r/", "npm_config_//r/:_authToken=token-number-six"}
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.build(readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockA())), tool, nil)
	var build *BuildError
	if !errors.As(err, &build) || strings.Contains(build.Tail+err.Error(), "pass-word-7") || strings.Contains(build.Tail, "token-number-six") {
		t.Errorf("%v\n%s", err, build.Tail)
	}
}

func TestTimeLimitAndInterruption(t *testing.T) {
	w := newWorld(t, "npm", newNPM)
	tool, err := w.find(NPM, Interpreter{Path: filepath.Join(w.bin, "node"), Version: "20.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	set := readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockA()))
	_, err = w.build(set, tool, func(o *Options) { o.Timeout = time.Nanosecond })
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != TimedOut {
		t.Errorf("time limit: %v", err)
	}
	w.scratch = t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("a person pressed a key")
	cancel(reason)
	o := Options{Sandbox: box(t), Tool: tool, Base: w.base(), Timeout: time.Minute}
	if _, err := set.Build(ctx, w.tree, w.scratch, o); !errors.Is(err, reason) {
		t.Errorf("interrupted: %v", err)
	}
}
