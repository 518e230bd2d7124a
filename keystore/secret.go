package keystore

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// redacted is what every printer shows instead of a value.
const redacted = "[redacted]"

// Secret holds one value that must not be printed by accident. It shows
// "[redacted]" under every fmt verb, in slog, JSON and text encodings. The
// value sits behind a pointer: fmt cannot call methods of values in unexported
// fields and would otherwise print the bytes. The zero Secret is empty.
type Secret struct {
	_ [0]func() // not comparable with ==, which would compare pointers; see Equal
	v *string
}

// NewSecret wraps value. An empty value gives the zero Secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{v: &value}
}

// Reveal gives the value itself. It is the only way to it: call it where the
// value is delivered, nowhere else.
func (s Secret) Reveal() string {
	if s.v == nil {
		return ""
	}
	return *s.v
}

// Len is the length of the value in bytes.
func (s Secret) Len() int { return len(s.Reveal()) }

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return s.Len() == 0 }

// Equal compares two values in a time that depends on their lengths only.
func (s Secret) Equal(t Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(t.Reveal())) == 1
}

// Format writes "[redacted]", whatever the verb and flags are.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// String gives "[redacted]".
func (s Secret) String() string { return redacted }

// LogValue gives "[redacted]" to slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText gives "[redacted]"; JSON, XML, YAML, gob and flag printers use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON gives the JSON string "[redacted]".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
