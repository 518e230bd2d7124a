package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyWhoIsMeantIsAsked installs from one of two marketplaces by its name, while the other is away, and sees a new
// version as soon as it is published.
func TestOnlyWhoIsMeantIsAsked(t *testing.T) {
	b := newBench(t)
	market := filepath.Join(b.dir, "market")
	serve := func() *httptest.Server {
		s := httptest.NewServer(http.FileServer(http.Dir(market)))
		t.Cleanup(s.Close)
		return s
	}
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX=")
	here, away := serve(), serve()
	b.must("marketplace", "add", here.URL, "--name", "here", "--unsigned")
	b.must("marketplace", "add", away.URL, "--name", "away", "--unsigned")
	b.must("marketplace", "remove", "public")
	away.Close()
	for _, args := range [][]string{{"info", "here/plain"}, {"install", "here/plain", "--yes"}} {
		if code, _, errs := b.run(nil, args...); code != exitDone || strings.Contains(errs, "away") {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
	}
	if code, _, errs := b.run(nil, "install", "here/mail", "plain", "--yes"); code != exitUsage || !strings.Contains(errs, "cannot be reached") {
		t.Errorf("a name without a marketplace: exit %d: %s", code, errs)
	}
	if code, _, errs := b.run(nil, "info", "nowhere/plain"); code != exitNotFound || !strings.Contains(errs, `there is no marketplace "nowhere"`) {
		t.Errorf("no such marketplace: exit %d: %s", code, errs)
	}
	if err := bump(market, "plain"); err != nil {
		t.Fatal(err)
	}
	if err := compileMarket(market); err != nil {
		t.Fatal(err)
	}
	if out := b.must("outdated"); !strings.Contains(out, "2.0.0") {
		t.Errorf("a version published this moment: %s", out)
	}
	if out := b.must("upgrade", "plain", "--yes"); !strings.Contains(out, "2.0.0") {
		t.Errorf("upgrade: %s", out)
	}
	here.Close()
	for _, args := range [][]string{{"outdated"}, {"upgrade", "--all"}} {
		if code, _, errs := b.run(nil, args...); code != exitDone || !strings.Contains(errs, "nothing newer is known here") {
			t.Errorf("%q without the network: exit %d: %s", args, code, errs)
		}
	}
	b.must("rollback", "plain")
	if code, out, errs := b.run(nil, "outdated"); code != exitDone || !strings.Contains(out, "2.0.0") || !strings.Contains(errs, "using the index of") {
		t.Errorf("without the network: exit %d: %s%s", code, out, errs)
	}
	b.outdatedUnknown(t)
}

// outdatedUnknown asks for news where no answer is to be had: a script must not take that for "up to date".
func (b *bench) outdatedUnknown(t *testing.T) {
	t.Helper()
	if _, out, _ := b.run(nil, "outdated", "--json"); !strings.Contains(out, `"from_before": [`) {
		t.Errorf("an answer from an index of before does not say so: %s", out)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "home", "cache", "index")); err != nil {
		t.Fatal(err)
	}
	code, out, errs := b.run(nil, "outdated")
	if code != exitFailed || out != "" || !strings.Contains(errs, "plain: ") || !strings.Contains(errs, "1 of 1 connector could not be asked about") {
		t.Errorf("nothing is known: exit %d: %s%s", code, out, errs)
	}
	code, out, _ = b.run(nil, "outdated", "--json")
	if code != exitFailed || !strings.Contains(out, `"name": "plain"`) || strings.Contains(out, "exit_code") {
		t.Errorf("nothing is known: exit %d: %s", code, out)
	}
}

// TestExportOfWhatIsInstalled takes an id that two marketplaces have for the one that is installed, with the network and
// without; where nothing or both are, nobody chooses.
func TestExportOfWhatIsInstalled(t *testing.T) {
	b := newBench(t)
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX=")
	var servers []*httptest.Server
	for _, name := range []string{"one", "two"} {
		s := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(b.dir, "market"))))
		t.Cleanup(s.Close)
		servers = append(servers, s)
		b.must("marketplace", "add", s.URL, "--name", name, "--unsigned")
	}
	b.must("marketplace", "remove", "public")
	file := filepath.Join(b.dir, "plain.tar")
	export := func(want int, wantErr string) {
		t.Helper()
		code, out, errs := b.run(nil, "bundle", "export", "plain", "-o", file, "--json")
		if code != want || !strings.Contains(errs, wantErr) || code == exitDone && !strings.Contains(out, servers[1].URL) {
			t.Errorf("bundle export: exit %d, want %d: %s%s", code, want, out, errs)
		}
	}
	export(exitUsage, "2 marketplaces have a connector")
	b.must("install", "two/plain", "--yes")
	export(exitDone, "plain is taken from two")
	servers[0].Close()
	export(exitDone, "plain is taken from two")
	servers[1].Close()
	export(exitDone, "plain is taken from two")
	b.must("install", "one/plain", "--yes", "--as", "another")
	export(exitUsage, "plain")
}
