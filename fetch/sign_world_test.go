package fetch

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"

	"skald-connectors/fetch/trust"
)

// A signer is a key pair of a test.
type signer struct {
	public  minisign.PublicKey
	private minisign.PrivateKey
}

var signerPool = sync.OnceValue(func() (list []signer) {
	for range 12 {
		pub, priv, err := minisign.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		list = append(list, signer{pub, priv})
	}
	return list
})

// The cast of the tests: three roots, their successor, two index keys, a stranger.
func root(i int) signer { return signerPool()[i] }
func indexer(i int) signer {
	return signerPool()[6+i]
}
func stranger() signer { return signerPool()[11] }

func (s signer) String() string { return s.public.String() }

// block signs data as `minisign -S` does.
func (s signer) block(data []byte) []byte {
	r := minisign.NewReader(bytes.NewReader(data))
	if _, err := new(bytes.Buffer).ReadFrom(r); err != nil {
		panic(err)
	}
	return r.SignWithComments(s.private, "timestamp:1", "test")
}

func blocks(data []byte, by ...signer) []byte {
	var out []byte
	for _, s := range by {
		out = append(out, s.block(data)...)
	}
	return out
}

// A press makes what a publisher signs, and can be told to make it wrong.
type press struct {
	files tree
	entry map[string]any
	seq   int
	keysV int
	more  map[string]any // members of the index, over the right ones
	raw   func([]byte) []byte
	begun time.Time
}

func newPress() *press {
	t := tree{}
	return &press{files: t, entry: t.connector("demo", map[string]string{"server.py": goodFile}), seq: 1, keysV: 1, begun: newClock().now()}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// index writes the index and its signature.
func (p *press) index(by ...signer) *press {
	doc := map[string]any{"type": "skald.index/v1", "keys_version": p.keysV, "seq": p.seq, "prev": "", "issued": stamp(p.begun),
		"expires": stamp(p.begun.Add(30 * 24 * time.Hour)), "version": 1, "connectors": []any{p.entry}}
	maps.Copy(doc, p.more)
	src, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err)
	}
	if p.raw != nil {
		src = p.raw(src)
	}
	p.files["connectors.json"] = src
	p.files["connectors.json.minisig"] = blocks(src, by...)
	return p
}

// keysOf makes a keys document.
func keysOf(version, rootsNeeded int, roots []signer, indexNeeded int, index []signer) map[string]any {
	text := func(list []signer) (out []string) {
		for _, s := range list {
			out = append(out, s.String())
		}
		return out
	}
	return map[string]any{"type": "skald.keys/v1", "version": version, "expires": "2027-12-01T00:00:00Z",
		"root": text(roots), "root_threshold": rootsNeeded, "index": text(index), "index_threshold": indexNeeded}
}

// keys publishes a keys document with its signatures, as the newest and in the history.
func (p *press) keys(doc map[string]any, by ...signer) *press {
	src, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"keys.json", fmt.Sprintf("keys/%v.json", doc["version"])} {
		p.files[name] = src
		p.files[name+".minisig"] = blocks(src, by...)
	}
	return p
}

// three is the usual first keys document: two of three roots, one index key.
func three() map[string]any {
	return keysOf(1, 2, []signer{root(0), root(1), root(2)}, 1, []signer{indexer(0)})
}

// A site serves what was printed last, and remembers what was asked.
type site struct {
	mu    sync.Mutex
	tree  tree
	asked []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.tree
	s.asked = append(s.asked, strings.TrimPrefix(r.URL.Path, "/"))
	s.mu.Unlock()
	t.ServeHTTP(w, r)
}

func (s *site) show(t tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree = maps.Clone(t)
}

// A visitor is one user of a signed marketplace.
type visitor struct {
	t     *testing.T
	site  *site
	clock *clock
	o     Options
}

func visit(t *testing.T) *visitor {
	v := &visitor{t: t, site: &site{}, clock: newClock()}
	v.o = options(t, serve(t, v.site))
	v.o.Now = v.clock.now
	v.o.TrustDir = filepath.Join(t.TempDir(), "trust")
	return v
}

func (v *visitor) pin(needed int, keys ...signer) *visitor {
	v.o.Pinned, v.o.PinnedNeeded = nil, needed
	for _, k := range keys {
		v.o.Pinned = append(v.o.Pinned, k.String())
	}
	return v
}

// embed gives the program a keys document of its own.
func (v *visitor) embed(doc map[string]any) *visitor {
	src, err := json.Marshal(doc)
	if err != nil {
		v.t.Fatal(err)
	}
	v.o.Keys = src
	return v
}

// look installs the connector of the site, with a new process each time.
func (v *visitor) look(p *press) error {
	v.t.Helper()
	v.site.show(p.files)
	_, err := bundle(open(v.t, v.o), "demo")
	return err
}

// kind is the code word of a refusal, "" for none.
func kind(err error) string {
	var refused *trust.Error
	var broken *BrokenError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return string(refused.Kind)
	case errors.As(err, &broken):
		return "broken"
	}
	return "other: " + err.Error()
}

func (v *visitor) want(p *press, want string) {
	v.t.Helper()
	if got := kind(v.look(p)); got != want {
		v.t.Errorf("got %q, want %q", got, want)
	}
}
