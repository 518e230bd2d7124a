package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// served is the index of the tree with the entry of plain changed; change may also change the whole document.
func (l *liar) served(change func(doc, entry map[string]any)) []byte {
	l.t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(l.file("connectors.json"), &doc); err != nil {
		l.t.Fatal(err)
	}
	for _, e := range doc["connectors"].([]any) {
		if e := e.(map[string]any); e["id"] == "plain" {
			change(doc, e)
		}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

// pin is the pin of a file of an entry.
func pin(entry map[string]any, path string) map[string]any {
	for _, f := range entry["files"].([]any) {
		if f := f.(map[string]any); f["path"] == path {
			return f
		}
	}
	panic("no pin of " + path)
}

// addPin adds a file to an entry and to the server.
func (l *liar) addPin(entry map[string]any, path any) {
	body := []byte("x")
	entry["files"] = append(entry["files"].([]any), map[string]any{"path": path, "size": len(body), "sha256": fmt.Sprintf("%x", sha256.Sum256(body))})
	if text, ok := path.(string); ok {
		l.lie("/plain/"+text, saying(body))
	}
}

// badPaths are names that would leave the folder of a connector, hide another file, or mean something to a program.
var badPaths = []string{"../../.bashrc", "/etc/x", "a/../../b", "a\x00b", `..\x`, "C:x", "a//b", "a/./b", "a/", "NUL.js", "aux", "con.txt/x", ".npmrc", "sub/.npmrc", "node_modules/x", "a ", "a.",
	"cafe\u0301.js", "SERVER.PY", "Server.py", "server.py", "server.py/x", "", ".", "..", "a\nb", "a\x1b[2J", ".git/config", "auth/x", "state/x", "pip/__main__.py", "sitecustomize.py",
	".skald-install.lock", ".pydeps/x", strings.Repeat("a/", 9) + "b", strings.Repeat("x", 256)}

// TestHostileIndexes: whatever an index says, what is wrong is exit 6, and nothing of it is on the machine. Each row is tried in an
// index that nobody signed, and signed by the marketplace's own key: a signature makes nothing right.
func TestHostileIndexes(t *testing.T) {
	type row struct {
		name string
		lie  func(l *liar) []byte // the index
	}
	entry := func(change func(l *liar, e map[string]any)) func(*liar) []byte {
		return func(l *liar) []byte { return l.served(func(_, e map[string]any) { change(l, e) }) }
	}
	text := func(change func(string) string) func(*liar) []byte {
		return func(l *liar) []byte { return []byte(change(string(l.served(func(_, _ map[string]any) {})))) }
	}
	rows := []row{
		{"its list twice", text(func(s string) string { return `{"connectors": [], ` + s[1:] })},
		{"its list in two spellings", text(func(s string) string { return `{"Connectors": [], ` + s[1:] })},
		{"a member of the entry twice", text(func(s string) string { return strings.Replace(s, `"id":"plain"`, `"id":"plain","id":"plain"`, 1) })},
		{"a member of the entry in two spellings", text(func(s string) string { return strings.Replace(s, `"id":"plain"`, `"id":"plain","ID":"mail"`, 1) })},
		{"a member of a pin twice", text(func(s string) string {
			return strings.Replace(s, `"path":"server.py"`, `"path":"server.py","path":"x.py"`, -1)
		})},
		{"the same id twice", func(l *liar) []byte {
			return l.served(func(doc, e map[string]any) { doc["connectors"] = append(doc["connectors"].([]any), e) })
		}},
		{"the same id in another case", func(l *liar) []byte {
			return l.served(func(doc, e map[string]any) {
				doc["connectors"] = append(doc["connectors"].([]any), map[string]any{"id": "Plain", "files": e["files"]})
			})
		}},
		{"a folder outside", entry(func(_ *liar, e map[string]any) { e["folder"] = "../../plain" })},
		{"no files", entry(func(_ *liar, e map[string]any) { delete(e, "files") })},
		{"an empty list of files", entry(func(_ *liar, e map[string]any) { e["files"] = []any{} })},
		{"no connector.json", entry(func(_ *liar, e map[string]any) { e["files"] = []any{pin(e, "server.py")} })},
		{"files in the manifest only", func(l *liar) []byte {
			var m map[string]any
			if err := json.Unmarshal(l.file("plain/connector.json"), &m); err != nil {
				l.t.Fatal(err)
			}
			return l.served(func(_, e map[string]any) {
				m["files"] = e["files"]
				body, _ := json.Marshal(m)
				l.lie("/plain/connector.json", saying(body))
				delete(e, "files")
			})
		}},
		{"the same path with two digests", entry(func(_ *liar, e map[string]any) {
			e["files"] = append(e["files"].([]any), map[string]any{"path": "server.py", "sha256": strings.Repeat("a", 64), "size": 1})
		})},
		{"a path that is a file and a folder", entry(func(l *liar, e map[string]any) { l.addPin(e, "lib"); l.addPin(e, "lib/a.py") })},
		{"501 files", entry(func(l *liar, e map[string]any) {
			for i := range 501 {
				l.addPin(e, fmt.Sprint("f", i))
			}
		})},
	}
	for _, path := range badPaths {
		rows = append(rows, row{fmt.Sprintf("path %.40q", path), entry(func(l *liar, e map[string]any) { l.addPin(e, path) })})
	}
	for name, digest := range map[string]any{"none": nil, "empty": "", "63 digits": strings.Repeat("a", 63), "65 digits": strings.Repeat("a", 65), "SHA-1": strings.Repeat("a", 40), "no hex": strings.Repeat("g", 64), "a number": 7, "another": strings.Repeat("a", 64)} {
		rows = append(rows, row{"digest " + name, entry(func(_ *liar, e map[string]any) { pin(e, "server.py")["sha256"] = digest })})
	}
	for name, size := range map[string]any{"-1": -1, "0": 0, "as text": "x", "2^63": json.RawMessage("9223372036854775808"), "a fraction": 1.5, "over a file's limit": 8<<20 + 1} {
		rows = append(rows, row{"size " + name, entry(func(_ *liar, e map[string]any) { pin(e, "server.py")["size"] = size })})
	}
	for _, by := range []float64{1, -1} {
		rows = append(rows, row{fmt.Sprintf("size %+.0f", by), entry(func(_ *liar, e map[string]any) {
			p := pin(e, "server.py")
			p["size"] = p["size"].(float64) + by
		})})
	}
	for member, value := range map[string]any{"version": 2, "type": "mcp_remote", "scope": "global", "id": "plane"} {
		rows = append(rows, row{"its manifest has another " + member, entry(func(_ *liar, e map[string]any) {
			e[member] = value
			if member == "id" {
				e["folder"] = "plain"
			}
		})})
	}
	for _, signed := range []bool{false, true} {
		l := newLiar(t)
		if signed {
			l.signed()
		}
		for i, r := range rows {
			t.Run(fmt.Sprintf("%s, signed %v", r.name, signed), func(t *testing.T) {
				l.t = t
				id := "plain"
				if r.name == "its manifest has another id" {
					id = "plane"
				}
				index := r.lie(l)
				if signed {
					index = l.pressed(index, i)
				}
				l.lie("/connectors.json", saying(index))
				code, _, errs := l.on("install", id, "--yes")
				if code != exitIntegrity || strings.Contains(errs, "(signature)") || strings.Contains(errs, "(rollback)") {
					t.Errorf("exit %d: %s", code, errs)
				}
				if strings.ContainsFunc(errs, func(r rune) bool { return r < 0x20 && r != '\n' || r == 0x7f }) {
					t.Errorf("a control character: %q", errs)
				}
				l.nothingInstalled()
				if code == exitDone {
					l.on("uninstall", id, "--yes")
				}
			})
		}
	}
}

// nothingInstalled looks for what an install makes.
func (l *liar) nothingInstalled() {
	l.t.Helper()
	for _, dir := range []string{"activations", "connectors", "work", "state", "keystore", "tools", "receipts", "deps"} {
		_ = filepath.WalkDir(filepath.Join(l.home, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				l.t.Errorf("left: %s", path)
			}
			return nil
		})
	}
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(l.home), "*bashrc*")); len(found) > 0 {
		l.t.Errorf("outside: %v", found)
	}
}

