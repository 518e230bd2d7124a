package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// exported is the bundle file of a site's connector.
func exported(t *testing.T, v *visitor, p *press) string {
	t.Helper()
	v.site.show(p.files)
	m := open(t, v.o)
	b, err := bundle(m, "demo")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "demo.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Export(context.Background(), b, "", f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// elsewhere is another machine without a network, on which the same keys are pinned.
func elsewhere(t *testing.T, v *visitor, file string) Options {
	o := v.o
	o.Location, o.BundleFile = "", file
	o.CacheDir, o.TrustDir = filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "trust")
	return o
}

func TestBundleFile(t *testing.T) {
	for _, signedSite := range []bool{true, false} {
		t.Run(fmt.Sprint("signed=", signedSite), func(t *testing.T) {
			v, p := visit(t), newPress()
			if signedSite {
				v.pin(2, root(0), root(1))
				p = signed()
			} else {
				tr, _ := demo()
				p.files = tr
			}
			file := exported(t, v, p)
			v.site.show(tree{}) // the network has nothing
			asked := len(v.site.asked)
			o := elsewhere(t, v, file)
			m := open(t, o)
			t.Cleanup(func() { m.Close() })
			if m.Bundled() != "demo" || m.Location() != v.o.Location {
				t.Errorf("%q %q", m.Bundled(), m.Location())
			}
			b, err := bundle(m, "demo")
			if err != nil {
				t.Fatal(err)
			}
			if read(t, b, "server.py") != goodFile || b.Index().Trust().Signed != signedSite || b.Index().Trust().Bundled == signedSite {
				t.Errorf("%+v", b.Index().Trust())
			}
			if len(v.site.asked) != asked {
				t.Errorf("the network was asked for %q", v.site.asked[asked:])
			}
			// Afterwards the marketplace is known offline when it is signed, and not when the bundle is its only word.
			o.BundleFile, o.Location = "", v.o.Location
			_, err = open(t, o).Index(context.Background(), Offline)
			if signedSite != (err == nil) {
				t.Errorf("offline afterwards: %v", err)
			}
			again := exported(t, v, p)
			one, _ := os.ReadFile(file)
			two, _ := os.ReadFile(again)
			if !bytes.Equal(one, two) {
				t.Error("the same bundle gives other bytes")
			}
		})
	}
}

func TestBundleFileIsJudged(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	file := exported(t, v, signed())
	look := func(o Options) error {
		m, err := Open(o)
		if err != nil {
			return err
		}
		defer m.Close()
		_, err = bundle(m, "demo")
		return err
	}
	o := elsewhere(t, v, file)
	o.Pinned = []string{stranger().String()}
	o.PinnedNeeded = 1
	if got := kind(look(o)); got != "signature" {
		t.Errorf("other keys are pinned: %q", got)
	}
	o = elsewhere(t, v, file)
	later := newClock()
	later.add(31 * 24 * time.Hour)
	o.Now = later.now
	if got := kind(look(o)); got != "freeze" {
		t.Errorf("run out: %q", got)
	}
	o.AllowExpired = true
	m := open(t, o)
	defer m.Close()
	b, err := bundle(m, "demo")
	if err != nil || !b.Index().Trust().Expired {
		t.Errorf("allowed: %v", err)
	}
	o = elsewhere(t, v, file)
	newer := signed()
	newer.seq = 9
	v.site.show(newer.index(indexer(0)).files)
	online := o
	online.BundleFile, online.Location = "", v.o.Location
	if _, err := open(t, online).Index(context.Background(), Refresh); err != nil {
		t.Fatal(err)
	}
	if got := kind(look(o)); got != "rollback" {
		t.Errorf("an older index than was seen: %q", got)
	}
	for _, name := range []string{"files/server.py", "connectors.json", "connectors.json.minisig"} {
		o = elsewhere(t, v, rewrite(t, file, func(h *tar.Header, data []byte) []byte {
			if h.Name == name {
				data[len(data)/2] ^= 1
			}
			return data
		}))
		if err := look(o); err == nil {
			t.Errorf("a flipped bit in %s is installed", name)
		}
		if _, err := os.Stat(filepath.Join(o.CacheDir, "sha256", digestOf(goodFile)[:2], digestOf(goodFile))); name == "files/server.py" && err == nil {
			t.Error("a wrong file was kept")
		}
	}
}

