package mount

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const foreign = "{\n  \"mcpServers\": {\n    \"mail\": {\"command\": \"npx\", \"args\": [\"-y\", \"mail\"], \"env\": {\"API_KEY\": \"plain\"}}\n  }\n}\n"

func TestForeignEntryIsAConflict(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	w.write(file, []byte(foreign))
	e := w.refusal(Request{Client: "cursor", Name: "mail"}, Conflict)
	if want := file + `:3:5: there is another entry named "mail", which is not ours`; e.Error() != want {
		t.Errorf("%v, want %s", e, want)
	}
	if _, err := w.m.Unmount(context.Background(), Request{Client: "cursor", Name: "mail"}); !isReason(err, Conflict) {
		t.Errorf("unmount: %v", err)
	}
	w.same(file, []byte(foreign), "after unmount")
}

func isReason(err error, want Reason) bool {
	var e *RefusedError
	return errors.As(err, &e) && e.Reason == want
}

// An entry is ours by its digest in the record, or by what it starts; the name alone
// says nothing.
func TestOwnership(t *testing.T) {
	for _, c := range []struct {
		name, entry, home string
		ours              bool
	}{
		{"another path", `{"command": "/old/skald-connectors", "args": ["run", "mail"]}`, "", true},
		{"plain name", `{"command": "skald-connectors", "args": ["run", "mail"]}`, "", true},
		{"Windows", `{"command": "C:\\x\\Skald-Connectors.EXE", "args": ["run", "mail"]}`, "", true},
		{"more arguments", `{"command": "skald-connectors", "args": ["run", "mail", "-v"]}`, "", true},
		{"another home", `{"command": "skald-connectors", "args": ["run", "mail", "--home", "/other"]}`, "", false},
		{"our home", `{"command": "skald-connectors", "args": ["run", "mail", "--home", "/h"]}`, "/h", true},
		{"our home, joined", `{"command": "skald-connectors", "args": ["run", "mail", "--home=/h"]}`, "/h", true},
		{"default home for another", `{"command": "skald-connectors", "args": ["run", "mail"]}`, "/h", false},
		{"another activation", `{"command": "skald-connectors", "args": ["run", "other"]}`, "", false},
		{"another command of ours", `{"command": "skald-connectors", "args": ["serve", "mail"]}`, "", false},
		{"a program with a like name", `{"command": "/x/skald-connectors-old", "args": ["run", "mail"]}`, "", false},
		{"wrapped", `{"command": "sh", "args": ["-c", "skald-connectors run mail"]}`, "", false},
		{"an address", `{"url": "https://example.org/skald-connectors"}`, "", false},
		{"a text", `"skald-connectors run mail"`, "", false},
		{"null", `null`, "", false},
		{"arguments that are no texts", `{"command": "skald-connectors", "args": ["run", "mail", 1]}`, "", false},
	} {
		w := newWorld(t, "linux")
		w.m.o.Home = c.home
		file := w.file("cursor")
		src := []byte(`{"mcpServers": {"mail": ` + c.entry + `, "x": {}}}`)
		w.write(file, src)
		req := Request{Client: "cursor", Name: "mail"}
		if !c.ours {
			w.refusal(req, Conflict)
			req.Digests = []string{digestOfJSON(t, c.entry)} // a record says that it is ours all the same
		}
		if res := w.mount(req); !res.Changed {
			t.Errorf("%s: not brought up to date", c.name)
		}
		req.Digests = nil
		if res := w.mount(req); res.Changed {
			t.Errorf("%s: %s", c.name, w.read(file))
		}
		w.unmount(req)
		w.same(file, []byte(`{"mcpServers": {"x": {}}}`), c.name)
	}
}

func digestOfJSON(t *testing.T, text string) string {
	tree, err := jsonEditor{}.tree([]byte(text))
	check(t, err)
	return digestOf(tree)
}

