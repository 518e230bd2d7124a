package deps

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skald-connectors/internal/packagetest"
	"skald-connectors/sandbox"
)

// realWorld is a world with the real programs.
type realWorld struct {
	*world
	at  Interpreter
	box *sandbox.Sandbox
}

func newReal(t *testing.T, program string, args ...string) *realWorld {
	t.Helper()
	need(t, program)
	if program == "node" {
		need(t, "npm")
	}
	out, err := exec.Command(program, args...).Output()
	lines := strings.Fields(string(out))
	if err != nil || len(lines) != 2 {
		t.Fatalf("asking %s: %v, %q", program, err, out)
	}
	w := &world{t: t, home: t.TempDir(), bin: filepath.Dir(lines[0]), tree: t.TempDir(), scratch: t.TempDir()}
	return &realWorld{world: w, at: Interpreter{Path: lines[0], Version: lines[1]}, box: box(t)}
}

func realNode(t *testing.T) *realWorld {
	return newReal(t, "node", "-p", "process.execPath + '\\n' + process.versions.node")
}

func realPython(t *testing.T) *realWorld {
	return newReal(t, "python3", "-I", "-c", "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])")
}

func (w *realWorld) tool(e Ecosystem) *Tool {
	w.t.Helper()
	f := Finder{Sandbox: w.box, Environ: w.environ, Base: w.realBase(), Home: w.home}
	tool, err := f.Find(w.t.Context(), e, w.at)
	if err != nil {
		w.t.Fatal(err)
	}
	return tool
}

func (w *realWorld) realBase() []string {
	return []string{"PATH=" + w.bin + string(filepath.ListSeparator) + "/usr/bin:/bin", "HOME=" + w.home, "LANG=C.UTF-8"}
}

func (w *realWorld) install(s Set, change func(*Options)) (*Result, error) {
	w.t.Helper()
	o := Options{Sandbox: w.box, Tool: w.tool(s.Ecosystem), Base: w.realBase(), Timeout: 2 * time.Minute}
	if change != nil {
		change(&o)
	}
	return s.Build(w.t.Context(), w.tree, w.scratch, o)
}

// lockFor is a lock file of packages in a registry, as npm writes it.
func lockFor(n *packagetest.NPM, root map[string]string, packages map[string]string) string {
	all := map[string]any{"": map[string]any{"dependencies": root}}
	for name, version := range packages {
		all["node_modules/"+name] = map[string]any{"version": version, "integrity": n.Integrity(name, version), "resolved": "https://elsewhere.example/" + name + "/-/" + name + "-" + version + ".tgz"}
	}
	out, _ := json.Marshal(map[string]any{"lockfileVersion": 3, "packages": all})
	return string(out)
}

// dropper is a package whose install script leaves a canary with its environment.
func dropper(where string) (map[string]any, map[string]string) {
	return map[string]any{"scripts": map[string]any{"postinstall": "node drop.js"}},
		map[string]string{"drop.js": `const fs = require('fs');
let rc = 'none'; try { rc = fs.readFileSync(process.env.npm_config_userconfig, 'utf8') } catch {}
fs.writeFileSync(` + jsString(where) + `, JSON.stringify(process.env) + rc)`, "index.js": "module.exports = 1"}
}

