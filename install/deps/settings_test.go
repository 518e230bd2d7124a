package deps

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNPMSettings: what is passed on is what the person set, for the registries that
// are used; everything that names a program, a script or a place stays behind.
func TestNPMSettings(t *testing.T) {
	home, prefix := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".npmrc"), `
; a comment
registry = https://r.example/npm/
@corp:registry=https://corp.example/
//r.example/npm/:_authToken=${NPM_TOKEN}
//corp.example/:_authToken="to;ken#2"
//other.example/:_authToken=`+canary+`
_authToken=`+canary+`
cafile=~/ca.pem
git=./evil.sh
node-options=--require ./evil.js
script-shell=./evil.sh
prefix=`+prefix+`
ignore-scripts=false
unset=${NOT_SET}
min-release-age=3
`)
	write(t, filepath.Join(prefix, "etc", "npmrc"), "fetch-timeout=5000\nregistry=https://lower.example/\nca[]=one\nca[]=two\n")
	environ := []string{"NPM_TOKEN=token-one", "npm_config_https_proxy=http://p:pass-word-1@proxy.example:3128", "NPM_CONFIG_GIT=evil", "npm_config_//r.example/npm/:email=a@b"}
	n := readNPMSettings(environ, home, filepath.Join(t.TempDir(), "bin", "node"), "", "https://own.example/")
	got := string(n.rc())
	for _, want := range []string{
		"registry=https://r.example/npm/\n", "@corp:registry=https://corp.example/\n", "//r.example/npm/:_authToken=token-one\n",
		`//corp.example/:_authToken="to;ken#2"` + "\n", "cafile=" + filepath.Join(home, "ca.pem") + "\n", "fetch-timeout=5000\n", "ca[]=one\nca[]=two\n",
		"https-proxy=http://p:pass-word-1@proxy.example:3128\n", "min-release-age=3\n", "//r.example/npm/:email=a@b\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("npm is not given %q:\n%s", want, got)
		}
	}
	for _, stray := range []string{canary, "evil", "node-options", "script-shell", "prefix", "ignore-scripts", "lower.example", "own.example", "unset"} {
		if strings.Contains(got, stray) {
			t.Errorf("npm is given %q:\n%s", stray, got)
		}
	}
	if want := []string{"corp.example:443", "proxy.example:3128", "r.example:443"}; !slices.Equal(n.hosts(), want) {
		t.Errorf("hosts %v, want %v", n.hosts(), want)
	}
	var secrets []string
	for _, h := range n.secrets {
		secrets = append(secrets, h.Value.Reveal())
	}
	for _, want := range []string{"token-one", "to;ken#2", "pass-word-1"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%q would not be struck out of npm's output", want)
		}
	}
}

func TestNPMSettingsOfNobody(t *testing.T) {
	n := readNPMSettings(nil, t.TempDir(), filepath.Join(t.TempDir(), "bin", "node"), "", "https://own.example:8443/x/")
	if len(n.lines) != 0 || n.registry != "https://own.example:8443/x/" || !slices.Equal(n.hosts(), []string{"own.example:8443"}) {
		t.Errorf("%+v", n)
	}
}

