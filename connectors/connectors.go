// Package connectors is the built-in marketplace: the tree that is published,
// embedded in the binary so that a machine without a network can install from it.
//
// Its layout is that of every marketplace (connectors.json at the top, one folder
// per connector with connector.json, the server, verify.py and the icons; see the
// marketplace format, sections 1 and 9). connectors.json is compiled from
// index.json and the fragments and is never edited by hand.
//
// This package holds bytes and checks nothing: whoever reads the tree checks each
// file against its pin in connectors.json, as with any other marketplace. The
// tests of the servers live in tests/ and are neither shipped nor embedded.
package connectors

import (
	"embed"
	"io/fs"
)

//go:embed index.json connectors.json drive email gcal gmail http-fetch weather whatsapp wikipedia
var tree embed.FS

// Tree returns the marketplace with connectors.json at its root. The file system
// is read-only and safe for use by several goroutines; paths are slash-separated.
func Tree() fs.FS { return tree }
