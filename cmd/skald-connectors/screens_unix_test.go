//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestYesAsksOnlyForWhatIsMissing: who agreed to everything is not shown a form of fields that may stay open, nor
// asked where a key of no secrets shall be; what is required and missing is asked for all the same.
func TestYesAsksOnlyForWhatIsMissing(t *testing.T) {
	b := newBench(t)
	s := b.sit("install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-file", "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"), "--no-mount")
	s.wait("mail is installed")
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if strings.Contains(s.seen(), "Settings of mail") {
		t.Errorf("a form was shown:\n%s", s.seen())
	}
	s = b.sit("install", "mail", "--as", "other", "--yes", "--set", "MAIL_HOST=h")
	s.wait("Settings of other")
	s.wait("Password")
	s.keys("correct horse\r")
	s.wait("other is installed")
	s.keys("\x03") // the offer to mount
	if code := s.ends(); code != exitDone {
		t.Fatalf("exit %d", code)
	}
	if strings.Contains(s.seen(), "Port") && strings.Contains(s.seen(), "(1 of") {
		t.Errorf("it asked for what may stay open:\n%s", s.seen())
	}
}

// TestPlanNamesTheClient: what an install needs besides this program is said before the yes.
func TestPlanNamesTheClient(t *testing.T) {
	b := newBench(t)
	s := b.sit("--index", "builtin", "install", "gmail")
	s.wait("client    a client of your own is needed, once for all connectors of Google")
	s.wait("https://console.cloud.google.com/")
	s.wait("docs/google.md")
	s.wait("Install gmail?")
	s.keys("n\r")
	if code := s.ends(); code != exitFailed {
		t.Fatalf("exit %d", code)
	}
}

// TestUpgradeAsksForWhatIsNew: the form of an upgrade is what its plan said, not all settings again.
func TestUpgradeAsksForWhatIsNew(t *testing.T) {
	b := newBench(t)
	b.must("install", "mail", "--yes", "--set", "MAIL_HOST=h", "--secret-file", "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))
	manifest := filepath.Join(b.dir, "market", "mail", "connector.json")
	text := strings.Replace(b.read("market/mail/connector.json"), `"required": false`, `"required": true`, 1)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.bump("mail")
	s := b.sit("upgrade", "mail")
	s.wait("Upgrade mail?")
	s.keys("y\r")
	s.wait("Settings of mail\n") // and no "(1 of 4)"
	s.keys("a key that is long enough\r")
	s.wait("mail is upgraded")
	if code := s.ends(); code != exitDone {
		t.Fatalf("exit %d", code)
	}
}
