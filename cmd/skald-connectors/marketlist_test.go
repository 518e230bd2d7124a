package main

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// TestMarketplacesSideBySide: what another process lists while this one asks a server stays, and what it takes off stays off.
func TestMarketplacesSideBySide(t *testing.T) {
	l := newLiar(t)
	folder := filepath.Join(t.TempDir(), "mirror")
	if err := copyMarket("testdata/market", folder); err != nil {
		t.Fatal(err)
	}
	l.must("marketplace", "add", folder, "--name", "first")
	var once sync.Once
	truth := l.file("connectors.json")
	l.lie("/connectors.json", func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() {
			for _, args := range [][]string{{"marketplace", "remove", "first"}, {"marketplace", "add", folder, "--name", "second"}} {
				if code, _, errs := l.on(args...); code != exitDone {
					t.Errorf("%q: exit %d: %s", args, code, errs)
				}
			}
		})
		_, _ = w.Write(truth)
	})
	l.must("marketplace", "add", l.server.URL, "--unsigned", "--name", "liar")
	if out := l.must("marketplace", "list"); !strings.Contains(out, "\nsecond ") || !strings.Contains(out, "\nliar ") || strings.Contains(out, "\nfirst ") {
		t.Errorf("the list is\n%s", out)
	}
}

// TestKeysPinnedMeanwhile: another process pins keys while this one asks the server without any, and they stay.
func TestKeysPinnedMeanwhile(t *testing.T) {
	l := newLiar(t)
	l.must("catalog", "keygen", l.key("a"), "--no-password")
	var once sync.Once
	truth := l.file("connectors.json")
	l.lie("/connectors.json", func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() {
			pinned := &places{Format: marketsFormat, Listed: []marketEntry{{Name: "liar", Location: l.server.URL, Keys: []string{string(readFile(t, l.key("a")+".pub"))}, Needed: 1}}}
			if err := pinned.write(l.home); err != nil {
				t.Error(err)
			}
		})
		_, _ = w.Write(truth)
	})
	list := filepath.Join(l.home, "marketplaces.json")
	if code, _, errs := l.on("marketplace", "add", l.server.URL, "--unsigned", "--name", "liar"); code != exitFailed || !strings.Contains(errs, "changed meanwhile") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if now := string(readFile(t, list)); !strings.Contains(now, `"keys"`) {
		t.Errorf("the list is\n%s", now)
	}
}

// TestOneOfTwoSpellings: a list of an earlier version can have a marketplace twice, spelled in two ways. Adding it again leaves one.
func TestOneOfTwoSpellings(t *testing.T) {
	at := marketEntry{Name: "b", Location: "/m", Keys: []string{"k"}}
	p := &places{Listed: []marketEntry{{Name: "a", Location: "/m"}, at, {Name: "c", Location: "/n"}}}
	p.put(at, false)
	p.Format = marketsFormat
	if err := p.check(); err != nil || len(p.Listed) != 2 || p.Listed[0].Name != "b" || p.Listed[1].Name != "c" {
		t.Errorf("%v: the list is %+v", err, p.Listed)
	}
}

