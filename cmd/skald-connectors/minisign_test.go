package main

import (
	"bytes"
	"testing"

	"aead.dev/minisign"
)

// minisigned signs data with a key file without a password, as the minisign program does.
func minisigned(t *testing.T, keyFile string, data []byte) []byte {
	t.Helper()
	var key minisign.PrivateKey
	if err := key.UnmarshalText(readFile(t, keyFile)); err != nil {
		t.Fatal(err)
	}
	r := minisign.NewReader(bytes.NewReader(data))
	if _, err := new(bytes.Buffer).ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return r.Sign(key)
}
