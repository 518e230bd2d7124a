package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestSwappedOnTheWay: one other byte in the index, in its signature or in a file is an exit 6, and nothing of it is kept.
func TestSwappedOnTheWay(t *testing.T) {
	l := newLiar(t).signed()
	l.must("search", "plain")
	l.ahead = 2 * time.Hour // the next reading asks again
	for path, row := range map[string]struct {
		at   int
		says string
	}{
		"connectors.json":         {40, "is not trusted (signature)"},
		"connectors.json.minisig": {120, "is not trusted (signature)"},
		"plain/server.py":         {10, `"server.py" of connector "plain" does not match its pin`},
		"plain/connector.json":    {10, `"connector.json" of connector "plain" does not match its pin`},
	} {
		if err := os.RemoveAll(filepath.Join(l.home, "cache", "sha256")); err != nil {
			t.Fatal(err)
		}
		l.lie("/"+path, l.flipped(path, row.at))
		if path == "connectors.json.minisig" { // it is looked at when the index is another one
			l.sign()
			l.lie("/"+path, l.flipped(path, row.at))
		}
		l.refused(exitIntegrity, row.says, "install", "plain", "--yes")
		l.lie("/"+path, nil)
		l.ahead += 2 * time.Hour
		l.must("search", "plain")
	}
	l.must("install", "plain", "--yes")
}

// TestDowngradedOnTheWay: what a marketplace was once it stays: signed, over https, under the newest keys.
func TestDowngradedOnTheWay(t *testing.T) {
	l := newLiar(t).signed()
	l.must("install", "plain", "--yes")
	bumpIn(t, l.dir, "plain")
	l.sign()
	for _, command := range [][]string{{"install", "plain", "--as", "second", "--yes"}, {"upgrade", "plain", "--yes"}, {"upgrade", "--all", "--yes"}, {"bundle", "export", "plain", "-o", filepath.Join(l.keys, "x.tar")}} {
		l.lie("/connectors.json.minisig", missing)
		l.refused(exitIntegrity, "its index came without a signature", command...)
		l.lie("/connectors.json.minisig", nil)
		unsigned := bytes.Replace(l.file("connectors.json"), []byte(`"type": "skald.index/v1"`), []byte(`"x": 1`), 1)
		l.lie("/connectors.json", saying(unsigned))
		l.lie("/connectors.json.minisig", missing)
		l.refused(exitIntegrity, "its index came without a signature", command...)
		l.lie("/connectors.json", nil)
		l.lie("/connectors.json.minisig", nil)

		// Away from https, whatever is cached: another machine's address, this very one's, no web address at all.
		plain := httptest.NewServer(http.FileServer(http.Dir(l.dir)))
		for _, to := range []string{plain.URL, "http://market.example", "ftp://market.example"} {
			for _, path := range []string{"/connectors.json", "/connectors.json.minisig", "/keys.json"} {
				l.lie(path, leading(to))
				l.refused(exitIntegrity, "redirected to "+to, command...)
				l.lie(path, nil)
			}
		}
		plain.Close()
	}
	l.must("upgrade", "plain", "--yes")
}

// TestRedirectedFiles: a file that leads away from https is not installed; a command that changes nothing goes on with the index that
// is cached, and says why.
func TestRedirectedFiles(t *testing.T) {
	l := newLiar(t)
	l.must("search", "plain")
	plain := httptest.NewServer(http.FileServer(http.Dir(l.dir)))
	defer plain.Close()
	l.lie("/plain/server.py", leading(plain.URL))
	if code, _, errs := l.on("install", "plain", "--yes"); code != exitIntegrity || !strings.Contains(errs, "redirected to http://") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(l.home, "activations", "plain.json")); err == nil {
		t.Error("it is installed")
	}
	l.lie("/plain/server.py", nil)
	l.lie("/connectors.json", leading(plain.URL))
	l.ahead = 2 * time.Hour
	if code, out, errs := l.on("search", "plain"); code != exitDone || !strings.Contains(out, "plain") || !strings.Contains(errs, "redirected to http://") {
		t.Errorf("search: exit %d: %s", code, errs)
	}
	l.refused(exitIntegrity, "redirected to http://", "install", "plain", "--yes")
	l.lie("/connectors.json", nil)
	l.must("install", "plain", "--yes")
}

