package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDeniedFilesAreNamed(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"mine", "yours/mail", "seen/x"} {
		if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(base, name) }
	p := Policy{Own: []string{at("mine")}, Read: []string{at("seen")}}
	const open = `for p in sys.argv[1:]:
  try: open(p + "/new" if p.endswith("x") else p, "w" if p.endswith("x") else "r")
  except Exception as e: print(e, file=sys.stderr)
sys.exit(1)`
	for _, mode := range []Mode{Combined, Bubblewrap, Landlock} {
		s := openMode(t, mode)
		c := Command{Argv: []string{"/usr/bin/python3", "-c", "import sys\n" + open, at("yours/mail"), at("seen/x"), at("mine/none"), "/nowhere/at/all"}, Dir: at("mine")}
		r, err := s.Run(t.Context(), p, c, nil)
		want := []Denial{{DeniedFile, at("yours/mail"), "it is not visible in the sandbox"}, {DeniedFile, at("seen/x/new"), "it may be read, not written"}}
		if err != nil || !slices.Equal(r.Denied, want) {
			t.Errorf("%s: got %v, %v\n%s", mode, r.Denied, err, r.Stderr)
		}
	}
	s := openMode(t, Combined)
	c := Command{Argv: []string{"/bin/sh"}, Dir: at("mine")}
	for text, want := range map[string]int{
		"Error: ENOENT: no such file or directory, open '" + at("yours/mail") + "'": 1,
		"cat: " + at("yours/mail") + ": No such file or directory":                  1,
		"reading " + at("yours/mail"):                                               0,
		"No such file or directory: " + at("mine/none"):                             0,
		"permission denied: /":                                                      0,
		"permission denied: /proc/1/mem, (" + at("yours/mail") + ").":               2,
	} {
		if got := s.Explain(p, c, []byte("starting\n"+text+"\nbye")); len(got) != want {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

func FuzzExplain(f *testing.F) {
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	s := &Sandbox{mode: Combined, self: exe, env: func(string) string { return "" }}
	f.Add([]byte("ENOENT /etc/shadow"))
	f.Add([]byte("permission denied: //../..//etc/./passwd:"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, d := range s.Explain(Policy{}, Command{Argv: []string{"/bin/sh"}, Dir: "/usr"}, text) {
			if !filepath.IsAbs(d.Target) || filepath.Clean(d.Target) != d.Target {
				t.Errorf("%q", d.Target)
			}
		}
	})
}
