package activate

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
	"skald-connectors/login"
)

const fileManifest = `{"id":"c","name":"C","type":"mcp_local","scope":"user","version":1,
 "auth":{"type":"oauth2","provider":"testid","deliver":{"as":"file","path":"{secrets}/token","format":"access_token"}},
 "mcp_config":{"command":"python3","args":["server.py"],"env":{"TOKEN_FILE":"{secrets}/token"}}}`

func handTrial(t *testing.T) (*Activator, *trial) {
	t.Helper()
	home := t.TempDir()
	a := &Activator{Home: home, Store: install.Open(home)}
	m := parse(t, fileManifest)
	tr := &trial{name: "c", manifest: m, values: newValues(m)}
	tr.values.cred = &login.Credential{TokenURL: "https://id.example/token", Access: keystore.NewSecret("first")}
	if err := atomicfile.PrivateDir(a.connectorHome("c")); err != nil {
		t.Fatal(err)
	}
	return a, tr
}

func holding(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// The folder of the credential is the connector's own: what it puts in the place of file and folders never leads a renewal, which
// runs outside of the sandbox, to a file of the person's.
func TestHandoverReplacedByLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights here")
	}
	for _, what := range []string{"file", "folder", "place"} {
		t.Run(what, func(t *testing.T) {
			a, tr := handTrial(t)
			h, err := a.handOver(tr)
			if err != nil {
				t.Fatal(err)
			}
			holding(t, h.file, "first")
			theirs := filepath.Join(t.TempDir(), "theirs")
			for _, dir := range []string{theirs, filepath.Join(theirs, filepath.Base(h.dir))} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "token"), []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			name, to := h.file, filepath.Join(theirs, "token")
			switch what {
			case "folder":
				name, to = h.dir, theirs
			case "place":
				name, to = filepath.Dir(h.dir), theirs
			}
			if err := os.Rename(name, name+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, name); err != nil {
				t.Fatal(err)
			}
			renewed := login.Credential{TokenURL: "https://id.example/token", Access: keystore.NewSecret("second")}
			_ = h.write(renewed) // that it cannot be delivered any more is the connector's own doing
			h.remove()
			holding(t, filepath.Join(theirs, "token"), "precious")
			holding(t, filepath.Join(theirs, filepath.Base(h.dir), "token"), "precious")
		})
	}
}

// A renewed credential is in the file that the server was told of, and what a killed process left goes.
func TestHandoverRenewedAndSwept(t *testing.T) {
	a, tr := handTrial(t)
	left, err := a.handOver(tr)
	if err != nil {
		t.Fatal(err)
	}
	left.release() // as a kill does
	h, err := a.handOver(tr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left.dir); !os.IsNotExist(err) {
		t.Errorf("what was left is still there: %v", err)
	}
	if err := h.write(login.Credential{TokenURL: "https://id.example/token", Access: keystore.NewSecret("second")}); err != nil {
		t.Fatal(err)
	}
	holding(t, h.file, "second")
	if info, err := os.Stat(h.file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	h.remove()
	if _, err := os.Lstat(h.dir); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
}

// A pipe in the place of the folder holds nobody up.
func TestHandoverPipe(t *testing.T) {
	a, tr := handTrial(t)
	if err := makePipe(filepath.Join(a.connectorHome("c"), ".credentials")); err != nil {
		t.Skip(err)
	}
	if h, err := a.handOver(tr); err == nil {
		h.remove()
		t.Error("a credential was written into a pipe")
	}
}
