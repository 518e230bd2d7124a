package keystore

import "github.com/zalando/go-keyring"

// osKeychain is the keychain of the operating system. Where there is a cheap
// way to see that it is not there, or locked and nobody is present, ready says so before a
// call that would start a service or show a prompt.
type osKeychain struct{ interactive bool }

func (k osKeychain) Get(service, user string) (string, error) {
	if err := k.ready(); err != nil {
		return "", err
	}
	return keyring.Get(service, user)
}

func (k osKeychain) Set(service, user, value string) error {
	if err := k.ready(); err != nil {
		return err
	}
	return keyring.Set(service, user, value)
}

func (k osKeychain) Delete(service, user string) error {
	if err := k.ready(); err != nil {
		return err
	}
	return keyring.Delete(service, user)
}
