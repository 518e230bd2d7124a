package install

import "os"

// Renames are journalled; folders cannot be synced.
func syncDir(*os.Root, string) error { return nil }

// freeFile makes a file writable: a read-only one cannot be removed here.
func freeFile(root *os.Root, path string) { root.Chmod(path, filePrivate) }

// dropLock lets go first: an open file cannot be removed here, and for the same
// reason the removal fails when somebody else has taken the lock by then.
func dropLock(path string, unlock func()) {
	unlock()
	os.Remove(path)
}
