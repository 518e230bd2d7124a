//go:build unix

package main

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
)

// goldenProvider stands for the provider's address in an archive, in its vaults too.
const goldenProvider = "https://provider.golden"

// goldenToken is a server that tells whether it was given a token, without asking anybody.
const goldenToken = `import json, os, sys, urllib.error


def whoami():
    return "ada" if os.environ["TOKEN"].startswith("c4n4ry-access-") else "nobody"
`

// packageWorld gives a bench the registries that the packages of the test connectors come from.
func (b *bench) packageWorld() {
	b.t.Helper()
	needNode(b.t)
	server := httptest.NewServer(testRegistry(b.dir))
	b.t.Cleanup(server.Close)
	wheels := filepath.Join(b.dir, "wheels")
	if err := writeWheels(wheels); err != nil {
		b.t.Fatal(err)
	}
	b.env = append(b.env, "npm_config_registry="+server.URL+"/", "npm_config_fetch_retries=0", "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+wheels)
}

// swapInVaults replaces the provider's address in every vault.
func (b *bench) swapInVaults(from, to string) {
	b.t.Helper()
	keys := keystore.Open(keystore.Options{Dir: filepath.Join(b.home(), "keystore")})
	names, err := keys.Names()
	for _, name := range names {
		gens, gerr := keys.Generations(name)
		if err = gerr; err != nil {
			break
		}
		for _, gen := range gens {
			err = keys.Update(context.Background(), name, gen, func(hs []keystore.Handle) ([]keystore.Handle, error) {
				for i, h := range hs {
					hs[i].Value = keystore.NewSecret(strings.ReplaceAll(h.Value.Reveal(), from, to))
				}
				return hs, nil
			})
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// goldenMarket makes the marketplace of a signed-in home in b.dir/site.
func (b *bench) goldenMarket() {
	b.t.Helper()
	src := filepath.Join(b.dir, "site.src")
	for _, from := range []string{"testdata/signin/market/token", "testdata/packages/market/pydep", "testdata/packages/market/nodedep"} {
		if err := os.CopyFS(filepath.Join(src, filepath.Base(from)), os.DirFS(from)); err != nil {
			b.t.Fatal(err)
		}
	}
	writeFile(b.t, filepath.Join(src, "index.json"), `["token", "pydep", "nodedep"]`)
	server := string(readFile(b.t, "testdata/signin/market/token/server.py"))
	writeFile(b.t, filepath.Join(src, "token", "server.py"), goldenToken+server[strings.Index(server, "\n\nTOOLS"):])
	if err := copyMarket(src, filepath.Join(b.dir, "site")); err != nil {
		b.t.Fatal(err)
	}
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+filepath.Join(b.dir, "site"), "BROWSER=browser", "CLIENT_SECRET=c4n4ry-client")
}

// TestWriteGoldenSignIn writes an archive for TestSignedInHomes, when it is asked to (-golden testdata/homes/signin/N.tar.gz).
func TestWriteGoldenSignIn(t *testing.T) {
	if *goldenHome == "" || filepath.Base(filepath.Dir(*goldenHome)) != "signin" {
		return // nothing is asked for
	}
	b, p := newBench(t), newTestProvider()
	t.Cleanup(p.Close)
	b.packageWorld()
	b.goldenMarket()
	p.steer(t, "rotate=1")
	p.steer(t, "life=60")
	b.must("auth", "provider", "add", "testid", "--issuer", p.URL, "--client-id", "skald", "--secret-env", "CLIENT_SECRET", "--rotates")
	b.must(installToken...)
	b.must("install", "pydep", "--yes")
	b.must("install", "nodedep", "--yes")
	bumpIn(t, filepath.Join(b.dir, "site"), "token")
	b.must("upgrade", "token", "--yes")  // the version that is kept has a vault of its own
	b.kill("write-record", authToken...) // a sign-in that is owed
	if owed, _ := filepath.Glob(filepath.Join(b.home(), "keystore", "owed__*.age")); len(owed) == 0 {
		t.Fatal("nothing is owed")
	}
	b.swapInVaults(p.URL, goldenProvider)
	b.pack(*goldenHome, strings.NewReplacer(p.URL, goldenProvider, b.dir, "@DIR@", b.self, "@SELF@"), "home", "site")
}

// TestSignedInHomes opens a home of every earlier format with a sign-in, in force, kept and owed, and with trees of packages. What was
// stored then is renewed, used, upgraded, and revoked now.
func TestSignedInHomes(t *testing.T) {
	archives, err := filepath.Glob("testdata/homes/signin/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal("there are no homes", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) { openSignedIn(t, archive) })
	}
}

func openSignedIn(t *testing.T, archive string) {
	b, p := newBench(t), newTestProvider()
	t.Cleanup(p.Close)
	b.packageWorld()
	site := filepath.Join(b.dir, "site")
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+site, "BROWSER=browser")
	p.steer(t, "rotate=1")
	unpack(t, archive, b.dir, goldenProvider, p.URL, "@DIR@", b.dir, "@SELF@", b.self)

	// As it was written: what is here is known.
	if out := b.must("list"); strings.Count(out, "ready") != 3 || strings.Contains(out, "broken") {
		t.Errorf("list:\n%s", out)
	}
	if out := b.must("auth", "status"); !strings.Contains(out, "testid") || !strings.Contains(out, "renewed by itself") {
		t.Errorf("the sign-in is not found: %s", out)
	}
	for _, row := range [][]string{{"pydep", "low_wheel_1_5", "python3", "Python 3.11."}, {"nodedep", "dep_one", "node", "v20."}} {
		if version, err := exec.Command("/usr/bin/"+row[2], "--version").Output(); err != nil || !strings.HasPrefix(string(version), row[3]) {
			t.Logf("the packages of %s were made for %s and are built again: %s %v", row[0], row[3], version, err)
			b.must("verify", row[0])
		}
		b.must("status", row[0])
		if out := b.must("tools", row[0]); !strings.Contains(out, row[1]) {
			t.Errorf("%s does not run with its packages: %s", row[0], out)
		}
	}

	// The provider of that time answers at another address now; it knows the token.
	b.swapInVaults(goldenProvider, p.URL)
	old := b.signIn()
	p.restore(saved{refresh: map[string]string{old: "mail.read"}, access: p.access, used: p.used})
	if out := b.must("call", "token", "whoami"); !strings.Contains(out, "ada") {
		t.Errorf("call: %s", out)
	}
	if now := b.signIn(); now == old || !p.knows(now) {
		t.Errorf("the sign-in was not renewed: %q", now)
	}
	for _, id := range []string{"token", "pydep", "nodedep"} {
		bumpIn(t, site, id)
	}
	b.must("upgrade", "--all", "--yes")
	if owed, _ := filepath.Glob(filepath.Join(b.home(), "keystore", "owed__*.age")); len(owed) > 0 {
		t.Errorf("what was owed is owed still: %v", owed)
	}
	b.must("rollback", "token")
	b.must("verify", "token")
	if last := b.signIn(); !p.knows(last) {
		t.Errorf("after the rollback the sign-in is over")
	}
	b.must("logout", "token")
	if others := p.others(""); len(others) != 0 {
		t.Errorf("the provider still knows %q", others)
	}
	rec, err := record.Open(b.home()).Read("pydep")
	if err != nil || len(rec.Deps) != 1 || rec.Deps[0].Packages[0].Name != "low-wheel" {
		t.Errorf("the packages are not recorded: %v, %v", rec, err)
	}
	b.must("uninstall", "--all", "--purge", "--yes")
	if left, err := os.ReadDir(b.home()); err == nil {
		t.Errorf("left: %v", left)
	}
}
