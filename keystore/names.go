package keystore

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxValue is the format's cap on a value (format.md section 4); it also
	// stays under what an environment variable can carry.
	maxValue = 64 << 10
	// maxHandles keeps a vault readable in one go: at most 128 × 64 KiB.
	maxHandles = 128
	// maxHandleName leaves room for names longer than the 64 bytes of env[].
	maxHandleName = 128
	// maxActivation is the length of an id (format.md section 2).
	maxActivation = 64
)

// checkActivation accepts what can be an activation name and therefore part of a file
// name. Package manifest has the full rule; this is what keeps files apart
// and inside the folder.
func checkActivation(name string) error {
	ok := name != "" && len(name) <= maxActivation && !strings.Contains(name, "..")
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = alnum || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return &Error{Kind: Invalid, Op: "checking activation name", What: name}
	}
	return nil
}

// checkGeneration accepts 1 and up; 0 is a record without a vault.
func checkGeneration(name string, gen int64) error {
	if gen < 1 {
		return &Error{Kind: Invalid, Op: "checking generation", What: vaultID(name, gen)}
	}
	return nil
}

// checkHandles refuses what must not be stored. Values are not quoted.
func checkHandles(hs []Handle) error {
	if len(hs) > maxHandles {
		return &Error{Kind: Invalid, Op: "checking handles", Err: fmt.Errorf("%d handles, at most %d", len(hs), maxHandles)}
	}
	seen := make(map[string]bool, len(hs))
	for _, h := range hs {
		err := checkHandle(h)
		if err == nil && seen[h.Name] {
			err = errors.New("named twice")
		}
		if err != nil {
			return &Error{Kind: Invalid, Op: "checking handle", What: h.Name, Err: err}
		}
		seen[h.Name] = true
	}
	return nil
}

func checkHandle(h Handle) error {
	switch v := h.Value.Reveal(); {
	case !validHandleName(h.Name):
		return errors.New("name must be letters, digits, \"_\", \".\" and \"-\", and start with a letter or \"_\"")
	case v == "":
		return errors.New("value is empty")
	case len(v) > maxValue:
		return fmt.Errorf("value has %d bytes, at most %d", len(v), maxValue)
	case strings.IndexByte(v, 0) >= 0:
		return errors.New("value has a NUL byte")
	}
	return nil
}

func validHandleName(name string) bool {
	if name == "" || len(name) > maxHandleName {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
		inner := c >= '0' && c <= '9' || c == '.' || c == '-'
		if !letter && (i == 0 || !inner) {
			return false
		}
	}
	return true
}
