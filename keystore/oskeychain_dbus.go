//go:build (dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd

package keystore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
)

// The names of the Secret Service API, version 0.2, of freedesktop.org.
const (
	secretsName = "org.freedesktop.secrets"
	secretsPath = dbus.ObjectPath("/org/freedesktop/secrets")
	loginPath   = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	busOwner    = "org.freedesktop.DBus.NameHasOwner"
	busStart    = "org.freedesktop.DBus.StartServiceByName"
	readAlias   = "org.freedesktop.Secret.Service.ReadAlias"
	collections = "org.freedesktop.Secret.Service.Collections"
	lockedProp  = "org.freedesktop.Secret.Collection.Locked"
)

// ready looks for the session bus, the service on it and the collection that
// go-keyring uses. It never starts a bus: go-keyring's library would run
// dbus-launch where no address is known. A locked collection is an error only when nobody is here to
// answer its prompt.
func (k osKeychain) ready() error {
	conn, err := sessionBus()
	if err != nil {
		return unavailable("there is no session bus", err)
	}
	defer conn.Close()
	if err := startService(conn); err != nil {
		return unavailable("no keychain program is on the session bus", err)
	}
	collection, err := defaultCollection(conn)
	if err != nil {
		return err
	}
	locked, err := conn.Object(secretsName, collection).GetProperty(lockedProp)
	if err != nil {
		return unavailable("the keychain program answers with an error", err)
	}
	if is, ok := locked.Value().(bool); ok && is && !k.interactive {
		return &Error{Kind: Locked, Op: "opening keychain", Err: errors.New("nobody is here to unlock it")}
	}
	return nil
}

// sessionBus connects to a bus that is already there.
func sessionBus() (*dbus.Conn, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup()
	if err != nil {
		return nil, err
	}
	if err := conn.Auth(nil); err != nil {
		conn.Close()
		return nil, err
	}
	if err := conn.Hello(); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// startService has the bus start the keychain program, unless it runs: one that
// a person started by hand need not be one that the bus can start.
func startService(conn *dbus.Conn) error {
	var has bool
	if err := conn.BusObject().Call(busOwner, 0, secretsName).Store(&has); err != nil || has {
		return err
	}
	return conn.BusObject().Call(busStart, 0, secretsName, uint32(0)).Err
}

// defaultCollection is the collection that go-keyring takes: login, else the
// one that the alias default names.
func defaultCollection(conn *dbus.Conn) (dbus.ObjectPath, error) {
	service := conn.Object(secretsName, secretsPath)
	all, err := service.GetProperty(collections)
	if err != nil {
		return "", unavailable("the keychain program answers with an error", err)
	}
	if paths, ok := all.Value().([]dbus.ObjectPath); ok && slices.Contains(paths, loginPath) {
		return loginPath, nil
	}
	var path dbus.ObjectPath
	if err := service.Call(readAlias, 0, "default").Store(&path); err != nil {
		return "", unavailable("the keychain program answers with an error", err)
	}
	if path == "/" || path == "" {
		return "", &Error{Kind: Unavailable, Op: "opening keychain", Err: errors.New("no keyring has been made or opened in it")}
	}
	return path, nil
}

func unavailable(what string, err error) error {
	return &Error{Kind: Unavailable, Op: "opening keychain", Err: fmt.Errorf("%s: %w", what, err)}
}

func lockedHere(error) bool { return false }
