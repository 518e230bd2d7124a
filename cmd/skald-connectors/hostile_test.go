package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"skald-connectors/connectors"
)

// shipped is one connector of a marketplace that nobody linted: the test
// server under another manifest. change edits the manifest, which the index
// then repeats.
type shipped struct {
	id     string
	change func(manifest map[string]any)
	files  map[string]string
}

// hostileMarket writes a marketplace with true pins and returns its folder.
func hostileMarket(t testing.TB, list ...shipped) string {
	t.Helper()
	dir := t.TempDir()
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	var entries []any
	for _, c := range list {
		m := map[string]any{"id": c.id, "name": "Test", "type": "mcp_local", "scope": "user", "version": 1,
			"mcp_config": map[string]any{"command": "python3", "args": []string{"server.py"}}}
		if c.change != nil {
			c.change(m)
		}
		doc, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"server.py": string(server), "connector.json": string(doc)}
		maps.Copy(files, c.files)
		var pins []any
		for _, path := range slices.Sorted(maps.Keys(files)) {
			writeFile(t, filepath.Join(dir, c.id, path), files[path])
			pins = append(pins, map[string]any{"path": path, "size": len(files[path]), "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(files[path])))})
		}
		e := map[string]any{"id": c.id, "name": m["name"], "type": m["type"], "scope": m["scope"], "version": m["version"], "version_string": m["version_string"], "files": pins}
		entries = append(entries, e)
	}
	index, err := json.Marshal(map[string]any{"version": 1, "connectors": entries})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "connectors.json"), string(index))
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inHome returns a runner of commands on one new home and the marketplace, and
// that home.
func inHome(t *testing.T, market string) (run func(args ...string) (code int, stdout, stderr string), home string) {
	t.Helper()
	needPython(t)
	home = filepath.Join(t.TempDir(), "home")
	env := append(os.Environ(), "SKALD_CONNECTORS_HOME="+home, "SKALD_CONNECTORS_INDEX="+market, "SKALD_CONNECTORS_KEYSTORE=keyfile")
	return func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := runWith(context.Background(), args, env, strings.NewReader(""), &out, &errs, hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork})
		return code, out.String(), errs.String()
	}, home
}

// onDisk is all that the records and tool definitions of a home hold.
func onDisk(t *testing.T, home string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"activations/*", "tools/*"} {
		files, err := filepath.Glob(filepath.Join(home, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
	}
	return all.String()
}

// acting matches what a terminal would act on.
var acting = regexp.MustCompile("[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u200b\u202a-\u202e\u2066-\u2069\U000e0041]")

// TestTextsOfTheFeed installs a connector all of whose texts act on terminals,
// and looks at every output of every command.
func TestTextsOfTheFeed(t *testing.T) {
	const evil = "\x1b]52;c;aGk=\x07\x1b[2J\r\u202e\u009b31m\u200b\u2066\U000e0041"
	run, _ := inHome(t, hostileMarket(t, shipped{id: "ev", change: func(m map[string]any) {
		m["name"], m["version_string"], m["homepage"], m["tags"], m["requires"] = evil, evil, "https://x/"+evil, []string{evil}, []string{evil}
		m["docs"] = []any{map[string]any{"lang": "en", "description": evil, "llm_short_description": evil}}
		m["env"] = []any{map[string]any{"name": "A", "label": evil, "description": evil, "default": "x", "example": evil}}
	}}))
	for _, args := range [][]string{{"install", "ev", "--yes", "-v"}, {"info", "ev"}, {"info", "ev", "--json"}, {"list"}, {"list", "--json"}, {"search"}, {"search", "--json"},
		{"configure", "ev", "--set", "A=" + strings.ReplaceAll(evil, "\r", "")}, {"info", "ev"}, {"info", "ev", "--json"}, {"verify", "ev", "--json"}, {"secrets", "list", "ev"}, {"tools", "ev"}, {"tools", "ev", "--json"}, {"logs", "ev"}, {"uninstall", "ev"}} {
		code, out, errs := run(args...)
		if code != exitDone {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
		for _, line := range append(strings.Split(out, "\n"), strings.Split(errs, "\n")...) {
			if acting.MatchString(line) {
				t.Errorf("%q: %q", args, line)
			}
		}
		if slices.Contains(args, "--json") && !json.Valid([]byte(out)) {
			t.Errorf("%q: not JSON: %s", args, out)
		}
	}
}

// TestOneDocument: however many connectors fail, standard output holds one document.
func TestOneDocument(t *testing.T) {
	refuses := func(m map[string]any) { m["verify"] = map[string]any{"command": "exit 1"} }
	for name, list := range map[string][]shipped{
		"two of three":   {{id: "a", change: refuses}, {id: "b", change: refuses}, {id: "c"}},
		"the last two":   {{id: "a"}, {id: "b", change: refuses}, {id: "c", change: refuses}},
		"all of them":    {{id: "a", change: refuses}, {id: "b", change: refuses}, {id: "c", change: refuses}},
		"one in between": {{id: "a"}, {id: "b", change: refuses}, {id: "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			run, _ := inHome(t, hostileMarket(t, list...))
			code, out, errs := run("install", "a", "b", "c", "--yes", "--json")
			if code != exitRefused || !json.Valid([]byte(out)) {
				t.Errorf("exit %d, %s", code, out)
			}
			for _, c := range list {
				if said := strings.Contains(errs, fmt.Sprintf("verifying %q: ", c.id)); said != (c.change != nil) {
					t.Errorf("%s: said %v\n%s", c.id, said, errs)
				}
			}
		})
	}
}

// TestServerThatRepeatsTheSecret: what a server says in any of its answers is
// struck of the secret before it is shown or written.
func TestServerThatRepeatsTheSecret(t *testing.T) {
	const secret = `tRoub4dor "q" \x é 97`
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "pw"), secret)
	field := func(m map[string]any) {
		m["env"] = []any{map[string]any{"name": "KEY", "secret": true, "required": true}}
	}
	server, err := os.ReadFile("testdata/market/mail/server.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"instructions": {`"Be kind."`, `"key: " + os.environ["KEY"]`},
		"server info":  {`"name": "test"`, `"name": os.environ["KEY"]`},
		"a title":      {`"title": "Echo"`, `"title": os.environ["KEY"]`},
		"a schema":     {`{"type": "object"}`, `{"type": "object", "properties": {"a": {"default": os.environ["KEY"]}}}`},
		"an error":     {`reply["result"] = {"protocolVersion"`, `reply["error"] = {"code": 1, "message": "bad " + os.environ["KEY"]}; _ = {"protocolVersion"`},
		"its end":      {`TOOLS =`, `sys.exit("\n" * 300 + os.environ["KEY"] * 3 + "x" * 4050 + repr(os.environ["KEY"])); TOOLS =`},
	} {
		t.Run(name, func(t *testing.T) {
			code := strings.Replace(string(server), change[0], change[1], 1)
			if code == string(server) {
				t.Fatalf("%q is not in the server", change[0])
			}
			run, home := inHome(t, hostileMarket(t, shipped{id: "ev", change: field, files: map[string]string{"server.py": code}}))
			_, out, errs := run("install", "ev", "--yes", "-v", "--json", "--secret-file", "KEY="+filepath.Join(dir, "pw"))
			_, list, _ := run("info", "ev", "--json")
			for _, text := range []string{out, errs, list, onDisk(t, home)} {
				for _, half := range []string{`dor "q`, `dor \"q`, `\x `, `x é 97`} {
					if strings.Contains(text, half) {
						t.Errorf("%q of the secret in %s", half, text)
					}
				}
			}
			if name == "its end" && !strings.Contains(errs, "the last lines that it wrote") {
				t.Errorf("its last lines are not shown: %s", errs)
			}
		})
	}
}

