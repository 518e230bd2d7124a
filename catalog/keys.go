package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
)

const (
	// draftName is the keys document that is being signed; users never ask for it.
	draftName  = "keys.next.json"
	minisigExt = ".minisig"
	// keysLife is how long a keys document is good for when nobody says otherwise.
	keysLife = 365 * 24 * time.Hour
)

// KeysEdit is a change to who may sign. Zero values leave things as they are.
type KeysEdit struct {
	AddRoot, AddIndex, Drop       []trust.Key
	RootThreshold, IndexThreshold int
	Expires                       time.Time // zero: in a year
}

func (e KeysEdit) empty() bool {
	return len(e.AddRoot)+len(e.AddIndex)+len(e.Drop)+e.RootThreshold+e.IndexThreshold == 0 && e.Expires.IsZero()
}

// KeysState is what a tree says of its keys. Draft is the document that waits for signatures, nil when none does; Signed
// are the root keys that signed it, OldMissing and NewMissing how many of the present and of its own are still wanted.
type KeysState struct {
	Now, Draft             *trust.Keys
	Signed                 []string
	OldMissing, NewMissing int
	Published              bool // this run made the draft the present one
}

// EditKeys changes the keys of the tree at dir and signs the outcome with those root keys that are at hand. A change
// becomes a draft beside keys.json; as soon as the present root keys and its own have signed it, it takes their place,
// and is kept in the history. An empty edit only adds signatures.
func EditKeys(dir string, edit KeysEdit, with []SecretKey, now time.Time) (*KeysState, error) {
	t, err := openKeys(dir)
	if err == nil && !edit.empty() {
		err = t.change(edit, now)
	}
	if err == nil && len(with) > 0 {
		err = t.sign(with, now)
	}
	var s *KeysState
	if err == nil {
		s, err = t.settle(!edit.empty() || len(with) > 0)
	}
	if err != nil {
		return nil, fmt.Errorf("the keys of %q: %w", dir, err)
	}
	return s, nil
}

// keysTree is the keys documents of one tree.
type keysTree struct {
	dir             string
	now, draft      *trust.Keys // nil where there is none
	doc, signatures []byte      // of the draft
}

func openKeys(dir string) (*keysTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t := &keysTree{dir: dir}
	if t.now, _, _, err = readKeys(root, keysName); err != nil {
		return nil, err
	}
	if t.draft, t.doc, t.signatures, err = readKeys(root, draftName); err != nil {
		return nil, err
	}
	return t, nil
}

