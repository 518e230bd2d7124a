package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skald-connectors/internal/packagetest"
)

// needNode skips where node or npm is missing; CI refuses to skip.
func needNode(t testing.TB) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("SKALD_TEST_REQUIRE") != "" {
				t.Fatalf("%s is missing and SKALD_TEST_REQUIRE is set", program)
			}
			t.Skipf("%s is missing", program)
		}
	}
	path, _ := exec.LookPath("node")
	return path
}

// testRegistry is a registry with what the test connectors ask for; work is where the
// dropper leaves its canary.
func testRegistry(work string) *packagetest.NPM {
	n := packagetest.NewNPM()
	n.Add("dep", "1.0.0", nil, map[string]string{"index.js": "module.exports = 'dep_one'"})
	n.Add("dep", "2.0.0", nil, map[string]string{"index.js": "module.exports = 'dep_two'"})
	n.Add("dropper", "1.0.0", map[string]any{"scripts": map[string]any{"postinstall": "node drop.js"}},
		map[string]string{"drop.js": "const fs = require('fs'); fs.writeFileSync('dropped', ''); try { fs.writeFileSync(" + strconv.Quote(filepath.Join(work, "dropped")) + ", '') } catch {}"})
	server := `#!/usr/bin/env node
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const msg = JSON.parse(line);
  if (msg.id === undefined) return;
  const result = msg.method === 'initialize'
    ? { protocolVersion: msg.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } }
    : { tools: [{ name: 'from_npx_' + process.argv[2], inputSchema: { type: 'object' } }] };
  console.log(JSON.stringify({ jsonrpc: '2.0', id: msg.id, result }));
});
`
	n.Add("dep-server", "1.4.0", map[string]any{"bin": map[string]string{"dep-server": "./bin/run.js"}}, map[string]string{"bin/run.js": server})
	n.Add("dep-server", "2.0.0", nil, nil)
	return n
}

// writeWheels makes the folder of wheels that the test connectors ask for.
func writeWheels(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, data := packagetest.Wheel("low-wheel", "1.5", map[string]string{"low_wheel.py": "name = 'low_wheel_1_5'\n"})
	return os.WriteFile(filepath.Join(dir, file), data, 0o600)
}

// scriptWorld is what the commands of one script share.
type scriptWorld struct {
	npm    *packagetest.NPM
	server *httptest.Server
}

func TestPackageScripts(t *testing.T) {
	node, python := needNode(t), needPython(t)
	market, err := filepath.Abs("testdata/packages/market")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/packages/script",
		Setup: func(e *testscript.Env) error {
			npm := testRegistry(e.WorkDir)
			server := httptest.NewServer(npm)
			e.Defer(server.Close)
			e.Values["world"] = &scriptWorld{npm: npm, server: server}
			path := []string{e.Getenv("PATH"), filepath.Dir(node), filepath.Dir(python), "/usr/bin", "/bin"}
			e.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "person"))
			e.Setenv("SKALD_CONNECTORS_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("SKALD_CONNECTORS_INDEX", filepath.Join(e.WorkDir, "market"))
			e.Setenv("npm_config_registry", server.URL+"/")
			e.Setenv("npm_config_fetch_retries", "0")
			e.Setenv("PIP_NO_INDEX", "1")
			e.Setenv("PIP_FIND_LINKS", filepath.Join(e.WorkDir, "wheels"))
			if err := writeWheels(filepath.Join(e.WorkDir, "wheels")); err != nil {
				return err
			}
			return copyMarket(market, filepath.Join(e.WorkDir, "market"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"tree": cmdTree, "mode": cmdMode, "bump": cmdBump, "exitcode": cmdExitcode, "count": cmdCount, "lock": cmdLock, "publish": cmdPublish,
			"deadregistry": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("npm_config_registry", "http://127.0.0.1:1/")
			},
			"liveregistry": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("npm_config_registry", theWorld(ts).server.URL+"/")
			},
			"tamperpackage": func(ts *testscript.TestScript, _ bool, args []string) { theWorld(ts).npm.Tamper(args[0]) },
			"removetrees":   cmdRemoveTrees,
			"tampertree":    cmdTamperTree,
		},
		RequireUniqueNames: true,
	})
}

func theWorld(ts *testscript.TestScript) *scriptWorld { return ts.Value("world").(*scriptWorld) }

