// Package keystore keeps secrets and keeps them out of sight.
//
// Its one job: the named secret values (handles) of an activation live in an
// age-encrypted vault file, one per activation and generation; the key of all
// vaults lives in the operating system's keychain, or behind a passphrase, or in a key
// file. DESIGN decisions 1, 6 and 8 and launcher.md sections 3 and 7 are its
// law.
//
// It never writes a value in plain text, never changes the recorded place of
// the key by itself, never replaces a vault or a key that it cannot open, never waits
// for a keychain without an end, and never touches any of them before a
// value is needed. It never reads the environment, the clock or a terminal by
// itself: whoever opens a Store hands those in.
package keystore
