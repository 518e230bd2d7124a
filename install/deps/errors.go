package deps

import (
	"fmt"
	"strings"
)

// RefusedError says that a list of dependencies holds something that is not taken
// from a connector. It names the place and never quotes the content, which may hold
// what a person's machine filled in.
type RefusedError struct {
	File string
	Line int    // 1-based, 0 = unknown
	Path string // of a JSON document, "" = none
	What string
}

func (e *RefusedError) Error() string {
	where := fmt.Sprintf("%q", e.File)
	if e.Line > 0 {
		where += fmt.Sprintf(" line %d", e.Line)
	}
	if e.Path != "" {
		where += fmt.Sprintf(" (%s)", e.Path)
	}
	return "reading the dependencies: " + where + ": " + e.What
}

// ToolError says that a program which installs packages is missing or too old.
type ToolError struct {
	Program, Range string
	Found, Path    string // the version that is here, "" = none
}

func (e *ToolError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("looking for %s beside %s: it is not there", e.Program, e.Path)
	}
	return fmt.Sprintf("%s %s at %s does not satisfy %q", e.Program, e.Found, e.Path, e.Range)
}

// Kind says why an installation of packages failed.
type Kind string

const (
	Failed      Kind = "failed"      // for a reason that only the output tells
	Unreachable Kind = "unreachable" // the registry does not answer, or its certificate is not trusted
	Denied      Kind = "denied"      // the registry wants a credential, or another one
	Missing     Kind = "missing"     // the registry has no such package or version, or none that fits
	Mismatch    Kind = "mismatch"    // bytes do not match their digest
	Unhashed    Kind = "unhashed"    // a package comes that the list of hashes does not name
	NoSpace     Kind = "no-space"
	NeedsBuild  Kind = "needs-build" // a package has to be compiled here, and cannot
	TimedOut    Kind = "timed-out"
	Unsafe      Kind = "unsafe" // the packages hold what must not be used
)

var kindText = map[Kind]string{
	Failed: "it failed", Unreachable: "the registry cannot be reached", Denied: "the registry refuses our credential, or wants one",
	Missing: "the registry has no package that fits", Mismatch: "the bytes from the registry do not match their digest",
	Unhashed: "a package would come that the list of hashes does not name", NoSpace: "there is no space left on the disk",
	NeedsBuild: "a package has to be built from its source, and that did not work", TimedOut: "it took longer than its time limit",
	Unsafe: "the packages hold something that is not used",
}

// BuildError says that npm or pip did not do its work. Tail is the end of what it
// wrote, struck of credentials; whoever shows it cleans it.
type BuildError struct {
	Ecosystem Ecosystem
	Kind      Kind
	Detail    string // "" = none
	Tail      string
	Err       error
}

func (e *BuildError) Error() string {
	s := fmt.Sprintf("installing packages with %s: %s", e.Ecosystem, kindText[e.Kind])
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *BuildError) Unwrap() error { return e.Err }

// tailLines is what a person is shown of an installer's output.
const tailLines = 12

func lastLines(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