// count N PATTERN: so many files match.
func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: count N FILE…")
	}
	found := 0
	for _, pattern := range args[1:] {
		list, err := filepath.Glob(ts.MkAbs(pattern))
		ts.Check(err)
		found += len(list)
	}
	if strconv.Itoa(found) != args[0] {
		ts.Fatalf("%d match %v, want %s", found, args[1:], args[0])
	}
}

// lock CONNECTOR PACKAGE VERSION: gives the connector a lock of that one package.
func cmdLock(ts *testscript.TestScript, _ bool, args []string) {
	name, version := args[1], args[2]
	text := `{"lockfileVersion":3,"packages":{"":{"dependencies":{"` + name + `":"` + version + `"}},"node_modules/` + name + `":{"version":"` + version +
		`","resolved":"https://registry.example/` + name + `/-/` + name + `-` + version + `.tgz","integrity":"` + theWorld(ts).npm.Integrity(name, version) + `"}}}`
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "market", args[0], "package-lock.json"), []byte(text), 0o600))
	cmdPublish(ts, false, nil)
}

// publish: compiles the marketplace as if for the first time, so that a changed file
// needs no greater version.
func cmdPublish(ts *testscript.TestScript, _ bool, _ []string) {
	market := filepath.Join(ts.Getenv("WORK"), "market")
	ts.Check(os.Remove(filepath.Join(market, "connectors.json")))
	ts.Check(ts.Exec(program, "catalog", "compile", market))
}

// removetrees: somebody removed all dependencies.
func cmdRemoveTrees(ts *testscript.TestScript, _ bool, _ []string) {
	dir := filepath.Join(ts.Getenv("SKALD_CONNECTORS_HOME"), "deps")
	ts.Check(filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o700)
		}
		return err
	}))
	ts.Check(os.RemoveAll(dir))
}

// tampertree FILE: changes a byte of a file of the only tree, and nothing else.
func cmdTamperTree(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(filepath.Join(ts.Getenv("SKALD_CONNECTORS_HOME"), "deps", "*", filepath.FromSlash(args[0])))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files %s", len(found), args[0])
	}
	fi, err := os.Stat(found[0])
	ts.Check(err)
	data, err := os.ReadFile(found[0])
	ts.Check(err)
	data[len(data)-1] = ' '
	ts.Check(os.Chmod(found[0], 0o600))
	ts.Check(os.WriteFile(found[0], data, 0o600))
	ts.Check(os.Chmod(found[0], fi.Mode()))
	ts.Check(os.Chtimes(found[0], fi.ModTime(), fi.ModTime()))
}

// newPackageBench is a bench with the connectors that have packages.
func newPackageBench(t *testing.T) (*bench, *packagetest.NPM) {
	t.Helper()
	needNode(t)
	b := newBench(t)
	market, err := filepath.Abs("testdata/packages/market")
	if err != nil {
		t.Fatal(err)
	}
	if err := copyMarket(market, filepath.Join(b.dir, "packages")); err != nil {
		t.Fatal(err)
	}
	npm := testRegistry(b.dir)
	server := httptest.NewServer(npm)
	t.Cleanup(server.Close)
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+filepath.Join(b.dir, "packages"), "npm_config_registry="+server.URL+"/", "npm_config_fetch_retries=0")
	t.Cleanup(func() {
		filepath.WalkDir(b.dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	return b, npm
}

func (b *bench) trees() []string {
	list, _ := filepath.Glob(filepath.Join(b.dir, "home", "deps", "*"))
	return list
}

// TestKillWhilePackagesAreInstalled kills the program before each of its steps with
// packages: half a tree is never used, and the next install is whole.
func TestKillWhilePackagesAreInstalled(t *testing.T) {
	probe, _ := newPackageBench(t)
	var steps []string
	for _, s := range probe.steps("install", "nodedep", "--yes") {
		if strings.HasPrefix(s, "deps-") {
			steps = append(steps, s)
		}
	}
	if len(steps) < 5 {
		t.Fatalf("the hook saw %v", steps)
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b, _ := newPackageBench(t)
			b.kill(step, "install", "nodedep", "--yes")
			if out := b.must("list"); strings.Contains(out, "nodedep") {
				t.Fatalf("it is listed: %s", out)
			}
			b.must("install", "nodedep", "--yes")
			b.must("verify", "nodedep")
			if trees := b.trees(); len(trees) != 1 {
				t.Errorf("left in deps: %v", trees)
			}
		})
	}
}

