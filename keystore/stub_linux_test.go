package keystore

import (
	"errors"

	"github.com/godbus/dbus/v5"
)

// startStub offers a Secret Service of its own on the session bus: "errs"
// answers every call with an error, "prompts" has a locked keyring and a prompt that is never completed.
func startStub(kind string) (stop func(), err error) {
	if kind == "" {
		return func() {}, nil
	}
	conn, err := sessionBus()
	if err != nil {
		return nil, err
	}
	if kind == "prompts" {
		stub := stubService{}
		const login = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
		err = errors.Join(
			conn.Export(stub, secretsPath, "org.freedesktop.Secret.Service"),
			conn.Export(stubProperties{"Collections": []dbus.ObjectPath{login}}, secretsPath, "org.freedesktop.DBus.Properties"),
			conn.Export(stubProperties{"Locked": true}, login, "org.freedesktop.DBus.Properties"),
			conn.Export(stub, "/prompt", "org.freedesktop.Secret.Prompt"))
	}
	if err == nil {
		_, err = conn.RequestName(secretsName, dbus.NameFlagDoNotQueue)
	}
	return func() { conn.Close() }, err
}

type stubProperties map[string]any

func (p stubProperties) Get(_, name string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant(p[name]), nil
}

type stubService struct{}

func (stubService) Unlock(_ []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	return nil, "/prompt", nil
}

func (stubService) Prompt(string) *dbus.Error { return nil }
