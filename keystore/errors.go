package keystore

import "strconv"

// Kind says what is wrong, for callers that branch on it.
type Kind string

// The kinds of errors.
const (
	NotFound        Kind = "not found"                       // no such vault
	NotChosen       Kind = "no key store chosen"             // nothing recorded, keychain unusable, no consent
	Locked          Kind = "locked"                          // the user can unlock it
	Unavailable     Kind = "unavailable"                     // no keychain here, or it answers with errors
	TimedOut        Kind = "timed out"                       // it does not answer
	WrongPassphrase Kind = "wrong passphrase"                //
	KeyMissing      Kind = "key missing"                     // recorded, but it is not there
	Damaged         Kind = "damaged"                         // bytes are not what was written
	Replaced        Kind = "not the one last written"        // swapped with another, or an older state of it
	TooCostly       Kind = "passphrase work factor too high" // hostile or foreign
	Newer           Kind = "written by a newer version"      //
	Unsafe          Kind = "unsafe"                          // others can reach it, wrong owner, or a symlink
	Unreadable      Kind = "unreadable"                      //
	Unwritable      Kind = "unwritable"                      // disk full, no permission
	Conflict        Kind = "conflict"                        // exists with other content, or another backend is recorded
	Invalid         Kind = "invalid"                         // a name or a value that cannot be kept
)

// Error is the error of every Store method, except for errors of the caller's
// own functions, which are passed through wrapped. Its text never holds a
// value.
type Error struct {
	Kind Kind
	Op   string // what was being done, e.g. "reading vault"
	What string // to which thing, e.g. "gmail.3"; may be empty
	Err  error  // the cause; may be nil
}

// Error says what was done to which thing and what was wrong with it.
func (e *Error) Error() string {
	text := e.Op
	if e.What != "" {
		text += " " + strconv.Quote(e.What)
	}
	text += ": " + string(e.Kind)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause, so that errors.Is and errors.As see it.
func (e *Error) Unwrap() error { return e.Err }