// TestKillWhileNPMDownloads ends the program as kill -9 does while npm waits for a
// download: npm ends with it, nothing is installed, and the next install works.
func TestKillWhileNPMDownloads(t *testing.T) {
	b, npm := newPackageBench(t)
	reached, release := npm.Hold("dep")
	cmd := exec.Command(b.self, "install", "nodedep", "--yes")
	cmd.Env = b.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release()
	if left := b.trees(); len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), ".stage-") {
		t.Errorf("after the kill there is %v", left)
	}
	b.must("install", "nodedep", "--yes")
	if left := b.trees(); len(left) != 1 || strings.HasPrefix(filepath.Base(left[0]), ".") {
		t.Errorf("after the next install there is %v", left)
	}
}

// TestInterruptWhileNPMDownloads: Ctrl-C leaves the machine as it was.
func TestInterruptWhileNPMDownloads(t *testing.T) {
	b, npm := newPackageBench(t)
	reached, release := npm.Hold("dep")
	defer release()
	cmd := exec.Command(b.self, "install", "nodedep", "--yes")
	cmd.Env = b.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip("no interrupts here:", err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || len(b.trees()) != 0 {
		t.Errorf("exit %d, left %v", code, b.trees())
	}
}

// TestEightInstallsShareOneBuild.
func TestEightInstallsShareOneBuild(t *testing.T) {
	b, npm := newPackageBench(t)
	var wg sync.WaitGroup
	errs := make([]string, 8)
	for i := range errs {
		wg.Go(func() {
			if code, out, err := b.run(nil, "install", "nodedep", "--yes", "--as", "n"+strconv.Itoa(i)); code != 0 {
				errs[i] = out + err
			}
		})
	}
	wg.Wait()
	for i, e := range errs {
		if e != "" {
			t.Errorf("install %d: %s", i, e)
		}
	}
	if trees := b.trees(); len(trees) != 1 || npm.Downloads() != 1 {
		t.Errorf("%d downloads, trees %v", npm.Downloads(), trees)
	}
}

// TestRegistryOnline installs a published server, as a dependency and through npx,
// from the registry of the person's own settings.
func TestRegistryOnline(t *testing.T) {
	t.Parallel() // it waits for other programs most of the time
	needNode(t)
	if out, err := exec.Command("npm", "view", "@modelcontextprotocol/server-everything", "version", "--fetch-retries=0", "--fetch-timeout=20000").CombinedOutput(); err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatalf("the registry cannot be reached and SKALD_TEST_REQUIRE is set: %s", out)
		}
		t.Skip("the registry cannot be reached")
	}
	b := newBench(t)
	market := filepath.Join(b.dir, "packages")
	if err := os.CopyFS(market, os.DirFS("testdata/packages/market")); err != nil {
		t.Fatal(err)
	}
	everything := "@modelcontextprotocol/server-everything"
	edit := func(file, from, to string) {
		path := filepath.Join(market, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), from, to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("npxdep/connector.json", "dep-server@^1.0.0", everything)
	edit("npxdep/connector.json", "hello", "stdio")
	edit("nodedep/package.json", `"dep": "1.0.0"`, `"`+everything+`": "*"`)
	edit("nodedep/server.js", "const name = require('dep');", "process.argv[2] = 'stdio'; import('"+everything+"/dist/index.js'); return;")
	if code, _, errs := b.run(nil, "catalog", "compile", market); code != 0 {
		t.Fatal(errs)
	}
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+market, "HOME="+os.Getenv("HOME"))
	for _, id := range []string{"nodedep", "npxdep"} {
		b.must("install", id, "--yes")
		b.must("verify", id)
		rec, err := os.ReadFile(filepath.Join(b.dir, "home", "activations", id+".json"))
		if err != nil || !strings.Contains(string(rec), `"name": "`+everything+`"`) || !strings.Contains(string(rec), "sha512-") || !strings.Contains(string(rec), `"name": "echo"`) {
			t.Errorf("%s: %v\n%s", id, err, rec)
		}
		b.must("uninstall", id)
	}
	if left := b.trees(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
