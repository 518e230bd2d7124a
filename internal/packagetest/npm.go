// Package packagetest makes packages for tests: a registry that npm can be pointed at
// and wheels that pip can be given, so that installing dependencies is tested with the
// real programs and without a network.
//
// It is for tests only and never part of the program.
package packagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A Request is one that a registry saw.
type Request struct {
	Host, Path, Authorization string
}

// NPM is a registry of npm packages in memory. It may be used by several goroutines.
type NPM struct {
	mu       sync.Mutex
	packages map[string]map[string]release // name → version
	requests []Request
	token    string
	tampered map[string]bool
	held     map[string]chan struct{} // requests for these archives wait
	reached  chan struct{}
}

type release struct {
	manifest map[string]any
	archive  []byte
}

// NewNPM makes an empty registry.
func NewNPM() *NPM {
	return &NPM{packages: map[string]map[string]release{}, tampered: map[string]bool{}}
}

// Add publishes one version. files are those of the package; manifest is its
// package.json, name and version are filled in.
func (n *NPM) Add(name, version string, manifest map[string]any, files map[string]string) {
	m := maps.Clone(manifest)
	if m == nil {
		m = map[string]any{}
	}
	m["name"], m["version"] = name, version
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err)
	}
	all["package.json"] = string(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.packages[name] == nil {
		n.packages[name] = map[string]release{}
	}
	n.packages[name][version] = release{manifest: m, archive: archive(all)}
}

// AddArchive publishes one version whose archive is exactly data.
func (n *NPM) AddArchive(name, version string, manifest map[string]any, data []byte) {
	n.Add(name, version, manifest, nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.packages[name][version] = release{manifest: n.packages[name][version].manifest, archive: data}
}

func archive(files map[string]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o644)
		if strings.HasPrefix(files[name], "#!") {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Name: "package/" + name, Mode: mode, Size: int64(len(files[name]))}); err != nil {
			panic(err)
		}
		if _, err := t.Write([]byte(files[name])); err != nil {
			panic(err)
		}
	}
	if err := t.Close(); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Integrity is the digest of a published version, as lock files have it.
func (n *NPM) Integrity(name, version string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return integrity(n.packages[name][version].archive)
}

func integrity(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Require makes the registry answer only to that bearer token.
func (n *NPM) Require(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.token = token
}

// Tamper makes the registry serve other bytes for a package than it says.
func (n *NPM) Tamper(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tampered[name] = true
}

// Hold makes downloads of a package wait until release is called; reached gets a value
// when the first one does.
func (n *NPM) Hold(name string) (reached <-chan struct{}, release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	gate := make(chan struct{})
	n.held = map[string]chan struct{}{name: gate}
	n.reached = make(chan struct{}, 1)
	return n.reached, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.held = nil
		close(gate)
	}
}

// wait holds a download back.
func (n *NPM) wait(r *http.Request) {
	name, _, isArchive := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	n.mu.Lock()
	gate, reached := n.held[name], n.reached
	n.mu.Unlock()
	if gate == nil || !isArchive {
		return
	}
	select {
	case reached <- struct{}{}:
	default:
	}
	select {
	case <-gate:
	case <-r.Context().Done():
	}
}

// Requests lists what was asked for so far.
func (n *NPM) Requests() []Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests)
}

// Downloads counts how often archives were asked for.
func (n *NPM) Downloads() int {
	count := 0
	for _, r := range n.Requests() {
		if strings.HasSuffix(r.Path, ".tgz") {
			count++
		}
	}
	return count
}

// ServeHTTP answers as a registry does.
func (n *NPM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.wait(r)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, Request{r.Host, r.URL.Path, r.Header.Get("Authorization")})
	if n.token != "" && r.Header.Get("Authorization") != "Bearer "+n.token {
		http.Error(w, `{"error":"sign in first"}`, http.StatusUnauthorized)
		return
	}
	name, file, isArchive := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	versions, ok := n.packages[name]
	switch {
	case !ok:
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
	case isArchive:
		n.serveArchive(w, r, name, file)
	default:
		n.serveDocument(w, r, name, versions)
	}
}

func archiveName(name, version string) string {
	return name[strings.LastIndex(name, "/")+1:] + "-" + version + ".tgz"
}

func (n *NPM) serveArchive(w http.ResponseWriter, r *http.Request, name, file string) {
	for version, rel := range n.packages[name] {
		if archiveName(name, version) != file {
			continue
		}
		data := rel.archive
		if n.tampered[name] {
			data = archive(map[string]string{"package.json": fmt.Sprintf(`{"name":%q,"version":%q}`, name, version), "evil.js": ""})
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(data)
		return
	}
	http.NotFound(w, r)
}

func (n *NPM) serveDocument(w http.ResponseWriter, r *http.Request, name string, versions map[string]release) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	doc := map[string]any{}
	newest := ""
	for version, rel := range versions {
		m := maps.Clone(rel.manifest)
		sum := sha1.Sum(rel.archive)
		m["dist"] = map[string]any{"tarball": fmt.Sprintf("%s://%s/%s/-/%s", scheme, r.Host, name, archiveName(name, version)),
			"integrity": integrity(rel.archive), "shasum": hex.EncodeToString(sum[:])}
		if scripts, ok := m["scripts"].(map[string]any); ok && (scripts["postinstall"] != nil || scripts["install"] != nil || scripts["preinstall"] != nil) {
			m["hasInstallScript"] = true
		}
		doc[version] = m
		newest = max(newest, version)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": newest}, "versions": doc})
}
