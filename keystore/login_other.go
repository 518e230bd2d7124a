//go:build !linux

package keystore

import "errors"

// There is no place here that ends with the login and is not a file; the keychain
// of the system is the better choice.
func keepLogin(*key) error { return errors.ErrUnsupported }

func keptLogin(string) *key { return nil }

func dropLogin(string) bool { return false }