// TestKeysThatAreWithheld: an index under keys that nobody shows is not believed, nor one under keys that went.
func TestKeysThatAreWithheld(t *testing.T) {
	l := newLiar(t)
	for _, name := range []string{"a", "root", "next"} {
		l.must("catalog", "keygen", l.key(name), "--no-password")
	}
	l.must("catalog", "keys", "add", "--dir", l.dir, "--root", l.key("root")+".pub", "--index", l.key("a")+".pub", "--key", l.key("root"))
	l.sign()
	l.must("marketplace", "add", l.server.URL, "--key", l.key("root")+".pub", "--name", "liar")
	forbidden := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	l.lie("/keys/2.json", forbidden) // as stores of files say that there is none
	l.must("install", "plain", "--yes")
	l.lie("/keys/2.json", nil)
	old, signature := l.file("connectors.json"), l.file("connectors.json.minisig")
	l.must("catalog", "keys", "add", "--dir", l.dir, "--index", l.key("next")+".pub", "--key", l.key("root"))
	l.must("catalog", "sign", l.dir, "--key", l.key("next"))
	install := []string{"install", "plain", "--as", "second", "--yes"}
	for _, withheld := range []http.HandlerFunc{missing, forbidden} {
		l.lie("/keys/2.json", withheld)
		l.refused(exitIntegrity, "is not trusted (signature)", install...)
		l.lie("/keys/2.json", nil)
	}
	l.lie("/keys/2.json.minisig", missing)
	l.refused(exitIntegrity, "keys/2.json has no signature beside it", install...)
	l.lie("/keys/2.json.minisig", nil)
	l.must(install...)
	l.lie("/connectors.json", saying(old))
	l.lie("/connectors.json.minisig", saying(signature))
	l.refused(exitIntegrity, "is not trusted", "install", "plain", "--as", "third", "--yes")
}

// TestReplayedIndex: an older index, another one with the same number, and one that has run out. What is installed goes on.
func TestReplayedIndex(t *testing.T) {
	l := newLiar(t).signed()
	older, signature := l.file("connectors.json"), l.file("connectors.json.minisig")
	fork := &liar{t: t, dir: filepath.Join(t.TempDir(), "market"), keys: l.keys, home: l.home, server: l.server, ca: l.ca}
	if err := os.CopyFS(fork.dir, os.DirFS(l.dir)); err != nil {
		t.Fatal(err)
	}
	fragment := filepath.Join(fork.dir, "plain", "fragment.json")
	writeFile(t, fragment, strings.Replace(string(readFile(t, fragment)), "A test connector: Plain.", "Another text.", 1))
	l.must("catalog", "compile", fork.dir)
	fork.sign() // number 2 as well
	l.sign()
	l.must("install", "plain", "--yes")
	install := []string{"install", "plain", "--as", "second", "--yes"}
	l.lie("/connectors.json", saying(older))
	l.lie("/connectors.json.minisig", saying(signature))
	l.refused(exitIntegrity, "is not trusted (rollback): it is number 1", install...)
	l.refused(exitIntegrity, "is not trusted (rollback)", "upgrade", "--all", "--yes")
	l.lie("/connectors.json", nil)
	l.lie("/connectors.json.minisig", nil)

	l.lie("/connectors.json", saying(fork.file("connectors.json")))
	l.lie("/connectors.json.minisig", saying(fork.file("connectors.json.minisig")))
	l.refused(exitIntegrity, "is not trusted (fork): there are two different ones with number 2", install...)
	l.lie("/connectors.json", nil)
	l.lie("/connectors.json.minisig", nil)
	l.must(install...)

	l.ahead = 31 * 24 * time.Hour
	l.refused(exitIntegrity, "is not trusted (freeze)", "install", "plain", "--as", "third", "--yes")
	l.refused(exitIntegrity, "is not trusted (freeze)", "upgrade", "--all", "--yes")
	code, _, errs := l.on("run", "plain")
	if code != exitDone || !strings.Contains(errs, "was good until") {
		t.Errorf("run: exit %d: %s", code, errs)
	}
	l.ahead = 0 // the clock is right, or set back: the newest date that was signed still counts
	l.must("install", "plain", "--as", "third", "--yes")
}

