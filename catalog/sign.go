package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/lazyre"
	"skald-connectors/manifest"
)

const (
	signatureName = indexName + ".minisig"
	keysName      = "keys.json"
	// lifeUsual is how long a signed index is good for when nobody says otherwise; a weekly job signs it anew.
	lifeUsual = 30 * 24 * time.Hour
	// lifeMost is the longest life that users accept.
	lifeMost = 92 * 24 * time.Hour
)

// SignOptions say how to sign an index.
type SignOptions struct {
	Keys []SecretKey
	Life time.Duration // how long it is good for; 0: 30 days
	// Cosign adds signatures to the index as it is; for an index that several people sign.
	Cosign bool
	// Revoke takes versions back, Restore gives them back.
	Revoke, Restore []trust.Revocation
	// Against is the index that is published now, for the number to go on from; nil: the one in the tree.
	Against []byte
	Now     time.Time
}

// Signed is what Sign did.
type Signed struct {
	KeysVersion, Seq int64
	Issued, Expires  time.Time
	Signers          []string // numbers of the keys that signed these bytes
	Missing          int      // signatures that are still wanted
	Revoked          []trust.Revocation
}

// Sign gives the compiled index of the tree at dir its next number and dates and signs it: signature first, then index,
// so that a copy of the tree taken in between still verifies (the file of signatures has the blocks of both). The index
// must be what the tree compiles to. Errors: *RefusedError from Verify, *trust.Error for what no user would believe.
func Sign(ctx context.Context, dir string, o SignOptions) (*Signed, error) {
	if o.Life == 0 {
		o.Life = lifeUsual
	}
	if o.Life < time.Hour || o.Life > lifeMost {
		return nil, fmt.Errorf("signing %q: an index is good for an hour to 92 days", dir)
	}
	if len(o.Keys) == 0 {
		return nil, fmt.Errorf("signing %q: no key is given", dir)
	}
	if _, err := Verify(ctx, dir, Options{}); err != nil {
		return nil, err
	}
	s, err := openSigning(dir, o)
	if err != nil {
		return nil, fmt.Errorf("signing %q: %w", dir, err)
	}
	defer s.root.Close()
	done, err := s.run()
	if err != nil {
		return nil, fmt.Errorf("signing %q: %w", dir, err)
	}
	return done, nil
}

// signing is one run of Sign.
type signing struct {
	dir  string
	root *os.Root
	o    SignOptions
	keys *trust.Keys
	src  []byte // connectors.json
	top  exactjson.Value
	old  []byte // the file of signatures
}

func openSigning(dir string, o SignOptions) (*signing, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &signing{dir: dir, root: root, o: o}
	if err := s.read(); err != nil {
		root.Close()
		return nil, err
	}
	return s, nil
}

func (s *signing) read() (err error) {
	if s.src, err = readFile(s.root, indexName, manifest.MaxIndexBytes); err != nil {
		return err
	}
	if s.top, _, err = exactjson.Parse(s.src, maxDepth); err != nil {
		return err
	}
	if s.old, err = readFile(s.root, signatureName, trust.MaxSignatureBytes); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.keys, err = s.signers()
	return err
}

// signers are the keys that users will ask for: those of keys.json, or else the ones that sign, which users then pin.
func (s *signing) signers() (*trust.Keys, error) {
	doc, err := readFile(s.root, keysName, trust.MaxKeysBytes)
	if errors.Is(err, fs.ErrNotExist) {
		var own []trust.Key
		for _, k := range s.o.Keys {
			own = append(own, k.public)
		}
		return trust.Pin(own, len(own))
	}
	if err != nil {
		return nil, err
	}
	keys, err := trust.ParseKeys(doc)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", keysName, err)
	}
	for _, k := range s.o.Keys {
		if !slices.ContainsFunc(keys.Index, func(x trust.Key) bool { return x.String() == k.public.String() }) {
			return nil, fmt.Errorf("key %s is no index key of %s version %d", k.public.ID(), keysName, keys.Version)
		}
	}
	return keys, nil
}