func readKeys(root *os.Root, name string) (k *trust.Keys, doc, signatures []byte, err error) {
	doc, err = readFile(root, name, trust.MaxKeysBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, nil
	}
	if err == nil {
		k, err = trust.ParseKeys(doc)
	}
	if err == nil {
		signatures, err = readFile(root, name+minisigExt, trust.MaxSignatureBytes)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return k, doc, signatures, nil
}

// change makes the next document, from the draft where there is one. What was signed so far is void.
func (t *keysTree) change(edit KeysEdit, now time.Time) error {
	next := trust.Keys{RootThreshold: 1, IndexThreshold: 1}
	switch {
	case t.draft != nil:
		next = *t.draft
	case t.now != nil:
		next = *t.now
	}
	next.Version = 1
	if t.now != nil {
		next.Version = t.now.Version + 1
	}
	for _, k := range edit.Drop {
		n := len(next.Root) + len(next.Index)
		gone := func(x trust.Key) bool { return x.String() == k.String() }
		next.Root = slices.DeleteFunc(slices.Clone(next.Root), gone)
		next.Index = slices.DeleteFunc(slices.Clone(next.Index), gone)
		if len(next.Root)+len(next.Index) == n {
			return fmt.Errorf("key %s is not among them", k.ID())
		}
	}
	next.Root = append(slices.Clone(next.Root), edit.AddRoot...)
	next.Index = append(slices.Clone(next.Index), edit.AddIndex...)
	if edit.RootThreshold > 0 {
		next.RootThreshold = edit.RootThreshold
	}
	if edit.IndexThreshold > 0 {
		next.IndexThreshold = edit.IndexThreshold
	}
	if next.Expires = edit.Expires.UTC().Truncate(time.Second); edit.Expires.IsZero() {
		next.Expires = now.Add(keysLife).UTC().Truncate(time.Second)
	}
	doc, err := trust.MarshalKeys(&next)
	if err != nil {
		return err
	}
	t.doc, t.signatures = doc, nil
	t.draft, err = trust.ParseKeys(doc)
	return err
}

// sign adds blocks of root keys, old or new.
func (t *keysTree) sign(with []SecretKey, now time.Time) error {
	if t.draft == nil {
		return errors.New("nothing waits for a signature")
	}
	for _, k := range with {
		if !t.isRoot(k.public) {
			return fmt.Errorf("key %s is no root key, neither of the present document nor of the new one", k.public.ID())
		}
		if signedBy(t.doc, t.signatures, k.public) {
			continue
		}
		b, err := k.sign(t.doc, fmt.Sprintf("keys:%d", t.draft.Version), now)
		if err != nil {
			return err
		}
		t.signatures = append(t.signatures, b...)
	}
	return nil
}

func (t *keysTree) isRoot(k trust.Key) bool {
	all := t.draft.Root
	if t.now != nil {
		all = slices.Concat(all, t.now.Root)
	}
	return slices.ContainsFunc(all, func(x trust.Key) bool { return x.String() == k.String() })
}

func signedBy(doc, signatures []byte, k trust.Key) bool {
	m, err := trust.ReadMessage(bytes.NewReader(doc))
	if err != nil {
		return false
	}
	one, err := trust.Pin([]trust.Key{k}, 1)
	if err != nil {
		return false
	}
	_, err = one.Signers(m, signatures)
	return err == nil
}

// settle writes the draft, or makes it the present document when it has all its signatures.
func (t *keysTree) settle(changed bool) (*KeysState, error) {
	s := &KeysState{Now: t.now, Draft: t.draft}
	if t.draft == nil {
		return s, nil
	}
	count := func(k *trust.Keys, note bool) int {
		n := 0
		for _, one := range k.Root {
			if signedBy(t.doc, t.signatures, one) {
				n++
				if note && !slices.Contains(s.Signed, one.ID()) {
					s.Signed = append(s.Signed, one.ID())
				}
			}
		}
		return max(k.RootThreshold-n, 0)
	}
	s.NewMissing = count(t.draft, true)
	if t.now != nil {
		s.OldMissing = count(t.now, true)
	}
	if !changed {
		return s, nil
	}
	if s.NewMissing+s.OldMissing > 0 {
		return s, t.write(draftName)
	}
	if err := t.publish(); err != nil {
		return nil, err
	}
	s.Now, s.Draft, s.Published = t.draft, nil, true
	return s, nil
}

// publish judges the document as users will, and writes it to the history and as the newest.
func (t *keysTree) publish() error {
	before := t.now
	if before == nil { // the first one: whoever pins its roots asks for no more than these
		var err error
		if before, err = trust.Pin(t.draft.Root, t.draft.RootThreshold); err != nil {
			return err
		}
	}
	if _, err := before.Next(t.doc, t.signatures); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(t.dir, "keys"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{fmt.Sprintf("keys/%d.json", t.draft.Version), keysName} {
		if err := t.write(name); err != nil {
			return err
		}
	}
	for _, name := range []string{draftName + minisigExt, draftName} {
		if err := os.Remove(filepath.Join(t.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// write writes the document and its signatures: signatures first, so that no document stands there without them.
func (t *keysTree) write(name string) error {
	path := filepath.Join(t.dir, filepath.FromSlash(name))
	if len(t.signatures) == 0 {
		if err := os.Remove(path + minisigExt); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err := atomicfile.Write(path+minisigExt, t.signatures, 0o644); err != nil {
		return err
	}
	return atomicfile.Write(path, t.doc, 0o644)
}
