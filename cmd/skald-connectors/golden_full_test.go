package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var goldenHome = flag.String("golden", "", "write the furnished home of this program to `FILE`, such as testdata/homes/full/2.tar.gz")

// interpreter is where a record says that Python is, which differs too.
var interpreter = regexp.MustCompile(`"path": "/[^"]*/python3[^"/]*"`)

// goldenKeys is where the keys of the marketplace of a furnished home are, in its archive.
const goldenKeys = "keys"

// words are what an archive has in place of what differs from one machine to the next: the folder, the address of the marketplace,
// this program, and the names that are made of them.
func (b *bench) words(l *liar) []string {
	client := filepath.Join(b.dir, ".cursor", "mcp.json")
	address, place := sha256.Sum256([]byte(l.server.URL)), sha256.Sum256([]byte(client))
	return []string{
		l.server.URL, "@SITE@", fmt.Sprintf("127.0.0.1-%x", address[:4]), "@ORIGIN@", fmt.Sprintf("%x", place)[:16], "@CLIENT@",
		b.dir, "@DIR@", b.self, "@SELF@",
	}
}

// sumOfClient is what the notes of a client say of its file, which differs with the folder.
func (b *bench) sumOfClient() string {
	data, err := os.ReadFile(filepath.Join(b.dir, ".cursor", "mcp.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// TestWriteGoldenHome writes an archive for TestFurnishedHomes, when it is asked to.
func TestWriteGoldenHome(t *testing.T) {
	if *goldenHome == "" || filepath.Base(filepath.Dir(*goldenHome)) == "signin" {
		return // nothing is asked for
	}
	b, l := furnished(t)
	for from, to := range map[string]string{l.dir: "site", l.keys: goldenKeys} {
		if err := os.CopyFS(filepath.Join(b.dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	b.pack(*goldenHome, strings.NewReplacer(append(b.words(l), b.sumOfClient(), "@SUM@")...), "home", "site", goldenKeys, ".cursor")
}

// pack writes those folders into an archive, with words of names and texts replaced.
func (b *bench) pack(archive string, swap *strings.Replacer, tops ...string) {
	t := b.t
	t.Helper()
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	err = filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(b.dir, path)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if err != nil || rel == "." || !slices.Contains(tops, top) {
			return err
		}
		if in := filepath.ToSlash(rel); in == "home/locks" || in == "home/sandbox" || strings.HasSuffix(in, ".lock") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		var body []byte
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			h.Linkname, err = os.Readlink(path)
			h.Linkname = swap.Replace(h.Linkname)
		case d.Type().IsRegular():
			body, err = os.ReadFile(path)
			if !strings.HasPrefix(filepath.ToSlash(rel), "home/deps/") { // a record has the digest of that
				body = interpreter.ReplaceAll([]byte(swap.Replace(string(body))), []byte(`"path": "/usr/bin/python3"`))
			}
			if top == goldenKeys {
				h.Mode = 0o600
			}
		}
		h.Name, h.Size, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname = swap.Replace(filepath.ToSlash(rel)), int64(len(body)), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 0, 0, "", ""
		if err == nil {
			err = w.WriteHeader(h)
		}
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	})
	for _, e := range []error{err, w.Close(), z.Close(), f.Close()} {
		if e != nil {
			t.Fatal(e)
		}
	}
}

// TestFurnishedHomes opens a home of every earlier format with all that this program keeps in one: a signed marketplace whose keys
// changed since, its cached index, a provider, settings, an entry in a client, data that was kept, a version for a rollback, notes and
// journals. Whoever changes what is on disk adds one that the program of before wrote (TestWriteGoldenHome).
func TestFurnishedHomes(t *testing.T) {
	archives, err := filepath.Glob("testdata/homes/full/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal("there are no homes", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) { openFurnished(t, archive) })
	}
}

func openFurnished(t *testing.T, archive string) {
	l, b := newLiar(t), newBench(t)
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+l.server.URL, "SSL_CERT_FILE="+l.ca, "SSL_CERT_DIR=", "SKALD_CONNECTORS_KEYSTORE=")
	words := b.words(l)
	for i := 0; i < len(words); i += 2 {
		words[i], words[i+1] = words[i+1], words[i]
	}
	unpack(t, archive, b.dir, words...)
	notes := filepath.Join(b.dir, "home", "mounts", words[5]+".json")
	writeFile(t, notes, strings.ReplaceAll(string(readFile(t, notes)), "@SUM@", b.sumOfClient()))
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(l.dir, os.DirFS(filepath.Join(b.dir, "site"))); err != nil {
		t.Fatal(err)
	}
	key := func(name string) string { return filepath.Join(b.dir, goldenKeys, name+".key") }

	// What is here works before anything is asked of the network.
	if out := b.must("list"); strings.Count(out, "ready") != 2 || strings.Contains(out, "broken") || !strings.Contains(out, "2.0.0") {
		t.Errorf("list:\n%s", out)
	}
	b.must("verify", "mail")
	b.must("call", "plain", "echo", `{"text":"on"}`)
	if out := b.must("auth", "provider", "list"); !strings.Contains(out, "us") {
		t.Errorf("the provider is lost: %s", out)
	}
	if out := b.must("marketplace", "list"); !strings.Contains(out, "liar") {
		t.Errorf("the marketplace is lost: %s", out)
	}

	// An older index is still one, and so is one without a signature.
	l.lie("/connectors.json", saying(bytes.Replace(l.file("connectors.json"), []byte(`"seq"`), []byte(`"x"`), 1)))
	if code, _, errs := b.run(nil, "install", "plain", "--as", "more", "--yes"); code != exitIntegrity {
		t.Errorf("what was known of the keys is lost: exit %d: %s", code, errs)
	}
	l.lie("/connectors.json", nil)

	// The publisher goes on: other keys, a later version.
	b.must("catalog", "keygen", key("b"), "--no-password")
	b.must("catalog", "keys", "add", "--dir", l.dir, "--index", key("b")+".pub", "--key", key("root"))
	bumpIn(t, l.dir, "mail")
	b.must("catalog", "sign", l.dir, "--key", key("b"))
	b.must("upgrade", "--all", "--yes")
	if out := b.must("info", "mail"); !strings.Contains(out, "signed by") {
		t.Errorf("it is not signed any more: %s", out)
	}
	b.must("rollback", "mail")
	if out := b.must("verify", "mail"); !strings.Contains(out, "h:993") {
		t.Errorf("the settings are lost: %s", out)
	}

	// The client's file comes back byte for byte, and data that was kept is found.
	b.must("unmount", "mail", "--client", "cursor")
	if now := string(readFile(t, filepath.Join(b.dir, ".cursor", "mcp.json"))); now != emptyCursor {
		t.Errorf("the client's file is %q", now)
	}
	if _, _, errs := b.run(nil, "install", "plain", "--as", "gone", "--yes"); !strings.Contains(errs, "kept") {
		t.Errorf("data that was kept is not found: %s", errs)
	}
	b.must("uninstall", "--all", "--purge", "--yes")
	if left, err := os.ReadDir(filepath.Join(b.dir, "home")); err == nil {
		t.Errorf("left: %v", left)
	}
}