func (s *signing) run() (*Signed, error) {
	doc, before := s.src, s.previous()
	if !s.o.Cosign {
		var err error
		if doc, err = s.next(before); err != nil {
			return nil, err
		}
	}
	head, err := headOf(doc)
	if err != nil {
		return nil, err
	}
	if s.o.Cosign && head.KeysVersion != s.keys.Version {
		return nil, fmt.Errorf("the index was made for keys version %d, and %s has version %d: sign it anew", head.KeysVersion, keysName, s.keys.Version)
	}
	blocks, err := s.blocks(doc, head)
	if err != nil {
		return nil, err
	}
	done := &Signed{KeysVersion: head.KeysVersion, Seq: head.Seq, Issued: head.Issued, Expires: head.Expires, Revoked: head.Revoked}
	if err := s.judge(done, doc, head, blocks); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(s.dir, signatureName), blocks, 0o644); err != nil {
		return nil, err
	}
	if s.o.Cosign {
		return done, nil
	}
	return done, atomicfile.Write(filepath.Join(s.dir, indexName), doc, 0o644)
}

// headOf reads the head of an index.
func headOf(doc []byte) (*trust.Head, error) {
	head := doc
	var ranges [][2]int
	for r, err := range exactjson.ArrayElements(doc, "connectors") {
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	if n := len(ranges); n > 0 {
		head = slices.Concat(doc[:ranges[0][0]], doc[ranges[n-1][1]:])
	}
	return trust.ParseHead(head)
}

// judge holds the result against the rules of a user's machine, so that nothing goes out that nobody would believe.
func (s *signing) judge(done *Signed, doc []byte, head *trust.Head, blocks []byte) error {
	m, err := trust.ReadMessage(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	for _, k := range s.keys.Index {
		one, err := trust.Pin([]trust.Key{k}, 1)
		if err != nil {
			return err
		}
		if by, err := one.Signers(m, blocks); err == nil {
			done.Signers = append(done.Signers, by[0].ID())
		}
	}
	done.Missing = max(s.keys.IndexThreshold-len(done.Signers), 0)
	state := trust.Begin(nil, s.dir, s.keys, nil)
	if s.keys.Version > 0 {
		state = trust.Begin(nil, s.dir, nil, s.keys)
	}
	return state.Admit(head, digestOf(doc), int64(len(doc)), nil, s.o.Now)
}

func digestOf(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// signedBefore is the state that the new index follows.
type signedBefore struct {
	keysVersion, seq int64
	digest           string // SHA-256 of its bytes; "" when that is not known
	revoked          []trust.Revocation
}

// commentForm is what our signatures say of the bytes under them.
var commentForm = lazyre.New(`\tindex:(\d+)\.(\d+)\tsha256:([0-9a-f]{64})\t`)

// previous finds what was signed last: the index that is published, or what the tree's own signatures say. (The index in
// the tree may have been compiled since: its bytes are then not those that were signed.)
func (s *signing) previous() signedBefore {
	var p signedBefore
	if h, err := headOf(s.src); err == nil {
		p.keysVersion, p.seq, p.revoked = h.KeysVersion, h.Seq, h.Revoked
	}
	if _, comments := splitBlocks(s.old); len(comments) > 0 {
		if m := commentForm.FindStringSubmatch(comments[0]); m != nil {
			v, _ := strconv.ParseInt(m[1], 10, 64)
			n, _ := strconv.ParseInt(m[2], 10, 64)
			p.follow(v, n, m[3])
		}
	}
	if s.o.Against != nil {
		if h, err := headOf(s.o.Against); err == nil {
			p.follow(h.KeysVersion, h.Seq, digestOf(s.o.Against))
		}
	}
	return p
}

// follow takes a state that is at least as new.
func (p *signedBefore) follow(keysVersion, seq int64, digest string) {
	if keysVersion > p.keysVersion || keysVersion == p.keysVersion && seq >= p.seq {
		p.keysVersion, p.seq, p.digest = keysVersion, seq, digest
	}
}

// lastNumber is the greatest number that readers take (package trust): the greatest integer that every JSON reader gives back unchanged.
const lastNumber = 1<<53 - 1

// number is that of the index after it. Under new keys numbers count anew, which is what gets over one that a thief made the last.
func (p signedBefore) number(keysVersion int64) (int64, error) {
	switch {
	case p.seq < lastNumber:
		return p.seq + 1, nil
	case keysVersion > p.keysVersion:
		return 1, nil
	}
	return 0, fmt.Errorf("number %d is the last one there is under these keys; with another index key they count anew", p.seq)
}

// next writes the index with its next number, its dates and the list of revoked versions in front.
func (s *signing) next(before signedBefore) ([]byte, error) {
	revoked, err := s.revoked(before.revoked)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(revoked)
	if err != nil {
		return nil, err
	}
	seq, err := before.number(s.keys.Version)
	if err != nil {
		return nil, err
	}
	issued := s.o.Now.UTC().Truncate(time.Second)
	head := []struct {
		key   string
		value []byte
	}{
		{"type", quoted("skald.index/v1")},
		{"keys_version", strconv.AppendInt(nil, s.keys.Version, 10)},
		{"seq", strconv.AppendInt(nil, seq, 10)},
		{"issued", quoted(issued.Format(time.RFC3339))},
		{"expires", quoted(issued.Add(s.o.Life).Format(time.RFC3339))},
		{"prev", quoted(before.digest)},
		{"revoked", list},
	}
	o := newObject()
	for _, m := range head {
		o.member(m.key, m.value)
	}
	for _, m := range s.top.Members {
		known := false
		for _, h := range head {
			known = known || h.key == m.Key
		}
		if !known {
			o.member(m.Key, s.src[m.Value.Start:m.Value.End])
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, o.end(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// revoked is the list of before with what this run adds and takes away. A version that the index has is named with the
// digest of its manifest.
func (s *signing) revoked(list []trust.Revocation) ([]trust.Revocation, error) {
	list = append([]trust.Revocation{}, list...)
	for _, r := range s.o.Restore {
		n := len(list)
		list = slices.DeleteFunc(list, func(x trust.Revocation) bool { return x.ID == r.ID && x.Version == r.Version })
		if len(list) == n {
			return nil, fmt.Errorf("version %d of %q is not revoked", r.Version, r.ID)
		}
	}
	ix, _, err := manifest.ParseIndex(s.src, true)
	if err != nil {
		return nil, err
	}
	for _, r := range s.o.Revoke {
		if err := manifest.ValidID(r.ID); err != nil {
			return nil, err
		}
		for _, e := range ix.Entries {
			if pin, ok := e.Pin(manifestName); ok && e.ID == r.ID && int64(e.Version) == r.Version {
				r.Manifest = pin.SHA256
			}
		}
		list = slices.DeleteFunc(list, func(x trust.Revocation) bool { return x.ID == r.ID && x.Version == r.Version })
		list = append(list, r)
	}
	return list, nil
}

// blocks is the file of signatures: those over these bytes, then those of the index before, for whoever still has it.
func (s *signing) blocks(doc []byte, head *trust.Head) ([]byte, error) {
	about := fmt.Sprintf("index:%d.%d\tsha256:%s", head.KeysVersion, head.Seq, digestOf(doc))
	var out []byte
	old, comments := splitBlocks(s.old)
	for _, k := range s.o.Keys {
		b, err := k.sign(doc, about, s.o.Now)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	last := ""
	for i, b := range old {
		m := commentForm.FindStringSubmatch(comments[i])
		switch {
		case m == nil:
			continue // minisign's own block says nothing of what it is over
		case last == "" && (!s.o.Cosign || m[3] != digestOf(doc)):
			last = m[3]
		}
		if (m[3] == last || m[3] == digestOf(doc)) && len(out)+len(b) <= trust.MaxSignatureBytes {
			out = append(out, b...)
		}
	}
	return out, nil
}