// What a person added to our entry stays when the path changes.
func TestUpdateKeepsWhatAPersonAdded(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cline")
	w.write(file, []byte("{\n  \"mcpServers\": {\n    \"a\": {},\n    \"mail\": {\n      \"command\": \"/old/skald-connectors\", \"args\": [\"run\", \"mail\"],\n      \"disabled\": true, \"autoApprove\": [\"read\"], \"timeout\": 60, \"env\": {\"LANG\": \"C\"}\n    }\n  }\n}\n"))
	res := w.mount(Request{Client: "cline", Name: "mail", File: file})
	want := `{
  "mcpServers": {
    "a": {},
    "mail": {
      "command": "/opt/skald/bin/skald-connectors",
      "args": ["run", "mail"],
      "disabled": true,
      "autoApprove": ["read"],
      "env": {
        "LANG": "C"
      },
      "timeout": 60
    }
  }
}
`
	w.same(file, []byte(want), "updated")
	if !res.Changed || !strings.Contains(res.Diff, "+      \"command\": \"/opt/skald/bin/skald-connectors\",\n") {
		t.Errorf("%+v", res)
	}
	w.unmount(Request{Client: "cline", Name: "mail", File: file})
	w.same(file, []byte("{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n"), "unmounted")
}

// A client that writes its file anew, in its own order and spacing, changes nothing
// about whose entry it is.
func TestClientRewritesItsFile(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("claude-code")
	w.write(file, []byte(`{"numStartups": 1, "mcpServers": {"x": {"command": "y"}}}`))
	req := Request{Client: "claude-code", Name: "mail"}
	res := w.mount(req)
	var v any
	check(t, json.Unmarshal(w.read(file), &v))
	v.(map[string]any)["numStartups"] = 2
	anew, err := json.MarshalIndent(v, "", "   ")
	check(t, err)
	w.write(file, anew)
	req.Digests = []string{res.Digest}
	if again := w.mount(req); again.Changed || again.Digest != res.Digest {
		t.Errorf("%+v", again)
	}
	w.unmount(req)
	w.same(file, []byte("{\n   \"mcpServers\": {\n      \"x\": {\n         \"command\": \"y\"\n      }\n   },\n   \"numStartups\": 2\n}"), "unmounted")
}

// Adopting: the digest of a foreign entry makes it ours; nothing of it stays.
func TestAdopt(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	w.write(file, []byte(foreign))
	states, err := w.m.Inspect("cursor", "")
	check(t, err)
	e := states[0].Entries[0]
	if e.Command != "npx" || strings.Join(e.Args, " ") != "-y mail" || e.Env["API_KEY"] != "plain" || e.Line != 3 || strings.Join(e.Secrets, ",") != "env API_KEY" {
		t.Errorf("%+v", e)
	}
	w.mount(Request{Client: "cursor", Name: "mail", Digests: []string{e.Digest}})
	if got := string(w.read(file)); strings.Contains(got, "plain") || !strings.Contains(got, ourProgram) {
		t.Errorf("adopted:\n%s", got)
	}
}