func TestPipSettings(t *testing.T) {
	home, prefix := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".config", "pip", "pip.conf"), `
[global]
index-url = https://u:pass-word-2@r.example/simple
find_links =
    /wheels
    ~/more
target = /evil
no-binary = :all:
[install]
extra-index-url: https://e.example/simple
[other]
cert = /evil
`)
	write(t, filepath.Join(prefix, "pip.conf"), "[global]\ntimeout = 7\n")
	p := readPipSettings([]string{"PIP_CERT=/ca.pem", "PIP_NO_BINARY=:all:", "PIP_TARGET=/evil", "PIP_TIMEOUT=9", "PIP_RETRIES="}, home, prefix)
	got := strings.Join(p.environ(), "\n")
	want := "PIP_CONFIG_FILE=" + pipNoFile() + "\nPIP_INDEX_URL=https://u:pass-word-2@r.example/simple\nPIP_EXTRA_INDEX_URL=https://e.example/simple\nPIP_FIND_LINKS=/wheels ~/more\nPIP_CERT=/ca.pem\nPIP_TIMEOUT=9"
	if got != want {
		t.Errorf("pip is given\n%s\nwant\n%s", got, want)
	}
	if want := []string{"e.example:443", "r.example:443"}; !slices.Equal(p.hosts([]string{"own.example:443"}), want) {
		t.Errorf("hosts %v, want %v", p.hosts(nil), want)
	}
	if !p.secret() || p.secrets[0].Value.Reveal() != "pass-word-2" {
		t.Error("the password of the index would not be struck out of pip's output")
	}
	if want := slices.Sorted(slices.Values([]string{"/ca.pem", "/wheels", filepath.Join(home, "more")})); !slices.Equal(p.files, want) {
		t.Errorf("files %v, want %v", p.files, want)
	}
	none := readPipSettings(nil, t.TempDir(), t.TempDir())
	if got := none.hosts([]string{"own.example:443"}); none.values["index-url"] == "" && none.values["no-index"] == "" && !slices.Contains(got, "own.example:443") {
		t.Errorf("without settings: %v, hosts %v", none.values, got)
	}
}

func FuzzLock(f *testing.F) {
	f.Add([]byte(lockOf(`"node_modules/a":{"version":"1.0.0","integrity":"` + digest512 + `","resolved":"https://r.example/a/-/a-1.0.0.tgz"}`)))
	f.Add([]byte(`{"lockfileVersion":2,"packages":{"node_modules/../x":{}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		l, err := readLock(lockFile, src, false)
		if err != nil {
			return
		}
		w := &wanted{}
		again, err := readLock(lockFile, l.marshal(w), false)
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, l.marshal(w))
		}
		if got, want := string(again.marshal(w)), string(l.marshal(w)); got != want {
			t.Fatalf("written twice it differs:\n%s\n%s", want, got)
		}
		for _, p := range l.packages {
			if strings.Contains(p.where, "..") && strings.Contains("/"+p.where+"/", "/../") || p.integrity == "" && !p.bundled {
				t.Fatalf("let through: %+v", p)
			}
		}
	})
}

func FuzzRequirements(f *testing.F) {
	f.Add([]byte("a[b]==1 ; python_version > '3' --hash=sha256:" + strings.Repeat("0", 64)))
	f.Add([]byte("a \\\n--no-binary :all:"))
	f.Fuzz(func(t *testing.T, src []byte) {
		list, err := readRequirements(requiredFile, src)
		if err != nil {
			return
		}
		var text string
		for _, r := range list {
			text += r.String() + "\n"
		}
		for word := range strings.FieldsSeq(text) {
			if strings.HasPrefix(word, "-") && !pipHash.MatchString(word) || strings.ContainsAny(word, "@/$#`") {
				t.Fatalf("%q lets %q through", src, word)
			}
		}
		again, err := readRequirements(requiredFile, []byte(text))
		if err != nil || len(again) != len(list) {
			t.Fatalf("what was written is refused: %v\n%s", err, text)
		}
	})
}

func FuzzPackageJSON(f *testing.F) {
	f.Add([]byte(`{"dependencies":{"a":"^1.0.0 || 2.x"},"overrides":{"a":{".":"1","b":"$a"}}}`))
	f.Add([]byte(`{"dependencies":{"a":"npm:@s/b@1"}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		w, err := readPackageJSON(src)
		if err != nil {
			return
		}
		if _, err := readPackageJSON(w.marshal()); err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, w.marshal())
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("//h/:_authToken=${X}\n[s]\na[]=b\n \"q\" = '1'")
	f.Add("[global]\nindex-url = a\n  b\n")
	f.Fuzz(func(t *testing.T, text string) {
		chooseNPM(mergeSettings(map[string]string{"X": "y"}, parseNPMRC(text)), "/h", "https://h/")
		for _, s := range parsePipConf(text) {
			if s.key != strings.ToLower(s.key) {
				t.Fatalf("key %q", s.key)
			}
		}
	})
}