// TestWaitingForInput: a signal ends a command that waits for a value on a
// pipe that nobody writes to.
func TestWaitingForInput(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	var out, errs bytes.Buffer
	code := runWith(ctx, []string{"install", "mail", "--index", "builtin", "--secret-file", "A=-"}, []string{"SKALD_CONNECTORS_HOME=" + t.TempDir()}, silent, &out, &errs,
		hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork})
	if code != exitInterrupted {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestResultThatIsLost: a result that could not be written is no success.
func TestResultThatIsLost(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"search"}, {"help", "exit-codes"}, {"completion", "bash"}} {
		var errs bytes.Buffer
		code := runWith(context.Background(), args, []string{"SKALD_CONNECTORS_HOME=" + t.TempDir(), "SKALD_CONNECTORS_INDEX=builtin"}, strings.NewReader(""), full{}, &errs,
			hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork})
		if code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit %d: %s", args, code, errs.String())
		}
	}
}

// TestRefusedBeforeTheDownload: what cannot work is refused by its manifest,
// and leaves nothing.
func TestRefusedBeforeTheDownload(t *testing.T) {
	server := func(args ...string) map[string]any { return map[string]any{"command": "python3", "args": args} }
	for name, c := range map[string]struct {
		change func(m map[string]any)
		says   string
	}{
		"a secret argument": {func(m map[string]any) {
			m["env"], m["mcp_config"] = []any{map[string]any{"name": "K", "secret": true}}, server("server.py", "{SECRET:K}")
		}, "the token {SECRET:K} stands in mcp_config.args"},
		"a list that is an option":       {func(m map[string]any) { m["dependencies"] = []string{"-r /etc/passwd"} }, "(dependencies[0]): an option in place of a package"},
		"a type of auth that is no name": {func(m map[string]any) { m["auth"] = map[string]any{"type": map[string]any{"x": 1}} }, "its type is not a name"},
	} {
		t.Run(name, func(t *testing.T) {
			run, home := inHome(t, hostileMarket(t, shipped{id: "ev", change: c.change}))
			code, _, errs := run("install", "ev", "--yes")
			if code != exitUsage || !strings.Contains(errs, c.says) {
				t.Errorf("exit %d: %s", code, errs)
			}
			for _, dir := range []string{"connectors", "work", "state", "activations", "keystore"} {
				if _, err := os.Lstat(filepath.Join(home, dir)); err == nil {
					t.Errorf("it left %s", dir)
				}
			}
		})
	}
}

// TestShortSecretIsSaid: what cannot be struck out of messages is named first, once.
func TestShortSecretIsSaid(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "pw"), "hunter2")
	run, _ := inHome(t, hostileMarket(t, shipped{id: "ev", change: func(m map[string]any) {
		m["env"] = []any{map[string]any{"name": "KEY", "secret": true}}
	}}))
	code, _, errs := run("install", "ev", "--yes", "--secret-file", "KEY="+filepath.Join(dir, "pw"))
	if code != exitDone || strings.Count(errs, "note: KEY: fewer than 8 characters") != 1 {
		t.Errorf("exit %d: %s", code, errs)
	}
}
