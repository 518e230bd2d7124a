//go:build !linux

package install

import "os"

// syncAll makes the names of a tree durable. A file that a crash cuts short is found
// by the listing, and the tree is built again.
func syncAll(root *os.Root) error { return syncDirs(root) }
