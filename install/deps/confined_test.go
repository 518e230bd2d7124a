package deps

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skald-connectors/sandbox"
)

// confined are the sandboxes that really work here.
func confined(t *testing.T) map[sandbox.Mode]*sandbox.Sandbox {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := map[sandbox.Mode]*sandbox.Sandbox{}
	for _, mode := range []sandbox.Mode{sandbox.Combined, sandbox.Bubblewrap, sandbox.Landlock, sandbox.SandboxExec} {
		box, err := sandbox.Open(sandbox.Options{Mode: mode, Self: self, Dir: filepath.Join(t.TempDir(), "sandbox"), Path: os.Getenv("PATH"), Env: os.Getenv})
		var cannot *sandbox.UnenforceableError
		if errors.As(err, &cannot) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[mode] = box
	}
	if len(out) == 0 {
		t.Skip("no sandbox works on this platform")
	}
	return out
}

// TestRealToolsConfined installs with npm and pip in every sandbox that works here. A
// script that was allowed sees nothing of the person.
func TestRealToolsConfined(t *testing.T) {
	for mode, box := range confined(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Run("npm", func(t *testing.T) { npmConfined(t, box) })
			t.Run("pip", func(t *testing.T) { pipConfined(t, box) })
		})
	}
}

func npmConfined(t *testing.T, box *sandbox.Sandbox) {
	w := realNode(t)
	w.box = box
	n, server := registry(t)
	n.Require("the-token-of-the-person")
	key := write(t, filepath.Join(w.home, ".ssh", "id"), canary)
	client := write(t, filepath.Join(w.home, "client.key"), canary)
	outside := filepath.Join(w.home, "dropped")
	n.Add("dropper", "1.0.0", map[string]any{"scripts": map[string]any{"postinstall": "node drop.js"}}, map[string]string{
		"drop.js": `const fs = require('fs'); let seen = 'nothing';
for (const file of [` + jsString(key) + `, ` + jsString(client) + `]) try { seen = fs.readFileSync(file, 'utf8') } catch {}
try { fs.writeFileSync(` + jsString(outside) + `, 'x') } catch {}
fs.writeFileSync('seen', seen)`})
	host := strings.TrimPrefix(server.URL, "http:")
	w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_" + host + "/:_authToken=the-token-of-the-person",
		"npm_config_" + host + "/:certfile=" + client, "npm_config_" + host + "/:keyfile=" + client}
	res, err := w.install(readOne(t, npmInput(`{"dependencies":{"dropper":"1.0.0"}}`, "")), func(o *Options) { o.AllowScripts = true })
	if err != nil {
		t.Fatal(err, tailOf(err))
	}
	seen, err := os.ReadFile(filepath.Join(w.tree, "node_modules", "dropper", "seen"))
	if err != nil || string(seen) != "nothing" || len(res.Ran) != 1 {
		t.Errorf("the script ran for %v and saw %q, %v", res.Ran, seen, err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("the script wrote outside of its folder")
	}
}

func pipConfined(t *testing.T, box *sandbox.Sandbox) {
	w := realPython(t)
	w.box = box
	w.environ = []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + wheels(t)}
	res, err := w.install(readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("top-wheel==1.0\n")}}), nil)
	if err != nil || len(res.Packages) != 2 {
		t.Fatalf("%+v, %v\n%s", res, err, tailOf(err))
	}
}
