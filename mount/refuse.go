package mount

import (
	"fmt"

	"skald-connectors/internal/exactjson"
)

// Reason says why nothing was written. The first nine are the closed set of the
// engine (spec/mount.md); the rest concerns other clients.
type Reason string

// The reasons of a refusal.
const (
	ConfigDir          Reason = "config_dir"           // the engine's folder is not given, not absolute or not there
	InvalidName        Reason = "invalid_name"         // not lower-case words joined by hyphens
	ReservedName       Reason = "reserved_name"        // a name that the engine keeps for itself
	Unreadable         Reason = "unreadable"           // the file cannot be read, or is not what its format says
	UnexpectedShape    Reason = "unexpected_shape"     // it can be read, and has something else where servers stand
	Conflict           Reason = "conflict"             // an entry of that name that is not ours
	Locked             Reason = "locked"               // another process of ours keeps the file locked
	ChangedDuringWrite Reason = "changed_during_write" // another program keeps rewriting it
	WriteFailed        Reason = "write_failed"         // the system refused the write

	UnknownClient   Reason = "unknown_client"   // no such client in the table
	UnknownFile     Reason = "unknown_file"     // where the client's file is cannot be told
	NotHere         Reason = "not_here"         // the client is not installed, and nobody said to make its folder
	UnusableProgram Reason = "unusable_program" // the client cannot start a path like ours
)

// RefusedError says why a file was left as it was. Line and Col are 1-based and
// 0 when the refusal is about the whole file. Message names no file.
type RefusedError struct {
	Reason    Reason
	File      string
	Line, Col int
	Message   string
	err       error
}

func (e *RefusedError) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
}

// Unwrap gives the error of the operating system, if there was one.
func (e *RefusedError) Unwrap() error { return e.err }

func refusef(r Reason, file, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: r, File: file, Message: fmt.Sprintf(format, args...)}
}

func refuseFor(r Reason, file string, err error) *RefusedError {
	return &RefusedError{Reason: r, File: file, Message: err.Error(), err: err}
}

// fault is what an editor says about a text: where, and whether it is broken or
// only of another shape. An offset of -1 means the whole text.
type fault struct {
	off   int
	shape bool
	msg   string
}

func (f *fault) Error() string { return f.msg }

func broken(off int, format string, args ...any) *fault {
	return &fault{off: off, msg: fmt.Sprintf(format, args...)}
}

func misshapen(off int, format string, args ...any) *fault {
	return &fault{off: off, shape: true, msg: fmt.Sprintf(format, args...)}
}

// refused turns a fault into a refusal with file, line and column.
func (f *fault) refused(file string, src []byte) *RefusedError {
	e := &RefusedError{Reason: Unreadable, File: file, Message: f.msg}
	if f.shape {
		e.Reason = UnexpectedShape
	}
	if f.off >= 0 {
		e.Line, e.Col = exactjson.Position(src, f.off)
	}
	return e
}
