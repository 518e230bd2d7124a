package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"aead.dev/minisign"

	"skald-connectors/fetch/trust"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
)

// secretKeyLimit bounds a file with a secret key; minisign writes some 350 bytes.
const secretKeyLimit = 4 << 10

// A SecretKey signs. It is a minisign key, in the format of that program.
type SecretKey struct {
	private minisign.PrivateKey
	public  trust.Key
}

// Public is the key that others verify with.
func (k SecretKey) Public() trust.Key { return k.public }

// An AskPassword gives the password of a key file.
type AskPassword func(ctx context.Context, file string) (keystore.Secret, error)

// NewKey makes a key pair: file holds the secret key, encrypted unless ask is nil, and file.pub the public one, as
// `minisign -G` writes them. It overwrites nothing, and asks for no password where one of them is there.
func NewKey(ctx context.Context, file string, ask AskPassword) (SecretKey, error) {
	for _, path := range []string{file, file + ".pub"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return SecretKey{}, fmt.Errorf("making the key %q: %q is there already", file, path)
		}
	}
	var password keystore.Secret
	if ask != nil {
		var err error
		if password, err = ask(ctx, file); err != nil {
			return SecretKey{}, err
		}
		if password.IsZero() {
			return SecretKey{}, fmt.Errorf("making the key %q: its password is empty", file)
		}
	}
	_, private, err := minisign.GenerateKey(nil)
	if err != nil {
		return SecretKey{}, err
	}
	k, err := newSecretKey(private)
	if err != nil {
		return SecretKey{}, err
	}
	secret, err := private.MarshalText()
	if !password.IsZero() {
		secret, err = minisign.EncryptKey(password.Reveal(), private)
	}
	if err != nil {
		return SecretKey{}, err
	}
	secret = append(bytes.TrimRight(secret, "\n"), '\n')
	public := fmt.Sprintf("untrusted comment: minisign public key %s\n%s\n", k.public.ID(), k.public)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return SecretKey{}, err
	}
	if err := atomicfile.WriteIf(file, nil, secret, 0o600); err != nil {
		return SecretKey{}, fmt.Errorf("making the key %q: %w", file, err)
	}
	return k, atomicfile.WriteIf(file+".pub", nil, []byte(public), 0o644)
}

func newSecretKey(private minisign.PrivateKey) (SecretKey, error) {
	public, ok := private.Public().(minisign.PublicKey)
	if !ok {
		return SecretKey{}, errors.New("the key has no public half")
	}
	k, err := trust.ParseKey(public.String())
	return SecretKey{private, k}, err
}

// ReadKey reads a secret key from its file and asks for its password where it has one. What is in the file never shows
// in an error.
func ReadKey(ctx context.Context, file string, ask AskPassword) (SecretKey, error) {
	src, err := readSecretFile(file)
	if err != nil {
		return SecretKey{}, fmt.Errorf("reading the key %q: %w", file, err)
	}
	var private minisign.PrivateKey
	if !minisign.IsEncrypted(src) {
		if private.UnmarshalText(src) != nil {
			return SecretKey{}, fmt.Errorf("reading the key %q: it is not a minisign secret key", file)
		}
		return newSecretKey(private)
	}
	password, err := ask(ctx, file)
	if err != nil {
		return SecretKey{}, err
	}
	if private, err = minisign.DecryptKey(password.Reveal(), src); err != nil {
		return SecretKey{}, fmt.Errorf("reading the key %q: the password is not the right one, or the file is damaged", file)
	}
	return newSecretKey(private)
}

func readSecretFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, plain(err)
	case !info.Mode().IsRegular() || info.Size() > secretKeyLimit:
		return nil, errors.New("it is not a key file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, errors.New("others can read it (chmod 600)")
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readFile(root, filepath.Base(file), secretKeyLimit)
}

// sign makes a block over doc. about is signed with it and shown by minisign.
func (k SecretKey) sign(doc []byte, about string, now time.Time) ([]byte, error) {
	r := minisign.NewReader(bytes.NewReader(doc))
	if _, err := new(bytes.Buffer).ReadFrom(r); err != nil {
		return nil, err
	}
	comment := fmt.Sprintf("timestamp:%d\t%s\thashed", now.Unix(), about)
	return r.SignWithComments(k.private, comment, "signature from key "+k.public.ID()), nil
}

// splitBlocks cuts a file of signatures into its blocks of four lines, each with what it says under its signature. What
// is no block is left out: it helps nobody to verify.
func splitBlocks(src []byte) (blocks [][]byte, comments []string) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(string(src), "\r\n", "\n"), "\n"), "\n")
	for i := 0; i+4 <= len(lines); i += 4 {
		block := []byte(strings.Join(lines[i:i+4], "\n") + "\n")
		var s minisign.Signature
		if s.UnmarshalText(block) == nil {
			blocks, comments = append(blocks, block), append(comments, s.TrustedComment)
		}
	}
	return blocks, comments
}
