// Package launch is the filter between one MCP client and one upstream
// (launcher.md, sections 2 to 5): it judges the client's lines, forwards those
// that pass byte for byte and in order, and answers what the launcher itself
// adds.
//
// It is given the client's two streams, an upstream's streams, a grant and a
// redactor, and knows nothing else: it starts no process, reads no record and
// no secret, and looks at no clock but the one it was given. What decides is
// one pure function, step; the goroutines around it only carry bytes.
//
// It never re-encodes what it lets through, never lets through a line that two
// JSON readers could understand differently, never sends a second initialize,
// never answers a notification, and never holds more than a bounded number of
// bytes.
package launch
