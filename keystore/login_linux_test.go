package keystore

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// needUserKeyring skips where the kernel's keyring of the user is refused, as in
// some containers.
func needUserKeyring(t *testing.T) {
	t.Helper()
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); err != nil {
		t.Skipf("this platform refuses the keyring of the user: %v", err)
	}
}

// TestLogin: what unlock opened is open for a store that nobody can give the
// passphrase to, until it is forgotten.
func TestLogin(t *testing.T) {
	needUserKeyring(t)
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendPassphrase, Passphrase: phrase("correct horse battery")}
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("TOKEN", "v")))
	nobody := o
	nobody.Passphrase = nil
	wantKind(t, open(t, nobody).Unlock(t.Context()), Locked)

	s := open(t, o)
	t.Cleanup(func() { _, _ = s.LockLogin() })
	if kept, err := s.UnlockLogin(t.Context()); err != nil || !kept {
		t.Fatal(kept, err)
	}
	must(t, open(t, nobody).Unlock(t.Context()))
	if was, err := open(t, nobody).LockLogin(); err != nil || !was {
		t.Error(was, err)
	}
	wantKind(t, open(t, nobody).Unlock(t.Context()), Locked)
	if was, err := s.LockLogin(); err != nil || was {
		t.Error("forgotten twice", err)
	}
}

// TestLoginOfAnother: what somebody else put in its place is not used.
func TestLoginOfAnother(t *testing.T) {
	needUserKeyring(t)
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendPassphrase, Passphrase: phrase("correct horse battery")}
	s := open(t, o)
	must(t, s.Put(t.Context(), "gmail", 1, handles("TOKEN", "v")))
	t.Cleanup(func() { _, _ = s.LockLogin() })
	st, err := s.loadState()
	must(t, err)
	other, err := newKey()
	must(t, err)
	for _, text := range []string{other.text(), "rubbish", string(make([]byte, 2*maxKeyText))} {
		_, err := unix.AddKey(loginKind, loginPrefix+st.recipient, []byte(text), unix.KEY_SPEC_USER_KEYRING)
		must(t, err)
		nobody := o
		nobody.Passphrase = nil
		wantKind(t, open(t, nobody).Unlock(t.Context()), Locked)
		must(t, open(t, o).Unlock(t.Context()))
	}
}
