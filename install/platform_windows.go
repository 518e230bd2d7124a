package install

import "os"

// Renames are journalled; folders cannot be synced.
func syncDir(*os.Root, string) error { return nil }

func freeFile(root *os.Root, path string) { root.Chmod(path, filePrivate) }

// dropLock lets go first: an open file cannot be removed here, and for the same
// reason the removal fails when somebody else has taken the lock by then.
func dropLock(path string, unlock func()) {
	unlock()
	os.Remove(path)
}
