// Package login obtains and keeps the credentials that a person grants in a browser (OAuth 2), for one activation at a
// time.
//
// Its law is format.md section 7: authorization code with PKCE S256 on a loopback listener (RFC 6749, 7636, 8252), the
// issuer of the answer checked (RFC 9207), a pasted code or address in place of the listener, the device flow (RFC 8628),
// refresh with rotation under one lock across processes, revocation (RFC 7009), and for remote MCP servers the discovery
// of RFC 9728, 8414 and 7591 with resource indicators (RFC 8707).
//
// Only an answer with the right state decides a sign-in. A reply of a provider is judged, never trusted: what is odd in
// it is refused or replaced by the safe reading, and its text is quoted and bounded before anybody sees it. The newest
// refresh token is never lost to another process, to Ctrl-C, or to a full disk that could have been noticed before.
//
// It never opens a browser or reads a terminal itself, never follows a redirect with a credential, never sends a
// credential over plain http to another machine, never puts a value into an error, and never writes one but through the
// key store that it is given.
package login
