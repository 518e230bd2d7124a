package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// emptyCursor is a client's file before an entry of ours comes.
const emptyCursor = "{\n  \"mcpServers\": {}\n}\n"

// furnished is a home with every kind of file that this program keeps, and the marketplace that it is from.
func furnished(t *testing.T) (*bench, *liar) {
	t.Helper()
	l := newLiar(t)
	b := newBench(t)
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+l.server.URL, "SSL_CERT_FILE="+l.ca, "SSL_CERT_DIR=", "SKALD_CONNECTORS_KEYSTORE=")
	home := filepath.Join(b.dir, "home")
	writeFile(t, filepath.Join(home, "settings.json"), `{"format": 1, "keystore": "keyfile"}`)
	b.must("catalog", "keygen", l.key("root"), "--no-password")
	b.must("catalog", "keygen", l.key("a"), "--no-password")
	b.must("catalog", "keys", "add", "--dir", l.dir, "--root", l.key("root")+".pub", "--index", l.key("a")+".pub", "--key", l.key("root"))
	b.must("catalog", "sign", l.dir, "--key", l.key("a"))
	b.must("marketplace", "add", l.server.URL, "--key", l.key("root")+".pub", "--name", "liar")
	b.must("auth", "provider", "add", "google", "--client-id", "us", "--secret-file", filepath.Join(b.dir, "pw"))
	b.must(slices.Concat(installMail, []string{"MAIL_PASSWORD=" + filepath.Join(b.dir, "pw")})...)
	b.must("install", "plain", "--yes")
	b.must("install", "plain", "--as", "gone", "--yes")
	b.must("uninstall", "gone", "--keep-data")
	writeFile(t, filepath.Join(b.dir, ".cursor", "mcp.json"), emptyCursor)
	b.must("mount", "mail", "--client", "cursor")
	bumpIn(t, l.dir, "mail")
	b.must("catalog", "sign", l.dir, "--key", l.key("a"))
	b.must("upgrade", "mail", "--yes")
	b.must("call", "mail", "echo", `{"text":"x"}`)
	b.must("call", "plain", "echo", `{"text":"x"}`)
	writeFile(t, filepath.Join(home, "calls", "mail.jsonl.held"), `{"format":1,"version":"x","held":{}}`)
	return b, l
}

var formatNumber = regexp.MustCompile(`"(format|schema)":\s*[0-9]+`)

// TestStateOfANewerProgram: a file that a newer program wrote is refused where it decides something, and no command writes it anew or
// removes it, whatever else it does. Each kind of file is tried; what may be deleted at any moment (checked, sandbox, the search file
// beside an index) is no state. Vaults have a test of their own in keystore, trees of packages in install.
func TestStateOfANewerProgram(t *testing.T) {
	from, _ := furnished(t)
	for _, row := range []struct {
		file  string
		quiet bool // nothing depends on it, so nothing is refused
	}{
		{file: "activations/mail.json"}, {file: "tools/mail.json"}, {file: "receipts/mail.json"}, {file: "keystore/keystore.json"}, {file: "providers/google.json"},
		{file: "cache/index/*.json"}, {file: "cache/index/*.keys", quiet: true}, {file: "trust/*.json"}, {file: "marketplaces.json"}, {file: "settings.json"},
		{file: "mounts/*.json", quiet: true}, {file: "calls/mail.jsonl.held", quiet: true},
	} {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			b := from.clone(t)
			found, err := filepath.Glob(filepath.Join(b.dir, "home", filepath.FromSlash(row.file)))
			if err != nil || len(found) != 1 {
				t.Fatalf("%d files %s: %v", len(found), row.file, err)
			}
			was := readFile(t, found[0])
			newer := formatNumber.ReplaceAll(was, []byte(`"$1": 99, "later": true`))
			if bytes.Equal(was, newer) {
				t.Fatalf("it has no format: %s", was)
			}
			if err := os.WriteFile(found[0], newer, 0o600); err != nil {
				t.Fatal(err)
			}
			said, backup := "", b.backups()
			for _, args := range [][]string{
				{"search", "plain"}, {"verify", "mail"}, {"tools", "mail", "--accept"},
				{"configure", "mail", "--set", "MAIL_HOST=changed"}, {"call", "mail", "echo", "{}"}, {"secrets", "put", "mail", "MAIL_PASSWORD", "--file", filepath.Join(b.dir, "pw")},
				{"auth", "provider", "list"}, {"auth", "provider", "add", "google", "--client-id", "them", "--secret-file", filepath.Join(b.dir, "pw")},
				{"mount", "plain", "--client", "cursor"}, {"unmount", "plain", "--client", "cursor"}, {"marketplace", "list"}, {"marketplace", "add", filepath.Join(b.dir, "market"), "--name", "more"},
				{"install", "plain", "--as", "more", "--yes"}, {"upgrade", "--all", "--yes"}, {"rollback", "mail"}, {"uninstall", "more"}, {"doctor", "--fix"},
			} {
				code, out, errs := b.run(nil, args...)
				if code < 0 || strings.Contains(errs, "panic") {
					t.Errorf("%q: exit %d: %s", args, code, errs)
				}
				if code != exitDone && strings.Contains(out+errs, "newer version") {
					said += strings.Join(args, " ") + "\n"
				}
				if now, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(now, newer) {
					t.Fatalf("%q changed it: %v\n%s\nto\n%s", args, err, newer, now)
				}
			}
			if row.file == "mounts/*.json" && b.backups() != backup {
				t.Error("the bytes from before are not what they were")
			}
			if (said == "") != row.quiet {
				t.Errorf("refused by\n%s", said)
			}
		})
	}
}

// backups is what the notes of clients keep of their files.
func (b *bench) backups() string {
	b.t.Helper()
	var all strings.Builder
	found, err := filepath.Glob(filepath.Join(b.dir, "home", "mounts", "*.backup"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		all.Write(readFile(b.t, f))
	}
	return all.String()
}
