package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"skald-connectors/internal/atomicfile"
)

const (
	stateFormat = 1
	// stateLimit bounds HOME/trust/<origin>.json: a keys document and the longest list of revoked versions.
	stateLimit = 8 << 20
)

// A State is what is remembered of one signed origin, in DIR/<name>.json, which this file owns. Members that this
// program does not know are kept when it is written again.
type State struct {
	Format   int       `json:"format"`
	Location string    `json:"location"`
	Pinned   []string  `json:"pinned,omitempty"` // the user's keys that the chain of keys began with
	Needed   int       `json:"pinned_threshold,omitempty"`
	KeysDoc  string    `json:"keys,omitempty"` // the newest keys document that was believed, verbatim
	Floor    *Floor    `json:"floor,omitempty"`
	Newest   time.Time `json:"newest_issued,omitzero"` // the newest date of issue that was ever verified: no clock is believed below it

	rest     map[string]json.RawMessage
	forgives bool
}

// Forgive lets dates that have run out pass. It is for a bundle file that a person carried to a machine without a
// network, when they say so; signatures, numbers and forks are judged as ever. It is not remembered.
func (s *State) Forgive() { s.forgives = true }

// Forgiven tells whether the last index counts only because Forgive was called.
func (s *State) Forgiven(clock time.Time) bool {
	strict := *s
	strict.forgives = false
	return s.forgives && strict.Current(clock) != nil
}

// A Floor is the last index that was believed; nothing older is believed after it.
type Floor struct {
	KeysVersion int64        `json:"keys_version"`
	Seq         int64        `json:"seq"`
	Digest      string       `json:"sha256"`
	Size        int64        `json:"size"`
	Issued      time.Time    `json:"issued"`
	Expires     time.Time    `json:"expires"`
	Signers     []string     `json:"signers"` // key numbers, 16 hex digits each
	Revoked     []Revocation `json:"revoked,omitempty"`
}

// DamagedError says that a state file is there and cannot be used. It is never taken for an absent one.
type DamagedError struct {
	Path string
	Err  error
}

// Newer tells that the file is of a newer version of the program, and whole as far as this one knows.
func (e *DamagedError) Newer() bool { return errors.Is(e.Err, errNewer) }

var errNewer = fmt.Errorf("it has a format after %d, which is all that this program knows: it was written by a newer version", stateFormat)

func (e *DamagedError) Error() string {
	return fmt.Sprintf("reading what is known of a signed marketplace: %s: %v", filepath.Base(e.Path), e.Err)
}

// Unwrap gives the reason.
func (e *DamagedError) Unwrap() error { return e.Err }

func statePath(dir, name string) string { return filepath.Join(dir, name+".json") }

