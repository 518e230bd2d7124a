//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts files below the person's home.
func (b *bench) write(files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(data)
}

const (
	theirCursor = "{\"mcpServers\": {\"gh\": {\"command\": \"gh-mcp\", \"args\": []}}}\n"
	theirCodex  = "# mine\nmodel = \"x\"\n"
)

func newClients(t *testing.T) *bench {
	b := newBench(t)
	b.env = append(b.env, "XDG_CONFIG_HOME=", "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "CONFIG_LOCAL_DIR=")
	b.write(map[string]string{".cursor/mcp.json": theirCursor, ".codex/config.toml": theirCodex})
	return b
}

// TestRemovalOfWhatIsLeftIsAsked: what is left in a client's file alone is not taken out of it without a word.
func TestRemovalOfWhatIsLeftIsAsked(t *testing.T) {
	b := newClients(t)
	b.must("install", "plain", "--yes")
	b.must("mount", "plain", "--client", "cursor")
	mounted := b.read(".cursor/mcp.json")
	b.must("uninstall", "plain")
	b.write(map[string]string{".cursor/mcp.json": mounted})
	s := b.sit("uninstall", "--all")
	s.wait("Remove 1 connector, its settings and secrets?")
	s.keys(ctrlC)
	if s.ends(); b.read(".cursor/mcp.json") != mounted {
		t.Error("it was taken out")
	}
}

// TestOfferAtATerminal is the end of an install as a person sees it.
func TestOfferAtATerminal(t *testing.T) {
	b := newClients(t)
	s := b.sit("install", "plain", "--yes")
	s.wait("plain is installed. Mount into:")
	s.wait("> [x] Cursor (~/.cursor/mcp.json)")
	s.wait("[x] Codex (~/.codex/config.toml)")
	s.keys(enter)
	s.wait("mounted   Cursor, in ~/.cursor/mcp.json")
	s.wait("mounted   Codex, in ~/.codex/config.toml")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if !strings.Contains(b.read(".cursor/mcp.json"), `"run", "plain"`) || !strings.Contains(b.read(".codex/config.toml"), `"run", "plain"`) {
		t.Error("it is not mounted in both")
	}
	b.must("unmount", "plain")
	if b.read(".cursor/mcp.json") != theirCursor || b.read(".codex/config.toml") != theirCodex {
		t.Error("the files are not what they were")
	}

	s = b.sit("mount", "plain")
	s.wait("> [x] Cursor")
	s.keys(" ")
	s.wait("> [ ] Cursor")
	s.keys(enter)
	s.wait("mounted connector plain in") // the path may begin the next line
	if code := s.ends(); code != 0 || b.read(".cursor/mcp.json") != theirCursor || !strings.Contains(b.read(".codex/config.toml"), "plain") {
		t.Errorf("exit %d; Cursor: %s", code, b.read(".cursor/mcp.json"))
	}

	s = b.sit("install", "plain", "--as", "second", "--yes")
	s.wait("Mount into:")
	s.keys("\x1b") // the connector is installed; only the offer is declined
	s.wait("second is installed: 1.0.0")
	if code := s.ends(); code != 0 || strings.Contains(b.read(".codex/config.toml"), "second") {
		t.Errorf("exit %d", code)
	}
}

// TestApplyAtATerminal asks for the secret of the set and for nothing else.
func TestApplyAtATerminal(t *testing.T) {
	b := newClients(t)
	b.must("install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-file", "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))
	b.write(map[string]string{"set.json": b.must("export")})
	b.must("uninstall", "mail")
	s := b.sit("apply", filepath.Join(b.dir, "set.json"))
	s.wait("Install mail?")
	s.keys("y" + enter)
	s.wait("Settings of mail")
	s.wait("Password")
	s.keys("correct horse")
	s.wait("13 characters")
	s.keys(enter)
	s.wait("installed  mail")
	if code := s.ends(); code != 0 || strings.Contains(s.seen(), "of 4)") {
		t.Errorf("exit %d, or more than the secret was asked for:\n%s", code, s.seen())
	}

	// A set that sends the password elsewhere is shown, and changes nothing without a yes.
	record := filepath.Join(b.home(), "activations", "mail.json")
	before, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	b.write(map[string]string{"set.json": strings.Replace(b.read("set.json"), `"MAIL_HOST": "h"`, `"MAIL_HOST": "evil.example"`, 1)})
	s = b.sit("apply", filepath.Join(b.dir, "set.json"))
	s.wait("MAIL_HOST: h → evil.example")
	s.wait("Change mail?")
	s.keys(enter)
	s.wait("you said no")
	after, err := os.ReadFile(record)
	if code := s.ends(); code != exitFailed || err != nil || string(after) != string(before) {
		t.Errorf("exit %d, or the record was changed (%v)", code, err)
	}
}

// TestKillWhileMounting kills the program before each step of mount, unmount and
// uninstall. Afterwards the same command finishes, and the files end as they began.
func TestKillWhileMounting(t *testing.T) {
	probe := newClients(t)
	probe.must("install", "plain", "--yes")
	for _, f := range []struct {
		args   []string
		before []string
	}{
		{[]string{"mount", "plain", "--all-clients"}, nil},
		{[]string{"unmount", "plain"}, []string{"mount", "plain", "--all-clients"}},
		{[]string{"uninstall", "plain"}, []string{"mount", "plain", "--all-clients"}},
	} {
		if f.before != nil {
			probe.must(f.before...)
		}
		steps := probe.steps(f.args...)
		if len(steps) < 2 {
			t.Fatalf("%v has the steps %v", f.args, steps)
		}
		for _, step := range steps {
			t.Run(f.args[0]+"/"+step, func(t *testing.T) {
				t.Parallel()
				b := newClients(t)
				b.must("install", "plain", "--yes")
				if f.before != nil {
					b.must(f.before...)
				}
				b.kill(step, f.args...)
				if code, _, errs := b.run(nil, f.args...); code != 0 && code != exitNotFound {
					t.Errorf("the same again: exit %d\n%s", code, errs)
				}
				if f.args[0] == "mount" {
					if mounts := b.must("list"); !strings.Contains(mounts, "cursor, codex") && !strings.Contains(mounts, "codex, cursor") {
						t.Errorf("the record does not know it:\n%s", mounts)
					}
					b.must("unmount", "plain")
				}
				if b.read(".cursor/mcp.json") != theirCursor || b.read(".codex/config.toml") != theirCodex {
					t.Errorf("the files are not what they were:\n%s\n%s", b.read(".cursor/mcp.json"), b.read(".codex/config.toml"))
				}
			})
		}
	}
}

// TestEngineChangedDuringWrite mounts into a catalogue that another program never stops
// rewriting: refused, and nothing of its is lost.
func TestEngineChangedDuringWrite(t *testing.T) {
	b := newClients(t)
	b.must("install", "plain", "--yes")
	pad := strings.Repeat(" ", 1<<20) // so long that it changes while it is read
	file := filepath.Join(b.dir, "engine", "config.d", "mcp.json")
	b.write(map[string]string{"engine/config.d/mcp.json": "[]" + pad})
	stop, done := make(chan struct{}), make(chan struct{})
	last := ""
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			last = fmt.Sprintf(`[{"name": "theirs", "n": %d}]`, n)
			if os.WriteFile(file+".new", []byte(last+pad), 0o600) == nil {
				_ = os.Rename(file+".new", file)
			}
		}
	}()
	code, _, errs := b.run([]string{"SKALD_TEST_IMPATIENT=1"}, "mount", "plain", "--client", "engine", "--config-dir", filepath.Join(b.dir, "engine"))
	close(stop)
	<-done
	if code != exitFailed || !strings.Contains(errs, "mount refused (changed_during_write): ") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if b.read("engine/config.d/mcp.json") != last+pad {
		t.Error("the file is not what its writer left")
	}
}