// TestPasswordInTheAddress: a marketplace that is named for one command is asked with the password in its address, whether it is
// listed or not, and the password is neither shown nor kept.
func TestPasswordInTheAddress(t *testing.T) {
	l := newLiar(t).signed()
	truth := l.file("connectors.json")
	l.lie("/connectors.json", func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "c4n4ry" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(truth)
	})
	address := strings.Replace(l.server.URL, "https://", "https://me:c4n4ry@", 1)
	for _, state := range []string{"listed", "not listed"} {
		for _, args := range [][]string{{"search", "plain"}, {"info", "plain"}, {"install", "plain", "--yes"}, {"outdated"}} {
			if code, out, errs := l.on(append(args, "--index", address)...); code != exitDone || strings.Contains(out+errs, "c4n4ry") {
				t.Errorf("%s: %q: exit %d: %s%s", state, args, code, out, errs)
			}
		}
		err := filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(string(readFile(t, path)), "c4n4ry") {
				t.Errorf("%s: the password is in %s", state, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		l.home = filepath.Join(t.TempDir(), "home")
	}
}

// TestPinsStay: a marketplace whose keys are pinned, or that is known as a signed one, is not made an unsigned one by adding it again.
func TestPinsStay(t *testing.T) {
	l := newLiar(t).signed()
	pinned := string(readFile(t, filepath.Join(l.home, "marketplaces.json")))
	l.refused(exitUsage, "so it is a signed marketplace", "marketplace", "add", l.server.URL, "--unsigned")
	l.must("marketplace", "add", l.server.URL)
	l.must("marketplace", "add", strings.Replace(l.server.URL, "https://", "HTTPS://", 1)+"/x/..")
	if now := string(readFile(t, filepath.Join(l.home, "marketplaces.json"))); now != pinned {
		t.Errorf("the list was\n%sand is\n%s", pinned, now)
	}
	l.must("marketplace", "add", l.server.URL, "--name", "other")
	if now := string(readFile(t, filepath.Join(l.home, "marketplaces.json"))); now != strings.Replace(pinned, `"liar"`, `"other"`, 1) {
		t.Errorf("under another name it is\n%s", now)
	}
	l.must("marketplace", "remove", "other")
	l.must("marketplace", "add", l.server.URL) // nobody has to agree to what is signed
	unsigned := []byte(strings.Replace(string(l.file("connectors.json")), "A test connector", "Another connector", 1))
	l.lie("/connectors.json", saying(unsigned))
	l.refused(exitIntegrity, "is not trusted", "install", "plain", "--yes")
}

// TestKeysHoldForEverySpelling: keys are found by the address, and another spelling of it is the same address: those that the person
// pinned, those of a list that an earlier version wrote, those inside the program.
func TestKeysHoldForEverySpelling(t *testing.T) {
	l := newLiar(t).signed()
	address := strings.TrimPrefix(l.server.URL, "https://")
	port := strings.TrimPrefix(address, "127.0.0.1:")
	spellings := []string{"HTTPS://" + address, l.server.URL + "/.", l.server.URL + "/%2e/", l.server.URL + "//", l.server.URL + "/x/..",
		"https://127.0.0.1:0" + port, "https://[::ffff:127.0.0.1]:" + port}
	unsigned := strings.Replace(string(l.file("connectors.json")), "A test connector", "Another connector", 1)
	l.lie("/connectors.json", saying([]byte(unsigned)))
	l.lie("/connectors.json.minisig", missing)
	for _, at := range spellings {
		l.refused(exitIntegrity, "its index came without a signature", "--index", at, "install", "plain", "--yes")
	}
	list := filepath.Join(l.home, "marketplaces.json")
	writeFile(t, list, strings.Replace(string(readFile(t, list)), l.server.URL, l.server.URL+"/./", 1))
	l.refused(exitIntegrity, "its index came without a signature", "--index", l.server.URL, "install", "plain", "--yes")

	public := newLiar(t)
	public.public = true
	for _, name := range []string{"root", "a"} {
		public.must("catalog", "keygen", public.key(name), "--no-password")
	}
	public.must("catalog", "keys", "add", "--dir", public.dir, "--root", public.key("root")+".pub", "--index", public.key("a")+".pub", "--key", public.key("root"))
	public.builtin = fstest.MapFS{"keys.json": {Data: public.file("keys.json")}}
	for _, at := range []string{public.server.URL + "/", strings.Replace(public.server.URL, "https", "Https", 1), public.server.URL + "/y/../"} {
		public.refused(exitIntegrity, "its index came without a signature", "--index", at, "install", "plain", "--yes")
	}
}

// TestFolderThatHasRunOut: the index of a folder is read each time; one that was believed once and has run out since is shown with a
// note, as one from the cache is, and nothing is installed from it.
func TestFolderThatHasRunOut(t *testing.T) {
	l := newLiar(t)
	l.must("catalog", "keygen", l.key("a"), "--no-password")
	l.sign()
	l.must("marketplace", "add", l.dir, "--key", l.key("a")+".pub", "--name", "mirror")
	l.must("--index", l.dir, "install", "plain", "--yes")
	l.ahead = 31 * 24 * time.Hour
	code, out, errs := l.on("--index", l.dir, "search", "plain")
	if code != exitDone || !strings.Contains(out, "plain") || !strings.Contains(errs, "was good until") {
		t.Errorf("search: exit %d: %s%s", code, out, errs)
	}
	l.refused(exitIntegrity, "is not trusted (freeze)", "--index", l.dir, "install", "plain", "--as", "second", "--yes")
	l.refused(exitIntegrity, "is not trusted (freeze)", "--index", l.dir, "upgrade", "--all", "--yes")
	l.home = filepath.Join(t.TempDir(), "home") // a machine that has never seen it does not believe it any more
	if code, _, errs := l.on("marketplace", "add", l.dir, "--key", l.key("a")+".pub"); code != exitIntegrity || !strings.Contains(errs, "(freeze)") {
		t.Errorf("add: exit %d: %s", code, errs)
	}
}
