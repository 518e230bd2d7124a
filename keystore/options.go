package keystore

import (
	"context"
	"time"
)

// Handle is one named value of one activation (launcher.md section 7).
type Handle struct {
	// Name is at most 128 bytes of letters, digits, "_", "." and "-", and
	// starts with a letter or "_".
	Name string
	// Value is 1 byte to 64 KiB without NUL. Line ends are kept.
	Value Secret
	// Secret says that the value must not be seen; the Redactor looks for
	// these only.
	Secret bool
	// ExpiresAt is when the value stops working; zero means unknown or never.
	ExpiresAt time.Time
}

// Backend is where the key of the vaults is kept.
type Backend string

// The places for the vault key.
const (
	BackendKeychain   Backend = "keychain"   // an item in the operating system's keychain
	BackendPassphrase Backend = "passphrase" // wrapped with scrypt under a passphrase
	BackendKeyfile    Backend = "keyfile"    // in a file that only the owner can read
)

// PassphraseAsk says what a passphrase is asked for.
type PassphraseAsk struct {
	New     bool   // a new passphrase is being set: ask twice
	Attempt int    // 1 for the first question
	Problem string // why the last answer did not do, in plain words; empty at first
}

// Keychain is the part of a keychain that is used: one item, three methods.
// Get and Delete of an item that is not there return an error that is
// keyring.ErrNotFound of github.com/zalando/go-keyring.
type Keychain interface {
	Get(service, user string) (string, error)
	Set(service, user, value string) error
	Delete(service, user string) error
}

// Options are everything that a Store takes from its surroundings.
type Options struct {
	// Dir is the folder of the vaults, HOME/keystore. It is made, 0700, when
	// the first value is stored.
	Dir string
	// Want is the backend that the user named; empty means the recorded one, or
	// the keychain where none is recorded. Naming another than the recorded
	// one is an error, never a switch.
	Want Backend
	// KeyFile is the absolute path of a new key file; empty means "vault.key"
	// in Dir. An existing file is adopted. The path is recorded.
	KeyFile string
	// Keychain replaces the operating system's; nil means that one.
	Keychain Keychain
	// Interactive says that a person is there: a keychain may show its own
	// unlock prompt and is given 60 s instead of 5 s, and a wrong passphrase
	// is asked for again.
	Interactive bool
	// Passphrase asks for the passphrase. Nil means that nobody can answer.
	Passphrase func(context.Context, PassphraseAsk) (Secret, error)
	// Consent is asked once, when nothing is recorded and the keychain cannot
	// be used for the reason given. It returns one of the options; an empty
	// Backend means no. Nil means no.
	Consent func(ctx context.Context, cause error, options []Backend) (Backend, error)
	// Notice shows one plain line while something is waited for. May be nil.
	Notice func(string)
	// Work is scrypt's cost of a new passphrase, as a power of two; 0 means 18, as age
	// has it. Less is for tests.
	Work int
	// Now is the clock; nil leaves times out of what is recorded.
	Now func() time.Time
}

// Description says where the vault key is, without touching it.
type Description struct {
	Backend Backend // empty when nothing is recorded yet
	Where   string  // in words, fit for a line of output; empty with Backend
	Vaults  int     // number of vault files
}
