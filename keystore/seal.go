package keystore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxVaultFile holds maxHandles values of maxValue bytes in base64.
	maxVaultFile = 16 << 20
	// workFactor is scrypt's cost, 2^18: about one second, as age has it.
	workFactor = 18
	// maxWorkFactor bounds what a file that is not ours may cost: four seconds.
	maxWorkFactor = 20
	// maxKeyText is more than an age identity (74 bytes) or a wrapped one.
	maxKeyText = 4096
)

// key is the one key that opens every vault.
type key struct{ id *age.X25519Identity }

func newKey() (*key, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return &key{id}, nil
}

// parseKey drops the cause: it could quote the key.
func parseKey(text string) (*key, error) {
	id, err := age.ParseX25519Identity(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("it is not a vault key")
	}
	return &key{id}, nil
}

func (k *key) recipient() string { return k.id.Recipient().String() }
func (k *key) text() string      { return k.id.String() }

// Format keeps the key out of every print.
func (k *key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

func (k *key) seal(plain []byte) ([]byte, error) { return encrypt(plain, k.id.Recipient()) }

// open tells damage by Kind Damaged; the key has been checked before, so a key
// that does not fit is damage, or a vault of another store.
func (k *key) open(sealed []byte) ([]byte, error) {
	plain, err := decrypt(sealed, k.id)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return nil, errors.New("the vault key does not fit it")
	}
	if err != nil {
		return nil, err
	}
	return plain, nil
}

// wrap seals the key under a passphrase.
func (k *key) wrap(passphrase Secret, work int) ([]byte, error) {
	r, err := age.NewScryptRecipient(norm.NFC.String(passphrase.Reveal()))
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(work)
	return encrypt([]byte(k.text()), r)
}

// errWrongPassphrase and errTooCostly are told apart from damage.
var (
	errWrongPassphrase = errors.New("the passphrase does not open it")
	errTooCostly       = fmt.Errorf("more than 2^%d", maxWorkFactor)
)

// unwrap opens a wrapped key. The form of the passphrase is NFC, so that an
// accent typed on another keyboard is the same passphrase.
func unwrap(wrapped []byte, passphrase Secret) (*key, error) {
	id, err := age.NewScryptIdentity(norm.NFC.String(passphrase.Reveal()))
	if err != nil {
		return nil, errWrongPassphrase
	}
	id.SetMaxWorkFactor(maxWorkFactor)
	plain, err := decrypt(wrapped, id)
	switch {
	case errors.Is(err, age.ErrIncorrectIdentity):
		return nil, errWrongPassphrase
	case err != nil && strings.Contains(err.Error(), "work factor too large"): // age has no type for it
		return nil, errTooCostly
	case err != nil:
		return nil, err
	}
	return parseKey(string(plain))
}

func encrypt(plain []byte, to age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decrypt(sealed []byte, id age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxVaultFile)) // sealed itself was read under that limit
}
