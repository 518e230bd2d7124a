// Package activate decides that a connector may run for this user: it takes a
// checked bundle through form, verify, probe and the key store to an
// activation record, and it owns that record.
//
// Its law: the record is the commit. It is written last, by one rename, and
// only after verify has passed or the person said so; until then nothing that
// an earlier record names has changed, and afterwards everything that the new
// record names is on disk. Folders, vault generations and tool definitions
// that no record names are rubbish, swept by the next command that holds the
// locks.
//
// The package never writes a secret value anywhere but into the key store,
// never starts a process but through package sandbox, and never talks to a
// person but through the Person it was given.
package activate
