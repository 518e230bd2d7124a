package trust

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// A Message is a document whose bytes have been taken in, ready to be held against signatures. It keeps a hash only
// (BLAKE2b-512, what minisign signs), so its size does not matter.
type Message struct{ r *minisign.Reader }

// NewMessage takes in what is read through it: all of it has to be, before signatures are held against it.
func NewMessage(r io.Reader) *Message { return &Message{minisign.NewReader(r)} }

// Read implements io.Reader. Errors are those of the reader behind it.
func (m *Message) Read(p []byte) (int, error) { return m.r.Read(p) }

// ReadMessage takes in everything that r gives. The caller limits r. Errors are those of r.
func ReadMessage(r io.Reader) (*Message, error) {
	m := NewMessage(r)
	if _, err := io.Copy(io.Discard, m); err != nil {
		return nil, err
	}
	return m, nil
}

// message is ReadMessage for bytes.
func message(src []byte) *Message {
	m, err := ReadMessage(bytes.NewReader(src))
	if err != nil {
		panic(err) // memory does not fail
	}
	return m
}

// signers gives those of the keys that signed the message, each once. Blocks by others are passed over.
func (m *Message) signers(blocks [][]byte, keys []Key) []Key {
	var found []Key
	for _, k := range keys {
		for _, b := range blocks {
			if m.r.Verify(k.public, b) {
				found = append(found, k)
				break
			}
		}
	}
	return found
}

// splitSignatures cuts a file of signatures into blocks of four lines. Old signatures over the bare message (those of
// minisign -l) are refused: telling the two kinds apart by what the file says would let one stand for the other.
func splitSignatures(src []byte) ([][]byte, error) {
	if len(src) > MaxSignatureBytes {
		return nil, refuse(Signature, "the file of signatures has more than %d bytes", MaxSignatureBytes)
	}
	text := strings.TrimRight(strings.ReplaceAll(string(src), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, refuse(Signature, "the file of signatures is empty")
	}
	lines := strings.Split(text, "\n")
	if len(lines)%4 != 0 {
		return nil, refuse(Signature, "the file of signatures is not made of blocks of four lines")
	}
	var blocks [][]byte
	for i := 0; i < len(lines); i += 4 {
		block := []byte(strings.Join(lines[i:i+4], "\n") + "\n")
		var s minisign.Signature
		if err := s.UnmarshalText(block); err != nil {
			return nil, refuse(Signature, "block %d of the file of signatures: %s", i/4+1, strings.TrimPrefix(err.Error(), "minisign: "))
		}
		if s.Algorithm != minisign.HashEdDSA {
			return nil, refuse(Signature, "block %d of the file of signatures is of the old kind, over the bare file", i/4+1)
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// A Key is a minisign public key.
type Key struct{ public minisign.PublicKey }

// ParseKey reads a public key: the base64 text (RWQ…), or the two lines of a .pub file.
func ParseKey(text string) (Key, error) {
	var k Key
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if err := k.public.UnmarshalText([]byte(text)); err != nil {
		return Key{}, fmt.Errorf("reading public key %q: it is not a minisign public key", shorten(text))
	}
	return k, nil
}

// String is the key as text: RWQ….
func (k Key) String() string { return k.public.String() }

// ID is the key's number as minisign shows it, 16 hex digits. It is a hint: two keys can have the same one.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.public.ID()) }

// Tail is the last characters of the key's text, which a person compares.
func (k Key) Tail() string {
	s := strings.TrimRight(k.String(), "=")
	return s[len(s)-6:]
}

// bytes are the 32 that make the key; the number beside them is not part of it.
func (k Key) bytes() string {
	raw, err := base64.StdEncoding.DecodeString(k.String())
	if err != nil || len(raw) < 10 {
		return ""
	}
	return string(raw[10:])
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
