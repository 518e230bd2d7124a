package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// readOnly makes the disk of the home read-only, or writable again.
func (b *bench) readOnly(fill string, flag uintptr) {
	b.t.Helper()
	if err := syscall.Mount("", filepath.Dir(fill), "", syscall.MS_REMOUNT|flag, "size=2m"); err != nil {
		b.t.Skipf("no file system can be made read-only here: %v", err)
	}
}

// TestReadOnlyHome finds, lists and runs connectors in a home that cannot be written, with an index that is here, with
// one that has changed since and without any; what has to write is refused and changes nothing.
func TestReadOnlyHome(t *testing.T) {
	b := newBench(t)
	market := filepath.Join(b.dir, "market")
	server := httptest.NewServer(http.FileServer(http.Dir(market)))
	t.Cleanup(server.Close)
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+server.URL)
	fill := b.onSmallDisk()
	b.must(append(slices.Clone(installMail), "MAIL_PASSWORD="+filepath.Join(b.dir, "pw"))...)
	b.must("install", "plain", "--yes")
	reads := func(state string) {
		t.Helper()
		for want, command := range map[string]string{
			"plain ": "search", "Installed as plain": "info plain", "MAIL_PASSWORD": "secrets list mail", "ready": "list",
			"authorized": "status mail", "hi": `call mail echo {"text":"hi"}`, "activations": "export",
		} {
			if code, out, errs := b.run(nil, strings.Split(command, " ")...); code != exitDone || !strings.Contains(out, want) {
				t.Errorf("%s: %s: exit %d: %s%s", state, command, code, out, errs)
			}
		}
		if code, _, errs := b.run(nil, "run", "plain"); code != exitDone || !strings.Contains(errs, "note: no log of this session is kept") {
			t.Errorf("%s: run: exit %d: %s", state, code, errs)
		}
		before := b.state()
		for _, args := range [][]string{{"verify", "mail"}, {"uninstall", "plain"}, {"install", "plain", "--as", "two", "--yes"}, {"pin", "plain"}, {"secrets", "remove", "mail", "MAIL_PASSWORD"}} {
			if code, _, errs := b.run(nil, args...); code != exitFailed || !strings.Contains(errs, "read-only file system") || !strings.Contains(errs, "hint: ") {
				t.Errorf("%s: %q: exit %d: %s", state, args, code, errs)
			}
		}
		if now := b.state(); now != before {
			t.Errorf("%s: changed from %s to %s", state, before, now)
		}
	}
	quiet := func(state, want string) {
		t.Helper()
		code, out, errs := b.run(nil, "outdated")
		if code != exitDone || !strings.Contains(out+errs, want) || strings.Contains(errs, "read-only") {
			t.Errorf("%s: outdated: exit %d: %s%s", state, code, out, errs)
		}
	}
	b.readOnly(fill, syscall.MS_RDONLY)
	reads("as it was")
	quiet("as it was", "everything is up to date")
	b.bump("plain")
	quiet("changed", "2.0.0")
	if code, _, errs := b.run(nil, "upgrade", "plain", "--yes"); code != exitFailed || !strings.Contains(errs, "read-only file system") {
		t.Errorf("upgrade: exit %d: %s", code, errs)
	}
	b.readOnly(fill, 0)
	for _, gone := range []string{"cache", "sandbox", "checked", "locks"} {
		if err := os.RemoveAll(filepath.Join(b.home(), gone)); err != nil {
			t.Fatal(err)
		}
	}
	b.readOnly(fill, syscall.MS_RDONLY)
	reads("without a cache")
	quiet("without a cache", "2.0.0")
	b.readOnly(fill, 0)
	b.must("upgrade", "plain", "--yes")
}