func jsString(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func registry(t *testing.T) (*packagetest.NPM, *httptest.Server) {
	t.Helper()
	n := packagetest.NewNPM()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	return n, server
}

// TestRealNPM installs from a registry that wants a token: the token of the person's
// own settings, and only there.
func TestRealNPM(t *testing.T) {
	w := realNode(t)
	n, server := registry(t)
	other, otherServer := registry(t)
	n.Require("the-token-of-the-person")
	n.Add("top", "1.0.0", map[string]any{"dependencies": map[string]string{"low": "^1.0.0", "@s/other": "*"}}, map[string]string{"index.js": "module.exports = require('low')"})
	n.Add("low", "1.2.0", nil, map[string]string{"index.js": "module.exports = 'low 1.2.0'"})
	n.Add("low", "2.0.0", nil, nil)
	other.Add("@s/other", "3.0.0", nil, nil)
	rc := "registry=" + server.URL + "/\n//" + strings.TrimPrefix(server.URL, "http://") + "/:_authToken=${NPM_TOKEN}\n@s:registry=" + otherServer.URL + "/\n"
	write(t, filepath.Join(w.home, ".npmrc"), rc)
	w.environ = []string{"NPM_TOKEN=the-token-of-the-person"}
	res, err := w.install(readOne(t, npmInput(`{"dependencies":{"top":"^1.0.0"}}`, "")), nil)
	if err != nil {
		t.Fatal(err, tailOf(err))
	}
	want := []Package{{Name: "@s/other", Version: "3.0.0", Integrity: other.Integrity("@s/other", "3.0.0")}, {Name: "low", Version: "1.2.0", Integrity: n.Integrity("low", "1.2.0")}, {Name: "top", Version: "1.0.0", Integrity: n.Integrity("top", "1.0.0")}}
	if !slices.Equal(res.Packages, want) {
		t.Errorf("packages %v, want %v", res.Packages, want)
	}
	out, err := exec.Command(w.at.Path, "-p", "require("+jsString(filepath.Join(w.tree, "node_modules", "top"))+")").Output()
	if err != nil || strings.TrimSpace(string(out)) != "low 1.2.0" {
		t.Errorf("what was installed says %q, %v", out, err)
	}
	for _, r := range other.Requests() {
		if r.Authorization != "" {
			t.Errorf("the token went to another registry: %+v", r)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(w.home, ".npmrc")); string(data) != rc {
		t.Error("the person's settings were written")
	}
	for _, dir := range []string{w.tree, w.scratch, w.home} {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if data, _ := os.ReadFile(p); strings.Contains(string(data), "the-token-of-the-person") {
					t.Errorf("the token is left in %s", p)
				}
			}
			return nil
		})
	}
}

func tailOf(err error) string {
	var build *BuildError
	if errors.As(err, &build) {
		return build.Tail
	}
	return ""
}

// TestRealNPMHoldsTheLock: the bytes must be those that the author saw, wherever the
// person's registry is.
func TestRealNPMHoldsTheLock(t *testing.T) {
	for _, tampered := range []bool{false, true} {
		w := realNode(t)
		n, server := registry(t)
		n.Add("a", "1.0.0", nil, map[string]string{"index.js": ""})
		w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_fetch_retries=0"}
		set := readOne(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lockFor(n, map[string]string{"a": "^1.0.0"}, map[string]string{"a": "1.0.0"})))
		if tampered {
			n.Tamper("a")
		}
		res, err := w.install(set, nil)
		var build *BuildError
		switch {
		case tampered && (!errors.As(err, &build) || build.Kind != Mismatch):
			t.Errorf("other bytes: %+v, %v", res, err)
		case !tampered && (err != nil || len(res.Packages) != 1):
			t.Errorf("the right bytes: %+v, %v\n%s", res, err, tailOf(err))
		}
	}
}

// TestRealScripts: an install script never runs by default; allowed, it runs and sees
// neither a credential of the registry nor anything of the person.
func TestRealScripts(t *testing.T) {
	for _, allow := range []bool{false, true} {
		w := realNode(t)
		n, server := registry(t)
		n.Require("the-token-of-the-person")
		dropped := filepath.Join(t.TempDir(), "dropped")
		manifest, files := dropper(dropped)
		n.Add("dropper", "1.0.0", manifest, files)
		host := strings.TrimPrefix(server.URL, "http:")
		w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_" + host + "/:_authToken=the-token-of-the-person", "SECRET=" + canary}
		res, err := w.install(readOne(t, npmInput(`{"dependencies":{"dropper":"1.0.0"}}`, "")), func(o *Options) { o.AllowScripts = allow })
		if err != nil {
			t.Fatal(err, tailOf(err))
		}
		data, err := os.ReadFile(dropped)
		if ran := err == nil; ran != allow {
			t.Errorf("allowed %t, ran %t (%v)", allow, ran, res.Notes)
		}
		for _, stray := range []string{"the-token-of-the-person", canary} {
			if strings.Contains(string(data), stray) {
				t.Errorf("the script saw %q: %s", stray, data)
			}
		}
		if !res.Packages[0].Scripts || (len(res.Ran) == 1) != allow {
			t.Errorf("packages %v, ran %v", res.Packages, res.Ran)
		}
	}
}

