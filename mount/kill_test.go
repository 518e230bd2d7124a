package mount

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// A mount that is killed leaves the file as before or as after, and the next one
// works and leaves nothing lying about.
func TestKilledMounts(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	src := []byte("{\n  \"theirs\": true\n}\n")
	w.write(file, src)
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprintf("n-%d", i))
	}
	killed := 0
	for round := range 12 {
		cmd := process(t, "mount", append([]string{w.home, w.m.o.State, "cursor"}, names...)...)
		check(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(5+round*7)*time.Millisecond, func() { cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		var doc struct {
			Theirs     bool
			McpServers map[string]struct{ Command string }
		}
		if err := json.Unmarshal(w.read(file), &doc); err != nil || !doc.Theirs {
			t.Fatalf("after a kill: %v\n%s", err, w.read(file))
		}
		for name, s := range doc.McpServers {
			if s.Command != w.m.o.Program {
				t.Errorf("half an entry: %s %+v", name, s)
			}
		}
		w.mount(Request{Client: "cursor", Name: "after"})
		w.unmount(Request{Client: "cursor", Name: "after"})
		w.clean(file)
	}
	if killed == 0 {
		t.Error("no process was killed in time")
	}
	for _, name := range names {
		w.unmount(Request{Client: "cursor", Name: name})
	}
	var doc map[string]any
	check(t, json.Unmarshal(w.read(file), &doc))
	if left, _ := doc["mcpServers"].(map[string]any); len(left) != 0 || doc["theirs"] != true {
		t.Errorf("all out:\n%s", w.read(file))
	}
}

// Claude Code locks its file by a folder beside it: we wait for it, take it and give
// it back; one that stays does not stop us.
func TestClientLock(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("claude-code")
	w.write(file, []byte("{}"))
	w.m.settle = 10 * time.Millisecond
	check(t, os.Mkdir(file+".lock", 0o755))
	released := make(chan time.Time, 1)
	time.AfterFunc(120*time.Millisecond, func() {
		os.Remove(file + ".lock")
		released <- time.Now()
	})
	w.mount(Request{Client: "claude-code", Name: "mail"})
	if done := time.Now(); done.Before(<-released) {
		t.Error("it was written while the client had the lock")
	}
	w.clean(file)
	check(t, os.Mkdir(file+".lock", 0o755))
	w.unmount(Request{Client: "claude-code", Name: "mail"})
	w.same(file, []byte("{}"), "unmounted")
	if !exists(file + ".lock") {
		t.Error("the lock of the client was taken away")
	}
}
