package keystore

import (
	"golang.org/x/sys/unix"
)

// The key of a passphrase store, opened by unlock, is kept in the kernel's keyring
// of the user (keyrings(7)): in memory that is never swapped to a file of ours, for
// the processes of this user only, until the machine ends or the user's last
// process does. The sandbox refuses connectors the calls that reach it. What is
// found there is used only when it is the recorded key.

// loginKind and loginPrefix name the item; the rest of the name is the public half.
const (
	loginKind   = "user"
	loginPrefix = "skald-connectors:"
	// loginPerm lets whoever possesses the key and the processes of its user see,
	// read, replace and find it, and nobody else do anything.
	loginPerm = 0x3f1f0000
)

// keepLogin puts the key there.
func keepLogin(k *key) error {
	id, err := unix.AddKey(loginKind, loginPrefix+k.recipient(), []byte(k.text()), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return err
	}
	if err := unix.KeyctlSetperm(id, loginPerm); err != nil {
		dropLogin(k.recipient())
		return err
	}
	return nil
}

// keptLogin gives the key with that public half, or nil.
func keptLogin(recipient string) *key {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, loginKind, loginPrefix+recipient, 0)
	if err != nil {
		return nil
	}
	buf := make([]byte, maxKeyText)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
	if err != nil || n > len(buf) {
		return nil
	}
	k, err := parseKey(string(buf[:n]))
	if err != nil || k.recipient() != recipient {
		return nil
	}
	return k
}

// dropLogin takes it out, and tells whether it was there.
func dropLogin(recipient string) bool {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, loginKind, loginPrefix+recipient, 0)
	if err != nil {
		return false
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	return err == nil
}
