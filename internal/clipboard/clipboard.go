// Package clipboard stands in for the module of this name, which the form's text fields ask for the clipboard at Ctrl+V.
// That one looks for four helper programs in every folder of PATH when the process starts, for each command and each
// session, and starts the one it finds outside the sandbox. This one never reads the clipboard: a terminal pastes with
// its own key, which reaches the fields as typed text.
package clipboard

import "errors"

// ErrUnsupported is what reading the clipboard gives.
var ErrUnsupported = errors.New("paste with the terminal's own key")

// ReadAll reads nothing; its error is always ErrUnsupported.
func ReadAll() (string, error) { return "", ErrUnsupported }
