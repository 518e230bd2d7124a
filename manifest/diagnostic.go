package manifest

import "fmt"

// Severity ranks a Diagnostic.
type Severity uint8

// The severities. An Error is something that the connector should not be
// published with; the reader has gone on without the part it names.
const (
	Info Severity = iota
	Warning
	Error
)

func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}
	return "error"
}

// Diagnostic is one deviation from the format.
type Diagnostic struct {
	File      string // connectors.json, or the name given to ParseManifest
	Path      string // JSON path: connectors[3].files[0].size
	Line, Col int    // 1-based, in bytes; 0 when no place is known
	Severity  Severity
	Rule      string // stable id: version-not-integer
	Message   string // what was found and what was expected
}

func (d Diagnostic) String() string {
	place := d.File
	if d.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Col)
	}
	if d.Path != "" {
		place += ": " + d.Path
	}
	return fmt.Sprintf("%s: %s: %s [%s]", place, d.Severity, d.Message, d.Rule)
}

// RefusedError means that a whole document is refused: it is not JSON, it is
// too large or too deep, it has another shape, or a key stands twice where
// that decides something. Callers branch on it with errors.As.
type RefusedError struct{ Diagnostic }

func (e *RefusedError) Error() string { return e.Diagnostic.String() }

// DisagreeError means that the manifest contradicts its index entry in id,
// type, scope or version, so one of the two is not what was published.
type DisagreeError struct {
	Connector       string // id in the index
	Field           string // id, type, scope or version
	Index, Manifest string
}

func (e *DisagreeError) Error() string {
	return fmt.Sprintf("connector %q: the index says %s %q, its manifest says %q", e.Connector, e.Field, e.Index, e.Manifest)
}
