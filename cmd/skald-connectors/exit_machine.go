package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

// machineCode is for what this machine does not give: its key store, its sandbox, its
// disk.
func machineCode(err error) (int, string, bool) {
	var (
		key  *keystore.Error
		held *sandbox.UnenforceableError
		open *atomicfile.UnsafeError
	)
	switch {
	case errors.As(err, &key) && errors.Is(err, syscall.ENOSPC):
		return exitKeystore, diskHint, true
	case errors.As(err, &key):
		return exitKeystore, keystoreHint(key), true
	case errors.As(err, &held) && held.Always:
		return exitUnenforced, "change what it says in the settings or with --grant: a folder of its own that is there, beside the home folder of this program, or HOST:PORT", true
	case errors.As(err, &held):
		return exitUnenforced, "install bubblewrap, or use a kernel with Landlock; --sandbox none starts it without any protection", true
	case errors.As(err, &open) && connectorMade(open.Path):
		return exitUsage, fmt.Sprintf("this folder is the connector's own, and it put something else in its place; look at it, remove it, and run the command again (%s)", open.Path), true
	case errors.As(err, &open) && strings.Contains(open.Why, "link"):
		return exitUsage, fmt.Sprintf("put the folder or file itself in place of the link %s, or name another home with --home DIR", open.Path), true
	case errors.As(err, &open):
		return exitUsage, fmt.Sprintf("%s has to be a folder or file of its own that only you can write to (chmod go-w), or name another home with --home DIR", open.Path), true
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return exitFailed, diskHint, true
	case atomicfile.Unwritable(err):
		return exitFailed, "make the file or folder yours; where it is below the home folder of this program, another one can be named with --home DIR", true
	}
	return 0, "", false
}

// connectorMade tells whether path is in state/NAME, where a connector may change
// what it likes.
func connectorMade(path string) bool {
	dir := filepath.Dir(path)
	return filepath.Base(path) == "home" && filepath.Base(filepath.Dir(dir)) == "state"
}

// startAfresh is the way out when secrets cannot be read any more.
const startAfresh = "remove the folder keystore of the home folder and type them again with configure"

const diskHint = "make room on the disk and run the command again; nothing is half done"

func keystoreHint(e *keystore.Error) string {
	var cause *keystore.Error
	switch e.Kind {
	case keystore.NotChosen, keystore.Unavailable:
		if errors.As(e.Err, &cause) && (cause.Kind == keystore.Locked || cause.Kind == keystore.TimedOut) {
			return keystoreHint(cause) + "; or choose another place for the key: --keystore passphrase or --keystore keyfile"
		}
		return "without a keychain here, choose another place for the key: --keystore passphrase or --keystore keyfile"
	case keystore.NotFound:
		return "the file with the secrets is gone; restore it from a backup, or type them again with configure"
	case keystore.Locked:
		if e.What == string(keystore.BackendPassphrase) || e.Op == "setting passphrase" {
			return "run it in a terminal, or open the key store first with " + program + " unlock, or name a file that holds the passphrase with SKALD_CONNECTORS_PASSPHRASE_FILE"
		}
		return "unlock your keychain and run the command again"
	case keystore.TimedOut:
		return "the keychain does not answer; look for a window in which it waits for a password"
	case keystore.WrongPassphrase:
		return "run the command again with the passphrase that was set; it cannot be recovered"
	case keystore.KeyMissing:
		return "the key of your secrets is gone from where it was kept; restore it from a backup. Without one the secrets are lost: " + startAfresh
	case keystore.Damaged, keystore.Replaced:
		return "nothing was overwritten; restore the file from a backup. Without one the secrets are lost: " + startAfresh
	case keystore.Unsafe:
		return "nothing was read or written; what is in the key store has to be yours alone, and no link: chmod 700 for its folder, 600 for its files. If others could read them, change the secrets"
	case keystore.Conflict:
		return "leave --keystore away to use the recorded one"
	}
	return ""
}
