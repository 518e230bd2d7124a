// Package trust decides whether the index of a signed marketplace may be believed. It implements section 2 of the
// security page: minisign signatures, one keys document with a threshold for each role, and the rules of TUF against
// rollback, fork and freeze, for documents that somebody else fetched.
//
// The law of this package:
//   - A signature is over raw bytes and is judged before these bytes are parsed.
//   - A threshold counts keys, not signatures. A key has one role.
//   - New keys count only when the old ones and the new ones have both signed them.
//   - What is remembered of an origin only grows: keys version, sequence number, the newest date that was ever signed.
//     A state file that cannot be read is an error, never a fresh start.
//   - It knows no force: nothing here can be told to look away.
//
// It never fetches anything and never reads a clock.
package trust

import (
	"fmt"
	"time"
)

// Limits of what is read (security.md 2.3). Sizes are bytes.
const (
	// MaxKeysBytes bounds a keys document; a real one has under a kibibyte.
	MaxKeysBytes = 64 << 10
	// MaxSignatureBytes bounds a file of signatures: some forty blocks.
	MaxSignatureBytes = 16 << 10
	// MaxRotations bounds the keys documents that are read in one go.
	MaxRotations = 64
	// lifeMost is the longest life of a signed index: what a frozen mirror can withhold is bounded by it.
	lifeMost = 92 * 24 * time.Hour
	// aheadMost forgives the clock of the publisher, or ours.
	aheadMost = 10 * time.Minute
	// keysMost bounds the keys of one role.
	keysMost = 16
	// numberMost is the greatest number of an index: the greatest integer that every JSON reader gives back unchanged.
	numberMost = 1<<53 - 1
	// revokedMost bounds the list of revoked versions.
	revokedMost = 10_000
)

// Kind is the code word of a refusal.
type Kind string

// The kinds of refusal.
const (
	Signature Kind = "signature" // missing, wrong, too few, or by keys that do not count
	Document  Kind = "document"  // signed, and still not what it has to be
	Rollback  Kind = "rollback"  // older than what was seen before
	Fork      Kind = "fork"      // the same number with other bytes
	Freeze    Kind = "freeze"    // too old, or dated wrongly
)

// Error says why an index or a keys document is not believed. Nothing of it was kept.
type Error struct {
	Kind   Kind
	Origin string // the marketplace; filled in by whoever knows it
	Why    string
}

func (e *Error) Error() string {
	where := "the index"
	if e.Origin != "" {
		where += " of " + e.Origin
	}
	return fmt.Sprintf("%s is not trusted (%s): %s", where, e.Kind, e.Why)
}

func refuse(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Why: fmt.Sprintf(format, args...)}
}

// day is how dates are shown.
func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
