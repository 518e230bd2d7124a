package fetch

import (
	"fmt"
	"strings"
	"testing"
)

func TestLyingEntries(t *testing.T) {
	good := pin("server.py", goodFile)
	with := func(k string, v any) map[string]any {
		m := map[string]any{}
		for key, old := range good {
			m[key] = old
		}
		m[k] = v
		if v == nil {
			delete(m, k)
		}
		return m
	}
	sum := good["sha256"].(string)
	for _, row := range []struct {
		name  string
		files []any // beside connector.json
		want  string
	}{
		{"digest missing", []any{with("sha256", nil)}, "broken"},
		{"digest in upper case", []any{with("sha256", " "+strings.ToUpper(sum)+"\n")}, "none"},
		{"digest of 63", []any{with("sha256", sum[:63])}, "broken"},
		{"sha1", []any{with("sha256", sum[:40])}, "broken"},
		{"size -1", []any{with("size", -1)}, "broken"},
		{"size missing", []any{with("size", nil)}, "none"},
		{"size one more", []any{with("size", len(goodFile)+1)}, "pin"},
		{"size one less", []any{with("size", len(goodFile)-1)}, "pin"},
		{"size 0", []any{with("size", 0)}, "pin"},
		{"size beyond the limit", []any{with("size", 8<<20+1)}, "broken"},
		{"twice", []any{good, good}, "broken"},
		{"twice, other digest", []any{good, with("sha256", digestOf("x"))}, "broken"},
		{"case twins", []any{good, with("path", "Server.py")}, "broken"},
		{"file and folder", []any{good, with("path", "server.py/x")}, "broken"},
		{"parent", []any{with("path", "../demo/server.py")}, "broken"},
		{"absolute", []any{with("path", "/server.py")}, "broken"},
		{"backslash", []any{with("path", `..\server.py`)}, "broken"},
		{"drive", []any{with("path", "C:x")}, "broken"},
		{"NUL", []any{with("path", "server\x00.py")}, "broken"},
		{"empty segment", []any{with("path", "a//b")}, "broken"},
		{"trailing space", []any{with("path", "server.py ")}, "broken"},
		{"device", []any{with("path", "NUL.js")}, "broken"},
		{"npmrc", []any{with("path", "lib/.npmrc")}, "broken"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tr, e := demo()
			manifest := pin("connector.json", string(tr["demo/connector.json"]))
			e["files"] = append([]any{manifest}, row.files...)
			tr.index(e)
			o := options(t, serve(t, tr))
			_, err := bundle(open(t, o), "demo")
			if got := errorKind(err); got != row.want {
				t.Errorf("%s (%v), want %s", got, err, row.want)
			}
			if left := snapshot(t, o.CacheDir); row.want != "none" && strings.Contains(left, sum) {
				t.Errorf("left behind:\n%s", left)
			}
		})
	}
}

func TestLimitsOfAConnector(t *testing.T) {
	many := map[string]string{}
	for i := range 500 {
		many[fmt.Sprintf("f%d", i)] = "x"
	}
	tr := tree{}
	tooMany := tr.connector("many", many)
	large := tr.connector("large", nil)
	for i := range 9 {
		large["files"] = append(large["files"].([]any), map[string]any{"path": fmt.Sprintf("big%d", i), "sha256": digestOf("x"), "size": 8 << 20})
	}
	unpinned := tr.connector("unpinned", nil)
	unpinned["files"] = []any{pin("server.py", "print('unpinned')\n")}
	none := tr.connector("none", nil)
	delete(none, "files")
	deep := tr.connector("deep", nil)
	deep["folder"] = "a/b/c/d"
	outside := tr.connector("outside", nil)
	outside["folder"] = "../up"
	tr.index(tooMany, large, unpinned, none, deep, outside)
	o := options(t, serve(t, tr))
	m := open(t, o)
	for _, id := range []string{"many", "large", "unpinned", "none", "deep", "outside"} {
		if _, err := bundle(m, id); errorKind(err) != "broken" {
			t.Errorf("%s: %v", id, err)
		}
	}
	if left := snapshot(t, o.CacheDir); strings.Contains(left, "sha256/") {
		t.Errorf("left behind:\n%s", left)
	}
}

func TestRemoteWithoutPinnedManifest(t *testing.T) {
	tr := tree{}
	man := `{"id": "far", "name": "Far", "type": "mcp_remote", "scope": "user", "version": 1, "mcp_config": {"url": "https://far.example/mcp", "transport": "http"},
 "files": [{"path": "icon.svg", "sha256": "` + digestOf("<svg/>") + `", "size": 6}]}`
	e := tr.connector("far", map[string]string{"connector.json": man, "icon.svg": "<svg/>"})
	e["type"] = "mcp_remote"
	delete(e, "files")
	tr.index(e)
	eachKind(t, tr, func(t *testing.T, o Options) {
		b, err := bundle(open(t, o), "far")
		if err != nil {
			t.Fatal(err)
		}
		if u := b.Unpinned(); len(u) != 1 || u[0] != "connector.json" {
			t.Errorf("unpinned: %v", u)
		}
		files := b.Files()
		if len(files) != 2 || files[0].SHA256 != digestOf(man) || files[0].Size != int64(len(man)) || files[1].Path != "icon.svg" {
			t.Errorf("files: %v", files)
		}
	})
}

func TestErrorTexts(t *testing.T) {
	tr, e := demo()
	wrong := strings.Replace(goodFile, "demo", "demX", 1)
	tr["demo/server.py"] = []byte(wrong)
	tr.index(e)
	_, err := bundle(open(t, options(t, serve(t, tr))), "demo")
	want := `"server.py" of connector "demo" does not match its pin: expected sha256 ` + digestOf(goodFile) + ", got sha256 " + digestOf(wrong)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
