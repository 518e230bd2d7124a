package keystore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// stubVar names a Secret Service that the child offers on its bus first.
const stubVar = "KEYSTORE_TEST_STUB"

// outcome is what the child saw, as one JSON line.
type outcome struct {
	Kind   Kind
	Text   string
	Took   time.Duration
	Notice []string
}

// childKeyring DIR LIMIT [interactive]: a life of a vault with the system's keychain.
func childKeyring(args []string) error {
	limit, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	stop, err := startStub(os.Getenv(stubVar))
	if err != nil {
		return err
	}
	defer stop()
	var out outcome
	o := Options{Dir: args[0], Want: BackendKeychain, Interactive: len(args) > 2, Notice: func(n string) { out.Notice = append(out.Notice, n) }}
	s := Open(o)
	s.guard.limit = limit
	start := time.Now()
	err = vaultLife(s, o)
	out.Took = time.Since(start)
	var e *Error
	if err != nil {
		out.Text = err.Error()
	}
	if errors.As(err, &e) {
		out.Kind = e.Kind
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func vaultLife(s *Store, o Options) error {
	ctx := context.Background()
	if err := s.Put(ctx, "gmail", 1, handles("A", canary)); err != nil {
		return err
	}
	st, err := s.loadState()
	if err != nil {
		return err
	}
	lookup := func() string {
		out, _ := exec.Command("secret-tool", "lookup", "service", keychainService, "username", st.item).Output()
		return string(out)
	}
	if lookup() != s.cached.text() {
		return errors.New("the key is not in the keychain")
	}
	other := Open(o)
	hs, err := other.Load(ctx, "gmail", 1)
	if err != nil || !sameHandles(hs, handles("A", canary)) {
		return fmt.Errorf("loaded %v, %w", hs, err)
	}
	if err := errors.Join(other.Remove("gmail"), other.Forget(ctx)); err != nil {
		return err
	}
	if lookup() != "" {
		return errors.New("the key is still in the keychain")
	}
	return nil
}

func needPrograms(t *testing.T) {
	t.Helper()
	for _, name := range []string{"dbus-run-session", "dbus-daemon", "dbus-send", "gnome-keyring-daemon", "secret-tool", "timeout"} {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("SKALD_TEST_REQUIRE") == "1" {
			t.Fatalf("%s is not installed, and nothing may be missing here", name)
		}
		t.Skipf("%s is not installed (dbus-daemon, gnome-keyring, libsecret-tools)", name)
	}
}

// runKeyring runs the child, under the script where a state is named.
func runKeyring(t *testing.T, state string, env []string, args ...string) outcome {
	t.Helper()
	cmd := child(t, "keyring", append([]string{filepath.Join(t.TempDir(), "keystore")}, args...)...)
	if state != "" {
		script, err := filepath.Abs("testdata/with-keyring.sh")
		must(t, err)
		cmd.Args = append([]string{script, state}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = script
	}
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	var out outcome
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s", err, &stdout)
	}
	t.Logf("%s after %s: %s %q", out.Kind, out.Took.Round(time.Millisecond), out.Text, out.Notice)
	return out
}

// TestKeychainSituations is the table of security.md section 4.2, with what
// the user is told.
func TestKeychainSituations(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("platform: the Secret Service is Linux's")
	}
	needPrograms(t)
	const long, short = "20s", "700ms"
	rows := []struct {
		name, state, limit string
		interactive        bool
		env                []string
		kind               Kind
		text, notice       string
	}{
		{name: "open", state: "open", limit: long},
		{name: "open, person there", state: "open", limit: long, interactive: true},
		{name: "locked", state: "locked", limit: long, kind: Locked, text: "reading from keychain: locked: nobody is here to unlock it"},
		{name: "locked, person there, no display", state: "locked", limit: long, interactive: true, kind: Locked, text: "failed to unlock"},
		{name: "wrong password", state: "wrong", limit: long, kind: Locked, text: "nobody is here"},
		{name: "stopped daemon", state: "stopped", limit: short, kind: TimedOut, text: "reading from keychain: timed out: no answer in 700ms"},
		{name: "never made", state: "unmade", limit: long, kind: Unavailable, text: "no keyring has been made or opened in it"},
		{name: "no home", state: "nohome", limit: long, kind: Unavailable, text: "no keyring has been made or opened in it"},
		{name: "no service", state: "bare", limit: long, kind: Unavailable, text: "no keychain program is on the session bus"},
		{name: "service that only errs", state: "bare", limit: long, env: []string{stubVar + "=errs"}, kind: Unavailable, text: "the keychain program answers with an error"},
		{name: "prompt for nobody", state: "bare", limit: long, env: []string{stubVar + "=prompts"}, kind: Locked, text: "nobody is here"},
		{name: "prompt without an answer", state: "bare", limit: "1500ms", interactive: true, env: []string{stubVar + "=prompts"}, kind: TimedOut,
			text: "no answer in 1.5s", notice: waitingForUnlock},
		{name: "dead bus", limit: long, env: []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent/bus"}, kind: Unavailable, text: "there is no session bus"},
		{name: "bus disabled", limit: long, env: []string{"DBUS_SESSION_BUS_ADDRESS=disabled:"}, kind: Unavailable, text: "there is no session bus"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			args := []string{row.limit}
			if row.interactive {
				args = append(args, "interactive")
			}
			out := runKeyring(t, row.state, row.env, args...)
			if strings.Join(out.Notice, "") != row.notice {
				t.Errorf("notice %q", out.Notice)
			}
			if out.Kind != row.kind || !strings.Contains(out.Text, row.text) || row.kind == "" && out.Text != "" {
				t.Errorf("%q %q, want %q %q", out.Kind, out.Text, row.kind, row.text)
			}
		})
	}
}

// TestNoBusIsStarted: without an address the library would start a bus.
func TestNoBusIsStarted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("platform: the session bus is Linux's")
	}
	if _, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid())); err == nil {
		t.Skip("platform: this user has a session bus at the standard place")
	}
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	must(t, os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte("#!/bin/sh\ntouch "+started+"\nexit 1\n"), 0o700))
	env := []string{"DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR=", "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}
	out := runKeyring(t, "", env, "5s")
	if out.Kind != Unavailable || !strings.Contains(out.Text, "there is no session bus") {
		t.Errorf("%+v", out)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("dbus-launch was run")
	}
}