// TestRealCertificatesAndProxy: the person's certificate authority and proxy reach npm.
func TestRealCertificatesAndProxy(t *testing.T) {
	w := realNode(t)
	n := packagetest.NewNPM()
	n.Add("a", "1.0.0", nil, nil)
	server := httptest.NewTLSServer(n)
	defer server.Close()
	set := readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, ""))
	w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_fetch_retries=0"}
	_, err := w.install(set, nil)
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != Unreachable {
		t.Fatalf("an unknown authority: %v\n%s", err, tailOf(err))
	}
	ca := write(t, filepath.Join(w.home, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, filepath.Join(w.home, ".npmrc"), "cafile="+ca+"\n")
	w.tree, w.scratch = t.TempDir(), t.TempDir()
	if _, err := w.install(set, nil); err != nil {
		t.Errorf("the person's authority: %v\n%s", err, tailOf(err))
	}
}

// TestRealProxy: a registry that only the person's proxy knows.
func TestRealProxy(t *testing.T) {
	w := realNode(t)
	n, server := registry(t)
	n.Add("a", "1.0.0", nil, nil)
	target, _ := url.Parse(server.URL)
	seen := 0
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { seen++; r.SetURL(target); r.Out.Host = r.In.Host }})
	defer proxy.Close()
	write(t, filepath.Join(w.home, ".npmrc"), "registry=http://registry.invalid/\nproxy="+proxy.URL+"\nfetch-retries=0\n")
	if _, err := w.install(readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, "")), nil); err != nil || seen == 0 {
		t.Errorf("through the proxy %d requests, %v\n%s", seen, err, tailOf(err))
	}
}

func TestRealRegistryIsGone(t *testing.T) {
	w := realNode(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_fetch_retries=0"}
	_, err := w.install(readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, "")), nil)
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != Unreachable || build.Tail == "" {
		t.Errorf("%v\n%s", err, tailOf(err))
	}
}

// TestGitIsNeverStarted: a package of a registry that needs a repository.
func TestGitIsNeverStarted(t *testing.T) {
	w := realNode(t)
	n, server := registry(t)
	n.Add("a", "1.0.0", map[string]any{"dependencies": map[string]string{"b": "git+file://" + t.TempDir()}}, nil)
	w.environ = []string{"npm_config_registry=" + server.URL + "/"}
	for _, knows := range []bool{true, false} {
		w.tree, w.scratch = t.TempDir(), t.TempDir()
		_, err := w.install(readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, "")), func(o *Options) {
			if !knows { // as an older npm
				o.Tool.knows = map[string]bool{}
			}
		})
		var build *BuildError
		if !errors.As(err, &build) || build.Kind != Unsafe {
			t.Errorf("knows the flag: %t: %v\n%s", knows, err, tailOf(err))
		}
	}
}

func wheels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	add := func(file string, data []byte) { write(t, filepath.Join(dir, file), string(data)) }
	add(packagetest.Wheel("top-wheel", "1.0", map[string]string{"top_wheel.py": "import low_wheel\nname = 'top with ' + low_wheel.name\n"}, "low-wheel>=1"))
	add(packagetest.Wheel("low-wheel", "1.5", map[string]string{"low_wheel.py": "name = 'low 1.5'\n"}))
	return dir
}