// rewrite copies a bundle member by member.
func rewrite(t *testing.T, file string, change func(*tar.Header, []byte) []byte, more ...func(*tar.Writer)) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		var data bytes.Buffer
		data.ReadFrom(r)
		body := data.Bytes()
		if change != nil {
			body = change(h, body)
		}
		if body == nil {
			continue
		}
		h.Size = int64(len(body))
		w.WriteHeader(h)
		w.Write(body)
	}
	for _, f := range more {
		f(w)
	}
	w.Close()
	path := filepath.Join(t.TempDir(), "other.tar")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHostileBundleFiles(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	file := exported(t, v, signed())
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	add := func(h tar.Header) func(t *testing.T) string {
		return func(t *testing.T) string {
			return rewrite(t, file, nil, func(w *tar.Writer) {
				if h.Typeflag == 0 {
					h.Typeflag = tar.TypeReg
				}
				w.WriteHeader(&h)
				w.Write(make([]byte, h.Size))
			})
		}
	}
	raw := func(data []byte) func(t *testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "raw.tar")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	huge := bytes.Clone(good)
	at := bytes.Index(huge, []byte("files/connector.json"))
	copy(huge[at+124:], "77777777777\x00") // its size: 8 GiB
	for name, row := range map[string]struct {
		file func(t *testing.T) string
		want string
	}{
		"parent":            {add(tar.Header{Name: "files/../../x"}), "path"},
		"absolute":          {add(tar.Header{Name: "/etc/cron.d/x"}), "has no place"},
		"parent at the top": {add(tar.Header{Name: "../x"}), "has no place"},
		"a stranger":        {add(tar.Header{Name: "README"}), "has no place"},
		"backslash":         {add(tar.Header{Name: `files/..\x`}), "files/"},
		"symbolic link":     {add(tar.Header{Name: "files/a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "not a regular file"},
		"hard link":         {add(tar.Header{Name: "files/a", Typeflag: tar.TypeLink, Linkname: "files/server.py"}), "not a regular file"},
		"device":            {add(tar.Header{Name: "files/a", Typeflag: tar.TypeBlock, Devmajor: 8}), "not a regular file"},
		"pipe":              {add(tar.Header{Name: "files/a", Typeflag: tar.TypeFifo}), "not a regular file"},
		"folder":            {add(tar.Header{Name: "files/a/", Typeflag: tar.TypeDir}), "not a regular file"},
		"twice":             {add(tar.Header{Name: "files/server.py"}), "twice"},
		"index twice":       {add(tar.Header{Name: "connectors.json"}), "twice"},
		"large file":        {add(tar.Header{Name: "files/big", Size: 8<<20 + 1}), "more than"},
		"large keys":        {add(tar.Header{Name: "keys/9.json", Size: 64<<10 + 1}), "more than"},
		"keys/01.json":      {add(tar.Header{Name: "keys/01.json"}), "has no place"},
		"package parent":    {add(tar.Header{Name: "packages/../x"}), "not a plain path"},
		"package dot file":  {add(tar.Header{Name: "packages/.npmrc"}), "not a plain path"},
		"cut in a member":   {raw(good[:len(good)/2]), ""},
		"cut in a header":   {raw(good[:700]), ""},
		"odd length":        {raw(append(bytes.Clone(good), 0)), "cut off"},
		"something behind":  {raw(append(bytes.Clone(good), bytes.Repeat([]byte("x"), 512)...)), "follows its end"},
		"much behind":       {raw(append(bytes.Clone(good), make([]byte, 1<<20)...)), "follows its end"},
		"two tars":          {raw(append(bytes.Clone(good), good...)), "follows its end"},
		"size of 8 GiB":     {raw(huge), ""},
		"empty":             {raw(nil), "empty"},
		"zeros":             {raw(make([]byte, 1024)), "empty"},
		"a web page":        {raw([]byte("<!doctype html>" + strings.Repeat(" ", 1024))), "not a whole tar"},
		"no head":           {func(t *testing.T) string { return rewrite(t, file, drop("bundle.json")) }, "begins with"},
		"no index":          {func(t *testing.T) string { return rewrite(t, file, drop("connectors.json")) }, "no index"},
		"newer format":      {func(t *testing.T) string { return rewrite(t, file, head(`"format": 1`, `"format": 2`)) }, "newer version"},
		"head of an id":     {func(t *testing.T) string { return rewrite(t, file, head(`"demo"`, `"../x"`)) }, "does not say"},
		"a folder":          {func(t *testing.T) string { return t.TempDir() }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := elsewhere(t, v, row.file(t))
			m, err := Open(o)
			if err == nil {
				defer m.Close()
				_, err = bundle(m, "demo")
			}
			var refused *BundleFileError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want a BundleFileError about %q", err, row.want)
			}
			if left := snapshot(t, o.CacheDir) + snapshot(t, o.TrustDir); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// A bundle that lacks a file that its index names was cut: no other place has it, and it is not asked for again.
func TestBundleFileThatLacksAFile(t *testing.T) {
	v := visit(t).pin(2, root(0), root(1))
	file := rewrite(t, exported(t, v, signed()), drop("files/connector.json"))
	o := elsewhere(t, v, file)
	o.Progress = func(e Event) {
		if e.IndexReread {
			t.Error("the index was read again")
		}
	}
	m, err := Open(o)
	noError(t, err)
	defer m.Close()
	_, err = bundle(m, "demo")
	var refused *BundleFileError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), `it lacks "connector.json" of connector "demo"`) {
		t.Errorf("got %v", err)
	}
}

func drop(name string) func(*tar.Header, []byte) []byte {
	return func(h *tar.Header, data []byte) []byte {
		if h.Name == name {
			return nil
		}
		return data
	}
}

func head(old, new string) func(*tar.Header, []byte) []byte {
	return func(h *tar.Header, data []byte) []byte {
		if h.Name == "bundle.json" {
			return bytes.Replace(data, []byte(old), []byte(new), 1)
		}
		return data
	}
}

func FuzzBundleFile(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := []byte(`{"format": 1, "location": "builtin", "id": "demo", "version": 1}`)
	w.WriteHeader(&tar.Header{Name: "bundle.json", Size: int64(len(text)), Mode: 0o600})
	w.Write(text)
	w.Close()
	f.Add(b.Bytes())
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, digestOf(string(data))[:16])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		tf, err := openTarFile(path)
		if err != nil {
			return
		}
		defer tf.file.Close()
		for name, m := range tf.members {
			if m.at+m.size > int64(len(data)) || strings.Contains(name, "..") && !slices.Contains(strings.Split(name, "/"), name) && strings.Contains("/"+name+"/", "/../") {
				t.Errorf("%q %+v", name, m)
			}
		}
	})
}
