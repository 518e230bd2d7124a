package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPathsThatReachTooFar: where a path leads counts, not how it is written. The
// places of this program's secrets are never shown, nor is everything, by any
// back end.
func TestPathsThatReachTooFar(t *testing.T) {
	dir := resolved(t.TempDir())
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, d := range []string{"home/data/cache", "home/sk/keystore", "other"} {
		if err := os.MkdirAll(at(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"all": "/", "vault": at("home/sk"), "skl": at("home/sk"), "home/data/link": at("other"), "fine": at("home/data")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	hidden := []string{at("skl")}
	for _, c := range []struct {
		name        string
		read, write []string
		why         string
	}{
		{"a folder", []string{at("other")}, []string{at("home/data")}, ""},
		{"a link", nil, []string{at("fine")}, ""},
		{"a folder in a folder", []string{at("home/data/cache")}, []string{at("home/data"), at("home/data/cache")}, ""},
		{"not there yet", []string{at("other/none")}, nil, ""},
		{"everything", []string{"/"}, nil, "it is everything"},
		{"everything by a link", nil, []string{at("all")}, "it is everything"},
		{"everything by the kernel", []string{"/proc/self/root"}, nil, "it is everything"},
		{"the kernel's", []string{"/proc"}, nil, "the kernel's"},
		{"devices", nil, []string{"/dev"}, "the kernel's"},
		{"the secrets", nil, []string{at("home/sk")}, "secrets and other connectors"},
		{"in the secrets", []string{at("home/sk/keystore")}, nil, "secrets and other connectors"},
		{"not there in the secrets", []string{at("vault/later")}, nil, "secrets and other connectors"},
		{"around the secrets", nil, []string{at("home")}, "secrets and other connectors are in it, in " + quote(at("home/sk"))},
		{"by a link and back", []string{at("all/" + at("home/sk"))}, nil, "secrets and other connectors"},
		{"a link that it can swap", nil, []string{at("home/data"), at("home/data/link")}, "could lead anywhere"},
		{"below a link that it can swap", []string{at("home/data/link/x")}, []string{at("fine")}, "could lead anywhere"},
	} {
		p := Policy{Read: c.read, Write: c.write, Hidden: hidden}
		err := p.reaches()
		e, held := errors.AsType[*UnenforceableError](err)
		if c.why == "" && err != nil || c.why != "" && (!held || !e.Always || !strings.Contains(e.Why, c.why)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
	for _, mode := range []Mode{Combined, Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			s := openMode(t, mode)
			p := Policy{Write: []string{at("home")}, Hidden: hidden, Network: Network{All: true}}
			if _, err := s.Run(t.Context(), p, Command{Argv: []string{"/bin/true"}, Dir: "/usr"}, nil); err == nil {
				t.Error("it was started")
			}
			if text := s.Enforced(p).Sentence; !strings.HasPrefix(text, "it is not started here: ") {
				t.Error(text)
			}
		})
	}
}