// pressed is an index signed by the pinned key, as number 100 + n: nobody checked it before.
func (l *liar) pressed(index []byte, n int) []byte {
	l.t.Helper()
	text := strings.TrimSpace(string(index))
	text = strings.Replace(text, `"seq":1,`, fmt.Sprintf(`"seq":%d,`, 100+n), 1)
	file := filepath.Join(l.t.TempDir(), "connectors.json")
	writeFile(l.t, file, text)
	signature := minisigned(l.t, l.key("a"), []byte(text))
	l.lie("/connectors.json.minisig", saying(signature))
	return []byte(text)
}

// TestHostileIDs: an id that is no id is never looked for on the disk, and nothing is installed under it.
func TestHostileIDs(t *testing.T) {
	l := newLiar(t)
	for _, id := range []string{"../../x", "con", "a/b", ".", "..", "-rf", "--help", "Å", "ａ", strings.Repeat("x", 300), "x\u202ey", "a__b", "a..b", "", "x\x1b[2J", "PLAIN"} {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			l.t = t
			l.lie("/connectors.json", saying(l.served(func(_, e map[string]any) { e["id"], e["folder"] = id, "plain" })))
			code, _, errs := l.on("install", "--yes", "--", id)
			if code != exitIntegrity && code != exitNotFound && code != exitUsage {
				t.Errorf("exit %d: %s", code, errs)
			}
			l.nothingInstalled()
			if code, out, errs := l.on("search"); code != exitDone || strings.ContainsFunc(out+errs, func(r rune) bool { return r < 0x20 && r != '\n' || r == 0x7f || r == 0x202e }) {
				t.Errorf("search: exit %d: %q %q", code, out, errs)
			}
			l.must("info", "mail") // one bad entry takes no other one down
		})
	}
}