// TestEmbeddedKeys: a release that brings keys along makes the public marketplace a signed one, for ever and also for an older program.
func TestEmbeddedKeys(t *testing.T) {
	l := newLiar(t)
	l.public = true
	unsigned := l.file("connectors.json")
	l.must("install", "plain", "--yes") // a release without keys, the site unsigned
	for _, name := range []string{"root", "a", "stranger"} {
		l.must("catalog", "keygen", l.key(name), "--no-password")
	}
	l.must("catalog", "keys", "add", "--dir", l.dir, "--root", l.key("root")+".pub", "--index", l.key("a")+".pub", "--key", l.key("root"))
	l.sign()
	second := []string{"install", "plain", "--as", "second", "--yes"}
	l.ahead = 2 * time.Hour
	if code, _, errs := l.on("info", "plain"); code != exitDone || !strings.Contains(errs, "none of its keys is pinned here") {
		t.Errorf("without keys its signatures are not ignored: exit %d: %s", code, errs)
	}

	l.builtin = fstest.MapFS{"keys.json": {Data: l.file("keys.json")}} // the next release
	if out := l.must("info", "plain"); !strings.Contains(out, "signed by") {
		t.Errorf("the built-in keys do not count: %s", out)
	}
	good, signature := l.file("connectors.json"), l.file("connectors.json.minisig")
	l.lie("/connectors.json", saying(unsigned))
	l.lie("/connectors.json.minisig", missing)
	l.refused(exitIntegrity, "its index came without a signature", second...)
	l.refused(exitIntegrity, "its index came without a signature", "upgrade", "--all", "--yes")
	l.builtin = nil // an older program, or one that somebody put in its place: it stays signed
	l.refused(exitIntegrity, "its index came without a signature", second...)
	l.must("catalog", "keygen", l.key("b"), "--no-password")
	l.lie("/connectors.json", nil)
	l.lie("/connectors.json.minisig", nil)
	signAs(t, l, "stranger")
	l.refused(exitIntegrity, "is not trusted (signature)", second...)
	writeFile(t, filepath.Join(l.dir, "connectors.json"), string(good))
	writeFile(t, filepath.Join(l.dir, "connectors.json.minisig"), string(signature))
	l.must(second...)
	if data, err := os.ReadFile(filepath.Join(l.home, "activations", "second.json")); err != nil || !bytes.Contains(data, []byte(`"signer": "`)) || bytes.Contains(data, []byte(`"signer": ""`)) {
		t.Errorf("the record has no signer: %s %v", data, err)
	}
}

// signAs signs the index of the tree with a key that is not one of its marketplace's.
func signAs(t *testing.T, l *liar, key string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.CopyFS(other, os.DirFS(l.dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"keys.json", "keys.json.minisig", "keys"} {
		if err := os.RemoveAll(filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
	l.must("catalog", "sign", other, "--key", l.key(key))
	for _, name := range []string{"connectors.json", "connectors.json.minisig"} {
		data, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(l.dir, name), string(data))
	}
}

// TestBundleWithoutTheServer: the signatures that go into a bundle are those that were seen, and another machine judges them.
func TestBundleWithoutTheServer(t *testing.T) {
	l := newLiar(t).signed()
	l.must("install", "plain", "--yes")
	l.server.Close()
	file := filepath.Join(l.keys, "plain.tar")
	code, out, errs := l.on("bundle", "export", "plain", "-o", file)
	if code != exitDone || !strings.Contains(out, "signed by") || !strings.Contains(errs, "cannot be reached") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	other := &liar{t: t, home: filepath.Join(t.TempDir(), "home"), keys: l.keys, server: l.server, ca: l.ca}
	writeFile(t, filepath.Join(other.home, "marketplaces.json"), string(readFile(t, filepath.Join(l.home, "marketplaces.json"))))
	code, _, errs = other.on("install", "--bundle", file, "--yes")
	if code != exitDone || !strings.Contains(errs, "signed by") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bumpIn publishes a greater version of a connector in a tree, unsigned.
func bumpIn(t *testing.T, market, id string) {
	t.Helper()
	if err := bump(market, id); err != nil {
		t.Fatal(err)
	}
	if err := compileMarket(market); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeThatReachesFurther: a new version that wants another host is named with it, and no script agrees by --yes.
func TestUpgradeThatReachesFurther(t *testing.T) {
	l := newLiar(t).signed()
	path := filepath.Join(l.dir, "plain", "connector.json")
	text := string(readFile(t, path))
	hosts := func(list string) string {
		return strings.Replace(text, `"launch_command"`, `"permissions": {"network": {"hosts": [`+list+`]}}, "launch_command"`, 1)
	}
	for _, list := range []string{`"one.example:443"`, `"one.example:443", "thief.example:443"`} {
		writeFile(t, path, hosts(list))
		bumpIn(t, l.dir, "plain")
		text = strings.Replace(text, `"version": 1`, `"version": 2`, 1)
		l.sign()
		if !strings.Contains(list, "thief") {
			l.must("install", "plain", "--yes")
		}
	}
	for _, args := range [][]string{{"upgrade", "plain", "--yes"}, {"upgrade", "--all", "--yes"}} {
		code, _, errs := l.on(args...)
		if code != exitUsage || !strings.Contains(errs, "thief.example:443") {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
	}
	if data := readFile(t, filepath.Join(l.home, "activations", "plain.json")); bytes.Contains(data, []byte("thief")) {
		t.Errorf("it is in the record: %s", data)
	}
	l.must("upgrade", "plain", "--yes", "--allow-wider")
}