func TestDryRun(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("zed")
	src := []byte("// mine\n{\n  \"context_servers\": {\n    \"x\": {} // note\n  }\n}\n")
	w.write(file, src)
	res := w.mount(Request{Client: "zed", Name: "mail", DryRun: true})
	want := "--- " + file + "\n+++ " + file + `
@@ -3,3 +3,10 @@
   "context_servers": {
-    "x": {} // note
+    "x": {}, // note
+    "mail": {
+      "source": "custom",
+      "enabled": true,
+      "command": "/opt/skald/bin/skald-connectors",
+      "args": ["run", "mail"],
+      "env": {}
+    }
   }
`
	want = strings.Replace(want, "+3,10", "+3,9", 1)
	if !res.Changed || res.Diff != want && res.Diff != strings.Replace(want, "+3,9", "+3,10", 1) {
		t.Errorf("difference:\n%s", res.Diff)
	}
	w.same(file, src, "dry run")
	if _, err := os.Stat(w.m.o.State); !os.IsNotExist(err) {
		t.Errorf("a dry run made %s: %v", w.m.o.State, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	check(t, err)
	if len(entries) != 1 {
		t.Errorf("a dry run left %v", entries)
	}
}

// The backup holds the bytes from before, for its owner only.
func TestBackup(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	src := []byte(`{"mcpServers": {"x": {}}}`)
	w.write(file, src)
	res := w.mount(Request{Client: "cursor", Name: "mail"})
	w.same(res.Backup, src, "backup")
	fi, err := os.Stat(res.Backup)
	check(t, err)
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
}

// Somebody else's change between mount and unmount stays.
func TestUnmountKeepsLaterChanges(t *testing.T) {
	for _, client := range []string{"cursor", "codex", "goose", "continue", "vibe"} {
		w := newWorld(t, "linux")
		file := w.file(client)
		r := rowOf(client)
		for _, s := range corpus(r) {
			if s.name != "populated" {
				continue
			}
			w.write(file, s.data)
			w.mount(Request{Client: client, Name: "mail"})
			change := func(b []byte) []byte {
				return []byte(strings.Replace(strings.Replace(string(b), "dark", "light", 1), "gpt", "other", 1))
			}
			w.write(file, change(w.read(file)))
			w.unmount(Request{Client: client, Name: "mail"})
			w.same(file, change(s.data), client)
		}
	}
}

// A new path of the program is written over the old one in every format, and the way
// back stays exact.
func TestUpdateInEveryFormat(t *testing.T) {
	for _, id := range []string{"cursor", "zed", "opencode", "codex", "vibe", "goose", "continue"} {
		r := rowOf(id)
		w := newWorld(t, "linux")
		for i, s := range corpus(r) {
			if s.refused != "" || i%2 == 1 {
				continue
			}
			file := w.file(id)
			w.write(file, s.data)
			req := Request{Client: id, Name: "mail", Create: true}
			w.m.o.Program = "/opt/1.0/skald-connectors"
			old := w.mount(req)
			w.m.o.Program = "/opt/1.1/skald-connectors"
			res := w.mount(req)
			if !res.Changed || res.Digest == old.Digest || strings.Contains(string(w.read(file)), "1.0/") {
				t.Errorf("%s, %s: %+v\n%s", id, s.name, res, w.read(file))
			}
			readsBack(w, r, file)
			w.unmount(req)
			w.same(file, s.data, id+", "+s.name)
		}
	}
}

// A program that is called otherwise knows its own entries, also while somebody else writes the file: it looks at it again then.
func TestProgramOfAnotherName(t *testing.T) {
	w := newWorld(t, "linux")
	w.m.o.Program = "/home/u/Downloads/skald-connectors-linux-amd64"
	file := w.file("cursor")
	w.write(file, []byte(foreign)) // just now, so that the mount looks again
	w.mount(Request{Client: "cursor", Name: "plain", Create: true})
	w.mount(Request{Client: "cursor", Name: "plain", Create: true}) // no record knows of it yet
	states, err := w.m.Inspect("cursor", "")
	check(t, err)
	if len(states) != 1 || len(states[0].Entries) != 2 || states[0].Entries[1].Activation != "plain" {
		t.Errorf("its entry is not seen: %+v", states)
	}
	w.unmount(Request{Client: "cursor", Name: "plain"})
	w.same(file, []byte(foreign), "after unmount")

	w.m.o.Program = "/home/u/Downloads/another" // the name that it has now counts, and no other one
	w.write(file, []byte(strings.Replace(foreign, `"npx", "args": ["-y", "mail"]`, `"/x/skald-connectors-linux-amd64", "args": ["run", "mail"]`, 1)))
	w.refusal(Request{Client: "cursor", Name: "mail"}, Conflict)
}
