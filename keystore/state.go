package keystore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"
)

// keystore.json records where the vault key is. It holds no secret but the
// wrapped key of a passphrase store, which the passphrase protects:
//
//	{"format":1,"backend":"keychain","recipient":"age1…","item":"vault-key-…","chosen_at":"…","counters":{"gmail.3":17}}
//
// passphrase: "wrapped_key" (base64) and "wrapped_sha256", by which damage is
// told from a wrong passphrase; keyfile: "key_file", relative to the folder,
// and "key_file_made" when the file is ours to delete. counters are the last
// counter of each vault, written after the vault itself. Members that are not known are kept.

const (
	stateFile   = "keystore.json"
	stateFormat = 1
	// maxState holds the counters of 10,000 activations.
	maxState = 1 << 20
)

type state struct {
	backend   Backend
	recipient string
	item      string // keychain: the user name of the item
	wrapped   []byte // passphrase
	keyFile   string // keyfile
	made      bool   // keyfile: we made it
	chosenAt  string
	counters  map[string]int64
	extra     fields
	make      func() error // keyfile: writes the new key; nil = it is there
}

// loadState reads keystore.json. It gives nil when nothing is recorded.
func (s *Store) loadState() (*state, error) {
	const op = "reading key store record"
	if err := s.checkDir(); err != nil {
		return nil, err
	}
	src, err := readPrivate(op, stateFile, s.path(stateFile), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := parseState(src)
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		return nil, &Error{Kind: Newer, Op: op, What: stateFile, Err: err}
	case err != nil:
		return nil, &Error{Kind: Damaged, Op: op, What: stateFile, Err: err}
	}
	return st, nil
}

func parseState(src []byte) (*state, error) {
	top, err := parseObject(src)
	if err != nil {
		return nil, errors.New("it is not one JSON object without repeated keys")
	}
	if err := checkFormat(top, stateFormat); err != nil {
		return nil, stateError("format", err)
	}
	st := &state{}
	var digest string
	all := []member{{"backend", &st.backend}, {"recipient", &st.recipient}}
	optional := []member{{"item", &st.item}, {"wrapped_key", &st.wrapped}, {"wrapped_sha256", &digest},
		{"key_file", &st.keyFile}, {"key_file_made", &st.made}, {"chosen_at", &st.chosenAt}, {"counters", &st.counters}}
	for _, m := range optional {
		if _, has := top[m.name]; has {
			all = append(all, m)
		}
	}
	for _, m := range all {
		if err := m.take(top); err != nil {
			return nil, stateError(m.name, err)
		}
	}
	if st.extra = top; hasTwin(top, "format", "backend", "recipient", "item", "wrapped_key", "wrapped_sha256",
		"key_file", "key_file_made", "chosen_at", "counters") {
		return nil, errors.New("it has a member whose name differs from a known one by case only")
	}
	if st.counters == nil {
		st.counters = map[string]int64{}
	}
	return st, st.check(digest)
}

func stateError(name string, err error) error {
	var newer *newerError
	if errors.As(err, &newer) {
		return err
	}
	return errors.New("its member " + name + " is missing or of another type")
}

// check holds each backend to the members that it needs.
func (st *state) check(digest string) error {
	switch {
	case st.backend == BackendKeychain && st.item == "":
		return stateError("item", nil)
	case st.backend == BackendKeyfile && st.keyFile == "":
		return stateError("key_file", nil)
	case st.backend == BackendPassphrase && (len(st.wrapped) == 0 || digest != sha256Hex(st.wrapped)):
		return errors.New("the wrapped key is not the one that was written")
	case st.backend != BackendKeychain && st.backend != BackendKeyfile && st.backend != BackendPassphrase:
		return errors.New("its backend is not known")
	}
	return nil
}

func (st *state) marshal() ([]byte, error) {
	top := withExtra(st.extra)
	top["format"], top["backend"], top["recipient"], top["counters"] = stateFormat, st.backend, st.recipient, st.counters
	if st.chosenAt != "" {
		top["chosen_at"] = st.chosenAt
	}
	switch st.backend {
	case BackendKeychain:
		top["item"] = st.item
	case BackendPassphrase:
		top["wrapped_key"], top["wrapped_sha256"] = st.wrapped, sha256Hex(st.wrapped)
	case BackendKeyfile:
		top["key_file"], top["key_file_made"] = st.keyFile, st.made
	}
	out, err := json.MarshalIndent(top, "", "  ")
	return append(out, '\n'), err
}

// saveState writes keystore.json; the store lock is held.
func (s *Store) saveState(st *state) error {
	out, err := st.marshal()
	if err == nil && len(out) > maxState {
		err = errors.New("too many vaults")
	}
	if err != nil {
		return &Error{Kind: Unwritable, Op: "writing key store record", What: stateFile, Err: err}
	}
	return writePrivate("writing key store record", stateFile, s.path(stateFile), out)
}

// keyPath is where the key file of st is.
func (s *Store) keyPath(st *state) string {
	if filepath.IsAbs(st.keyFile) {
		return st.keyFile
	}
	return s.path(st.keyFile)
}

func (s *Store) now() string {
	if s.o.Now == nil {
		return ""
	}
	return s.o.Now().UTC().Format(time.RFC3339)
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
