package keystore

import "io"

// Redactor replaces secret values in output.
type Redactor struct{}

// NewRedactor prepares the search for the secret ones of hs.
func NewRedactor(hs []Handle) *Redactor { return &Redactor{} }

// Bytes gives b with every secret value replaced; b itself when there is none.
func (r *Redactor) Bytes(b []byte) []byte { return b }

// String is Bytes for strings.
func (r *Redactor) String(s string) string { return s }

// Find names the handles whose values are in b, sorted.
func (r *Redactor) Find(b []byte) []string { return nil }

// Writer replaces secret values in what is written through it to w.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return nil }