// TestHostileVersions: only a greater whole number is an update, and nothing goes back.
func TestHostileVersions(t *testing.T) {
	l := newLiar(t)
	bumpIn(t, l.dir, "plain")
	l.must("install", "plain", "--yes")
	installed := l.everything()
	for _, version := range []string{`1`, `0`, `-1`, `1.5`, `2.5`, `"1"`, `"2.0.1"`, `true`, `null`, `9007199254740993`, `1e300`, `[]`} {
		t.Run(version, func(t *testing.T) {
			l.t = t
			l.lie("/connectors.json", saying(l.served(func(_, e map[string]any) { e["version"] = json.RawMessage(version) })))
			for _, args := range [][]string{{"upgrade", "plain", "--yes"}, {"upgrade", "--all", "--yes", "--allow-wider"}} {
				if code, _, errs := l.on(args...); code != exitDone && code != exitIntegrity {
					t.Errorf("%q: exit %d: %s", args, code, errs)
				}
			}
			if now := withoutIndex(l.everything()); now != withoutIndex(installed) {
				t.Errorf("it changed\n%s\nto\n%s", installed, now)
			}
		})
	}
}

func withoutIndex(state string) string {
	var b strings.Builder
	for line := range strings.Lines(state) {
		if !strings.HasPrefix(line, "cache/") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestFloods: data without an end, and what would unpack to it, end at their limits; nothing is kept.
func TestFloods(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		junk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, _ = z.Write(zeros)
		}
		_ = z.Close()
	}
	for name, row := range map[string]struct {
		path string
		lie  http.HandlerFunc
		code int
		says string
	}{
		"an endless file":       {"/plain/server.py", endless, exitIntegrity, `"server.py" of connector "plain" does not match its pin`},
		"a file that unpacks":   {"/plain/server.py", bomb, exitFailed, `content encoding "gzip" although none was asked for`},
		"an index that unpacks": {"/connectors.json", bomb, exitFailed, `content encoding "gzip" although none was asked for`},
		"an index of 10 GB": {"/connectors.json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000000")
			w.WriteHeader(200)
		}, exitFailed, "10000000000 bytes"},
		"an endless signature":     {"/connectors.json.minisig", endless, exitIntegrity, "has more than 16384 bytes"},
		"an endless keys file":     {"/keys.json", endless, exitIntegrity, "keys.json has more than 65536 bytes"},
		"a signature that unpacks": {"/connectors.json.minisig", bomb, exitFailed, `content encoding "gzip"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			if row.path != "/plain/server.py" && row.path != "/connectors.json" {
				l.must("catalog", "keygen", l.key("a"), "--no-password")
				l.sign()
				writeFile(t, filepath.Join(l.home, "marketplaces.json"), l.pinned())
			}
			l.lie(row.path, row.lie)
			code, _, errs := l.on("install", "plain", "--yes")
			if code != row.code || !strings.Contains(strings.Join(strings.Fields(errs), " "), row.says) {
				t.Errorf("exit %d, want %d and %q: %s", code, row.code, row.says, errs)
			}
			l.nothingInstalled()
			_ = filepath.WalkDir(filepath.Join(l.home, "cache"), func(path string, d os.DirEntry, err error) error {
				if err != nil {
					return nil // there is no cache
				}
				if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() > 1<<20 {
					t.Errorf("kept: %s, %d bytes", path, info.Size())
				}
				return nil
			})
		})
	}
}

// pinned is a list of marketplaces in which the liar's key is pinned, made without asking it.
func (l *liar) pinned() string {
	key := strings.Fields(string(readFile(l.t, l.key("a")+".pub")))
	return fmt.Sprintf(`{"format": 1, "marketplaces": [{"name": "liar", "location": %q, "keys": [%q], "threshold": 1}]}`, l.server.URL, key[len(key)-1])
}
