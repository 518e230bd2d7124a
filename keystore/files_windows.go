package keystore

import "io/fs"

// Rights are access lists here, inherited from the user's profile, not bits.
func othersCanReach(fs.FileInfo) bool { return false }
func ownedByUs(fs.FileInfo) bool      { return true }