// Load reads the state of an origin, which is at location; nil when there is none. One of another location is an error too: names
// of files are short, so that one on the same host could be made to have the name of this one. The error is a *DamagedError.
func Load(dir, name, location string) (*State, error) {
	path := statePath(dir, name)
	data, err := atomicfile.Read(path, stateLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s *State
	if err == nil {
		s, err = parseState(data)
	}
	if err == nil && s.Location != location {
		err = fmt.Errorf("it is that of %s, and not of %s", s.Location, location)
	}
	if err != nil {
		return nil, &DamagedError{path, err}
	}
	return s, nil
}

func parseState(data []byte) (*State, error) {
	s := &State{}
	var head struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(data, &head) == nil && head.Format > stateFormat { // whatever else has become of it
		return nil, errNewer
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, errors.New("it is not what this program writes")
	}
	if err := json.Unmarshal(data, &s.rest); err != nil {
		return nil, err
	}
	switch {
	case s.Format != stateFormat || s.Location == "":
		return nil, errors.New("it is not what this program writes")
	case s.KeysDoc == "" && len(s.Pinned) == 0:
		return nil, errors.New("it names no keys")
	case s.Floor != nil && (!isDigest(s.Floor.Digest) || s.Floor.Size <= 0):
		return nil, errors.New("it names no index")
	}
	_, err := s.Keys()
	return s, err
}

// Save writes the state, whole or not at all, flushed to the disk before it counts.
func (s *State) Save(dir, name string) error {
	s.Format = stateFormat
	known, err := json.Marshal(s)
	if err != nil {
		return err
	}
	all := maps.Clone(s.rest)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, gone := range []string{"pinned", "pinned_threshold", "keys", "floor", "newest_issued"} {
		delete(all, gone)
	}
	if err := json.Unmarshal(known, &all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = atomicfile.PrivateDir(dir)
	}
	if err == nil {
		err = atomicfile.Write(statePath(dir, name), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing what is known of a signed marketplace: %w", err)
	}
	return nil
}

// Keys are those that count now: the newest document, or what the user pinned.
func (s *State) Keys() (*Keys, error) {
	if s.KeysDoc != "" {
		return ParseKeys([]byte(s.KeysDoc))
	}
	keys := make([]Key, len(s.Pinned))
	for i, text := range s.Pinned {
		k, err := ParseKey(text)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	return Pin(keys, s.Needed)
}

// Begin gives the state to go on with: what is remembered, unless the user pinned other keys since, or the program has
// a newer keys document built in. nil: nothing vouches for this origin, and nothing ever did.
func Begin(stored *State, location string, pinned *Keys, built *Keys) *State {
	s := stored
	if pinned != nil && (s == nil || !slices.Equal(s.Pinned, texts(pinned.Root)) || s.Needed != pinned.RootThreshold) {
		return &State{Location: location, Pinned: texts(pinned.Root), Needed: pinned.RootThreshold}
	}
	if built == nil || pinned != nil {
		return s
	}
	if s == nil {
		return &State{Location: location, KeysDoc: string(built.raw)}
	}
	if k, err := s.Keys(); err == nil && built.Version > k.Version {
		next := *s
		next.KeysDoc = string(built.raw)
		return &next
	}
	return s
}

// Adopt notes keys that were judged by Keys.Next.
func (s *State) Adopt(k *Keys) { s.KeysDoc = string(k.raw) }

// now is the time that dates are held against: a clock that was set back is not believed.
func (s *State) now(clock time.Time) time.Time {
	if s.Newest.After(clock) {
		return s.Newest
	}
	return clock
}

// Current says whether the last index and the keys are still good at this time: nil, or an *Error of kind Freeze.
func (s *State) Current(clock time.Time) error {
	k, err := s.Keys()
	if err != nil {
		return err
	}
	now := s.now(clock)
	if s.forgives {
		return nil
	}
	if s.Floor != nil && !now.Before(s.Floor.Expires) {
		return refuse(Freeze, "number %d of %s was good until %s, and it is %s", s.Floor.Seq, day(s.Floor.Issued), day(s.Floor.Expires), day(now))
	}
	return k.current(now)
}

func (k *Keys) current(now time.Time) error {
	if k.Version > 0 && !now.Before(k.Expires) {
		return refuse(Freeze, "its keys, version %d, were good until %s, and it is %s", k.Version, day(k.Expires), day(now))
	}
	return nil
}

// Admit judges an index whose signatures were judged by Signers, and raises the floor. digest and size are those of its
// bytes. The caller saves the state; on an error it is unchanged.
func (s *State) Admit(h *Head, digest string, size int64, by []Key, clock time.Time) error {
	k, err := s.Keys()
	if err != nil {
		return err
	}
	if h.KeysVersion != k.Version {
		return refuse(Signature, "it wants keys version %d, and version %d is the newest that can be believed", h.KeysVersion, k.Version)
	}
	if f := s.Floor; f != nil {
		switch {
		case h.KeysVersion < f.KeysVersion || h.KeysVersion == f.KeysVersion && h.Seq < f.Seq:
			return refuse(Rollback, "it is number %d of %s (keys version %d), and number %d of %s (keys version %d) was seen before",
				h.Seq, day(h.Issued), h.KeysVersion, f.Seq, day(f.Issued), f.KeysVersion)
		case h.KeysVersion == f.KeysVersion && h.Seq == f.Seq && digest != f.Digest:
			return refuse(Fork, "there are two different ones with number %d: sha256 %s of %s, and %s of %s seen before",
				h.Seq, digest[:12], day(h.Issued), f.Digest[:12], day(f.Issued))
		}
	}
	now := s.now(clock)
	switch {
	case h.Issued.After(now.Add(aheadMost)):
		return refuse(Freeze, "number %d was issued %s, and it is %s", h.Seq, day(h.Issued), day(now))
	case h.Expires.Sub(h.Issued) > lifeMost || !h.Expires.After(h.Issued):
		return refuse(Freeze, "number %d is good from %s until %s; it has to be good for at most 92 days", h.Seq, day(h.Issued), day(h.Expires))
	case s.forgives:
	case !now.Before(h.Expires):
		return refuse(Freeze, "number %d of %s was good until %s, and it is %s", h.Seq, day(h.Issued), day(h.Expires), day(now))
	}
	if err := k.current(now); err != nil && !s.forgives {
		return err
	}
	s.Floor = &Floor{KeysVersion: h.KeysVersion, Seq: h.Seq, Digest: digest, Size: size, Issued: h.Issued, Expires: h.Expires, Revoked: h.Revoked}
	for _, one := range by {
		s.Floor.Signers = append(s.Floor.Signers, one.ID())
	}
	if h.Issued.After(s.Newest) {
		s.Newest = h.Issued
	}
	return nil
}
