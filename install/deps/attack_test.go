package deps

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skald-connectors/internal/packagetest"
	"skald-connectors/sandbox"
)

// hostileArchive holds an honest package and entries that lead out of it.
func hostileArchive(t *testing.T, outside string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	put := func(h tar.Header, text string) {
		h.Size = int64(len(text))
		if h.Mode = 0o644; h.Typeflag != 0 && h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	up := strings.Repeat("../", 12)
	put(tar.Header{Name: "package/package.json"}, `{"name":"evil","version":"1.0.0","bin":{"out":"../../../out.js","../../../up":"index.js","abs":"/etc/passwd","fine":"index.js"},"directories":{"bin":"../../.."}}`)
	put(tar.Header{Name: "package/index.js"}, "1")
	put(tar.Header{Name: "package/../../../climbed"}, "x")
	put(tar.Header{Name: "package/" + up + outside + "/climbed"}, "x")
	put(tar.Header{Name: outside + "/absolute"}, "x")
	put(tar.Header{Name: "package/link", Typeflag: tar.TypeSymlink, Linkname: outside}, "")
	put(tar.Header{Name: "package/link/through"}, "x")
	put(tar.Header{Name: "package/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, "")
	put(tar.Header{Name: "package/pipe", Typeflag: tar.TypeFifo}, "")
	put(tar.Header{Name: "package/.npmrc"}, "registry=http://elsewhere.invalid/\nignore-scripts=false\n")
	put(tar.Header{Name: "package/node_modules/.hooks/postinstall"}, "#!/bin/sh\ntouch "+outside+"/hooked\n")
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRealHostileArchive: whatever an archive and its list of commands name, nothing
// comes outside of the tree, and no link in it leads out.
func TestRealHostileArchive(t *testing.T) {
	w := realNode(t)
	n, server := registry(t)
	outside := t.TempDir()
	n.AddArchive("evil", "1.0.0", map[string]any{"bin": map[string]string{"out": "../../../out.js", "../../../up": "index.js", "abs": "/etc/passwd", "fine": "index.js"}}, hostileArchive(t, outside))
	// Names of ours, which are honest names of packages.
	n.Add("deps.json", "1.0.0", nil, map[string]string{"deps.json": "{}", "package-lock.json": "{}", ".npmrc": "registry=http://elsewhere.invalid/"})
	w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_fetch_retries=0"}
	_, err := w.install(readOne(t, npmInput(`{"dependencies":{"evil":"1.0.0","deps.json":"1.0.0"}}`, "")), nil)

	var build *BuildError
	var refused *RefusedError
	if err != nil && !errors.As(err, &build) && !errors.As(err, &refused) {
		t.Errorf("%v\n%s", err, tailOf(err))
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("outside: %v", left)
	}
	err = filepath.WalkDir(filepath.Dir(w.tree), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "climbed" || d.Name() == "hard" || d.Name() == "pipe" {
			t.Errorf("%s came", p)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if to, err := filepath.EvalSymlinks(p); err == nil && !strings.HasPrefix(to, w.tree+"/") {
				t.Errorf("%s leads to %s", p, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRealRegistryThatSendsElsewhere: archives are asked for at the person's registry
// and nowhere else, and no credential goes along to another host.
func TestRealRegistryThatSendsElsewhere(t *testing.T) {
	w := realNode(t)
	boxes := confined(t)
	for _, mode := range []sandbox.Mode{sandbox.Landlock, sandbox.Combined} { // the second filters, where it is there
		if boxes[mode] != nil {
			w.box = boxes[mode]
		}
	}
	other, elsewhere := registry(t)
	other.Add("a", "1.0.0", nil, nil)
	n := packagetest.NewNPM()
	n.Add("a", "1.0.0", nil, nil)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			http.Redirect(rw, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusFound)
			return
		}
		n.ServeHTTP(rw, r)
	}))
	defer server.Close()
	w.environ = []string{"npm_config_registry=" + server.URL + "/", "npm_config_fetch_retries=0", "npm_config_" + strings.TrimPrefix(server.URL, "http:") + "/:_authToken=" + canary}
	_, err := w.install(readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, "")), nil)
	_, open := w.box.Install(w.tree, w.tool(NPM).Hosts)
	if open == "" && (err == nil || other.Downloads() > 0) {
		t.Errorf("%v, %d downloads elsewhere", err, other.Downloads())
	}
	for _, r := range other.Requests() {
		if r.Authorization != "" {
			t.Errorf("the credential went along: %+v", r)
		}
	}
}

// TestRealRegistryThatStalls: the time limit ends it, with all that was started.
func TestRealRegistryThatStalls(t *testing.T) {
	w := realNode(t)
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	w.environ = []string{"npm_config_registry=" + server.URL + "/"}
	_, err := w.install(readOne(t, npmInput(`{"dependencies":{"a":"1.0.0"}}`, "")), func(o *Options) { o.Timeout = 3 * time.Second })
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != TimedOut {
		t.Errorf("%v\n%s", err, tailOf(err))
	}
}

// TestRealHostileWheel: a wheel whose members lead out of its folder.
func TestRealHostileWheel(t *testing.T) {
	w := realPython(t)
	dir, outside := t.TempDir(), t.TempDir()
	up := strings.Repeat("../", 12)
	file, data := packagetest.Wheel("evil", "1.0", map[string]string{"evil.py": "1", "../climbed.py": "x", up + outside[1:] + "/climbed.py": "x",
		"evil-1.0.data/data/" + up + outside[1:] + "/data": "x", "evil-1.0.data/scripts/../../climbed": "x", outside + "/absolute": "x"})
	write(t, filepath.Join(dir, file), string(data))
	w.environ = []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + dir}
	res, err := w.install(readOne(t, Input{Files: map[string][]byte{requiredFile: []byte("evil==1.0\n")}}), nil)
	var build *BuildError
	if !errors.As(err, &build) || build.Kind != Unsafe {
		t.Errorf("%+v, %v\n%s", res, err, tailOf(err))
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("outside: %v", left)
	}
	if found, _ := filepath.Glob(filepath.Join(w.tree, "climbed*")); len(found) != 0 {
		t.Errorf("beside its folder: %v", found)
	}
}
