package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// keyringScript runs a command on a session bus of its own with a real Secret
// Service in a named state.
const keyringScript = "../../keystore/testdata/with-keyring.sh"

func needKeyring(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"dbus-run-session", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("SKALD_TEST_REQUIRE") != "" {
				t.Fatalf("%s is missing and SKALD_TEST_REQUIRE is set", tool)
			}
			t.Skipf("%s is missing; this test wants a real keyring", tool)
		}
	}
	script, err := filepath.Abs(keyringScript)
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// session runs shell commands on one session with the keyring in a state; SK
// is the program.
func (b *bench) session(script, state, commands string) (int, string) {
	b.t.Helper()
	cmd := exec.Command("sh", script, state, "sh", "-c", commands)
	cmd.Dir = b.dir
	cmd.Env = append(b.env, "SK="+b.self, "SKALD_TEST_KEYCHAIN=os", "SKALD_CONNECTORS_KEYSTORE=")
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestRealKeyring: with a keyring that is open the key of the vaults goes into
// it, works from another process, and is gone with the last connector.
func TestRealKeyring(t *testing.T) {
	script := needKeyring(t)
	b := newBench(t)
	code, out := b.session(script, "open", `set -eu
$SK install mail --yes --set MAIL_HOST=h --secret-file MAIL_PASSWORD=pw 2>&1
$SK secrets list mail
$SK verify mail
secret-tool search --all service skald-connectors 2>&1
$SK uninstall mail
echo left:
secret-tool search --all service skald-connectors 2>&1`)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	for _, want := range []string{"its key is in your system's keychain", "MAIL_PASSWORD  keychain", "mail works: signed in", "attribute.service = skald-connectors", "the key of your secrets, which nothing else needs"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if _, left, _ := strings.Cut(out, "left:\n"); strings.TrimSpace(left) != "" {
		t.Errorf("left in the keyring:\n%s", left)
	}
	if strings.Contains(out, "correct horse") {
		t.Error("the secret is in the output")
	}
}

// TestKeyringSituations: what a person reads when the keyring cannot be used.
// Each ends at once with exit 7 and changes nothing.
func TestKeyringSituations(t *testing.T) {
	script := needKeyring(t)
	for state, want := range map[string]string{
		"locked":  "locked",
		"unmade":  "unavailable",
		"bare":    "unavailable",
		"stopped": "no answer in 5s",
		"nohome":  "unavailable",
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			before := b.withoutTops()
			code, out := b.session(script, state, `$SK install mail --yes --set MAIL_HOST=h --secret-file MAIL_PASSWORD=pw 2>&1`)
			if code != exitKeystore || !strings.Contains(out, want) || !strings.Contains(out, "hint: ") {
				t.Errorf("exit %d\n%s", code, out)
			}
			t.Log(lastLines(out))
			if after := b.withoutTops(); after != before {
				t.Errorf("left behind:\n%s", after)
			}
		})
	}
}

// lastLines are the message and its advice.
func lastLines(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, program+": ") || strings.HasPrefix(line, "hint: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// keyringBus is a session bus with a real keyring that lasts until the test ends.
func keyringBus(t *testing.T) (address string) {
	t.Helper()
	script, dir := needKeyring(t), t.TempDir()
	cmd := exec.Command("sh", script, "open", "sh", "-c", `printf %s "$DBUS_SESSION_BUS_ADDRESS" >bus.new && mv bus.new bus && exec cat`)
	cmd.Dir = dir
	end, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = end.Close(); <-ended })
	for {
		if text, err := os.ReadFile(filepath.Join(dir, "bus")); err == nil {
			return string(text)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the keyring ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// realKeyring is a connection to the keyring, to lock it and to open it as the
// person's login or prompt does.
type realKeyring struct {
	t   *testing.T
	bus *dbus.Conn
}

const (
	secretService    = "org.freedesktop.secrets"
	secretRoot       = dbus.ObjectPath("/org/freedesktop/secrets")
	secretCollection = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
)

func (k *realKeyring) lock() {
	k.t.Helper()
	if err := k.bus.Object(secretService, secretRoot).Call("org.freedesktop.Secret.Service.Lock", 0, []dbus.ObjectPath{secretCollection}).Err; err != nil {
		k.t.Fatal(err)
	}
}

func (k *realKeyring) unlock(password string) {
	k.t.Helper()
	service := k.bus.Object(secretService, secretRoot)
	var output dbus.Variant
	var session dbus.ObjectPath
	if err := service.Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &session); err != nil {
		k.t.Fatal(err)
	}
	type secret struct {
		Session           dbus.ObjectPath
		Parameters, Value []byte
		ContentType       string
	}
	const unlock = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword"
	if err := service.Call(unlock, 0, secretCollection, secret{session, []byte{}, []byte(password), "text/plain"}).Err; err != nil {
		k.t.Fatal(err)
	}
}

// TestRunWakesWithKeychain parks while a real keychain is locked, and wakes in the
// open session when it is opened.
func TestRunWakesWithKeychain(t *testing.T) {
	address := keyringBus(t)
	bus, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	k := &realKeyring{t, bus}
	p := newPlace(t)
	p.env = append(p.env, "SKALD_TEST_KEYCHAIN=os", "SKALD_CONNECTORS_KEYSTORE=", "DBUS_SESSION_BUS_ADDRESS="+address)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	install := &exec.Cmd{Path: self, Env: p.env, Args: []string{program, "install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-env", "MAIL_PASSWORD=THE_PASSWORD"}}
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	k.lock()
	s := p.run("mail")
	s.greet()
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{}}`), `"connector.auth_required"`, "is locked; run: skald-connectors unlock")
	s.expect(s.ask("resources/read", `{"uri":"connector://mail/status"}`), `\"state\":\"unauthorized\"`, "unlock")
	k.unlock("secret")
	for !strings.Contains(s.next(), "notifications/tools/list_changed") {
	}
	s.expect(s.ask("tools/call", `{"name":"echo","arguments":{"text":"hi"}}`), `"text": "hi"`)
	_ = s.in.Close()
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.errs.String())
	}
	p.noCanary(s)
}