// TestRealPip installs from a folder of wheels that the person's own settings name.
func TestRealPip(t *testing.T) {
	w := realPython(t)
	dir := wheels(t)
	conf := "[global]\nno-index = true\nfind-links = " + dir + "\n"
	file := write(t, filepath.Join(w.home, "pip.conf"), conf)
	w.environ = []string{"PIP_CONFIG_FILE=" + file}
	res, err := w.install(readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("top.wheel==1.0\n")}}), nil)
	if err != nil {
		t.Fatal(err, tailOf(err))
	}
	var names []string
	for _, p := range res.Packages {
		data, _ := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(p.Name, "-", "_")+"-"+p.Version+"-py3-none-any.whl"))
		if p.Integrity != "sha256:"+packagetest.SHA256(data) {
			t.Errorf("digest of %s: %s", p.Name, p.Integrity)
		}
		names = append(names, p.Name+" "+p.Version)
	}
	if !slices.Equal(names, []string{"low-wheel 1.5", "top-wheel 1.0"}) {
		t.Errorf("packages %v", names)
	}
	cmd := exec.Command(w.at.Path, "-c", "import top_wheel; print(top_wheel.name)")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(w.tree, ".pydeps"))
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "top with low 1.5" {
		t.Errorf("what was installed says %q, %v", out, err)
	}
	if found, _ := filepath.Glob(filepath.Join(w.tree, ".pydeps", "__pycache__", "top_wheel.*.pyc")); len(found) != 1 {
		t.Error("it was not compiled, and the tree will be read-only")
	}
	if data, _ := os.ReadFile(file); string(data) != conf {
		t.Error("the person's settings were written")
	}
}

// TestManagedPython: an interpreter that the system manages (PEP 668) is installed for,
// never into.
func TestManagedPython(t *testing.T) {
	const python = "/usr/bin/python3"
	out, err := exec.Command(python, "-I", "-c", "import os, pip, sysconfig; print(os.path.exists(os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED')))").Output()
	if err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Skip("no managed interpreter with pip on this platform")
	}
	w := newReal(t, python, "-I", "-c", "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])")
	w.environ = []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + wheels(t)}
	res, err := w.install(readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("top-wheel")}}), nil)
	if err != nil || len(res.Packages) != 2 {
		t.Fatalf("%+v, %v\n%s", res, err, tailOf(err))
	}
	if err := exec.Command(python, "-I", "-c", "import top_wheel").Run(); err == nil {
		t.Error("it was installed into the system's own")
	}
}

// TestRealHashes: right ones install, a wrong one is a mismatch, a missing one is told.
func TestRealHashes(t *testing.T) {
	w := realPython(t)
	dir := wheels(t)
	w.environ = []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + dir}
	digest := func(file string) string {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return " --hash=sha256:" + packagetest.SHA256(data) + "\n"
	}
	top, low := "top-wheel==1.0"+digest("top_wheel-1.0-py3-none-any.whl"), "low-wheel==1.5"+digest("low_wheel-1.5-py3-none-any.whl")
	for name, row := range map[string]struct {
		text string
		want Kind
	}{
		"right":   {top + low, ""},
		"wrong":   {"low-wheel==1.5 --hash=sha256:" + strings.Repeat("0", 64), Mismatch},
		"missing": {top, Unhashed},
		"gone":    {"no-such==1 --hash=sha256:" + strings.Repeat("0", 64), Missing},
	} {
		w.tree, w.scratch = t.TempDir(), t.TempDir()
		set := readOne(t, Input{Files: map[string][]byte{requiredFile: []byte(row.text)}})
		res, err := w.install(set, nil)
		var build *BuildError
		if row.want == "" && (err != nil || !set.Locked || len(res.Packages) != 2) || row.want != "" && (!errors.As(err, &build) || build.Kind != row.want) {
			t.Errorf("%s: %+v, %v\n%s", name, res, err, tailOf(err))
		}
	}
}

// TestRealSources: setup.py is code of a package; it does not run unless allowed.
func TestRealSources(t *testing.T) {
	w := realPython(t)
	dir, dropped := t.TempDir(), filepath.Join(t.TempDir(), "dropped")
	file, data := packagetest.Sdist("dropper", "1.0", "open("+jsString(dropped)+", 'w').write('ran')\nfrom setuptools import setup\nsetup(name='dropper', version='1.0')\n")
	write(t, filepath.Join(dir, file), string(data))
	w.environ = []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + dir}
	set := readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("dropper==1.0")}})
	_, err := w.install(set, nil)
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != Missing {
		t.Errorf("%v\n%s", err, tailOf(err))
	}
	if _, err := os.Stat(dropped); err == nil {
		t.Error("setup.py ran")
	}
}
